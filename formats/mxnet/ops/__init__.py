"""Every operator family; importing this package fills the rule tables."""

from ..rules import reads
from . import (
    activations,
    attention,
    binary,
    convolution,
    creation,
    heads,
    indexing,
    linear,
    logic,
    normalization,
    passing,
    pooling,
    recurrent,
    reductions,
    shaping,
    unary,
)
from .aliases import ALIASES

__all__ = [
    "activations",
    "attention",
    "binary",
    "convolution",
    "creation",
    "heads",
    "indexing",
    "linear",
    "logic",
    "normalization",
    "passing",
    "pooling",
    "recurrent",
    "reductions",
    "shaping",
    "unary",
]

for _name, _others in ALIASES.items():
    if _name in reads:
        _rule = reads.rules[_name]
        reads(*_others.split(), ignore=_rule.ignore, only=_rule.only)(_rule.function)
