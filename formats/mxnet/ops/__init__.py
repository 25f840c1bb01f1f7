"""Every operator family; importing this package fills the rule tables."""

from . import (
    activations,
    attention,
    convolution,
    creation,
    elementwise,
    heads,
    indexing,
    linear,
    normalization,
    pooling,
    recurrent,
    reductions,
    shaping,
)

__all__ = [
    "activations",
    "attention",
    "convolution",
    "creation",
    "elementwise",
    "heads",
    "indexing",
    "linear",
    "normalization",
    "pooling",
    "recurrent",
    "reductions",
    "shaping",
]
