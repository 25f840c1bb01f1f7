"""Every operator family; importing this package fills the rule tables."""

from ..rules import reads
from . import (
    activations,
    attention,
    binary,
    blocks,
    boxes,
    convolution,
    creation,
    diagonals,
    heads,
    images,
    indexing,
    linalg,
    linear,
    logic,
    normalization,
    numpy_shaping,
    passing,
    pooling,
    recurrent,
    reductions,
    regions,
    resampling,
    scattering,
    sequences,
    series,
    shaping,
    sorting,
    special,
    suppression,
    unary,
)
from .aliases import ALIASES

__all__ = [
    "activations",
    "attention",
    "binary",
    "blocks",
    "boxes",
    "convolution",
    "creation",
    "diagonals",
    "heads",
    "images",
    "indexing",
    "linalg",
    "linear",
    "logic",
    "normalization",
    "numpy_shaping",
    "passing",
    "pooling",
    "recurrent",
    "reductions",
    "regions",
    "resampling",
    "scattering",
    "sequences",
    "series",
    "shaping",
    "sorting",
    "special",
    "suppression",
    "unary",
]

for _name, _others in ALIASES.items():
    if _name in reads:
        _rule = reads.rules[_name]
        reads(*_others.split(), ignore=_rule.ignore, only=_rule.only)(_rule.function)
