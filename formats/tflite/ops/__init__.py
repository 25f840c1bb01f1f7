"""Rules from the IR to TensorFlow Lite, by family."""

from . import (
    control_flow,
    detection,
    elementwise,
    indexing,
    layers,
    quantization,
    recurrent,
    reductions,
    resize,
    shapes,
)

__all__ = [
    "control_flow", "detection", "elementwise", "indexing", "layers", "quantization", "recurrent",
    "reductions", "resize", "shapes",
]  # fmt: skip
