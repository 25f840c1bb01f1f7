"""Rules from the IR to Relay, by family; importing this package fills the tables."""

from . import (
    class_suppression,
    control,
    convolution,
    elementwise,
    indexing,
    linear,
    normalization,
    pooling,
    quantized,
    recurrent,
    reducing,
    resizing,
    sampling,
    shaping,
    suppression,
)

__all__ = [
    "class_suppression",
    "control",
    "convolution",
    "elementwise",
    "indexing",
    "linear",
    "normalization",
    "pooling",
    "quantized",
    "recurrent",
    "reducing",
    "resizing",
    "sampling",
    "shaping",
    "suppression",
]
