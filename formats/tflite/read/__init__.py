"""Rules from TensorFlow Lite into the IR, by family."""

from . import (
    control_flow,
    detection,
    elementwise,
    indexing,
    layers,
    quantization,
    recurrent,
    reductions,
    segments,
    shapes,
    slicing,
    windows,
)

__all__ = [
    "control_flow", "detection", "elementwise", "indexing", "layers", "quantization", "recurrent",
    "reductions", "segments", "shapes", "slicing", "windows",
]  # fmt: skip
