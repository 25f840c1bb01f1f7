"""Rules from TensorFlow Lite into the IR, by family."""

from . import (
    audio,
    blocks,
    complex_numbers,
    control_flow,
    detection,
    elementwise,
    indexing,
    layers,
    mediapipe,
    quantization,
    recurrent,
    reductions,
    segments,
    shapes,
    slicing,
    windows,
)

__all__ = [
    "audio", "blocks", "complex_numbers", "control_flow", "detection", "elementwise", "indexing",
    "layers", "mediapipe", "quantization", "recurrent", "reductions", "segments", "shapes",
    "slicing", "windows",
]  # fmt: skip
