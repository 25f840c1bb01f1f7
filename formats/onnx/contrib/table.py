"""The tables of the rules, and what the rules share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serde.ir.graph import Value
from serde.rewrite.rules import RuleTable

DOMAIN = "com.microsoft"
reads = RuleTable(f"{DOMAIN} → ir")
reads_default = RuleTable("ai.onnx of ONNX Runtime → ir")


def as_scalar(g, x: Value):
    """``x``, which holds one element, without axes."""
    return x if x.shape == () else g.Reshape(x, np.zeros(0, np.int64))


def apply_in_layout(g, x: Value, channels_last: int, apply: Callable[[Value], Value]):
    """Apply an operator that takes channels at axis 1, wherever those of ``x`` are."""
    if not channels_last:
        return apply(x)
    rank = x.rank
    inward, outward = (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
    return g.Transpose(apply(g.Transpose(x, perm=inward)), perm=outward)
