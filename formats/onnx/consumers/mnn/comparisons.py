"""Comparisons of floats, which MNN makes as if they were integers."""

from __future__ import annotations

import numpy as np

from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.common import broadcast_shapes


def legalize_comparisons(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Less")(legalize_less)
    legalize("Equal")(legalize_equal)
    legalize.for_each(("Greater", "GreaterOrEqual", "LessOrEqual"))(legalize_comparison)


def legalize_less(g, a, b):
    """MNN compares floats as integers."""
    return g.Greater(b, a)


def legalize_equal(g, a, b):
    """MNN compares floats as integers, for which -0 is not 0, and NaN is NaN."""
    if a.type.kind != "f":
        return None
    for x, y in ((a, b), (b, a)):
        if y.tensor is not None and not np.isnan(y.array()).any():
            if np.all(y.array()):
                return None
            if not np.any(y.array()):
                return g.as_is("Equal", (g.Abs(x), y), {})
    return g.And(g.GreaterOrEqual(a, b), g.LessOrEqual(a, b))


def legalize_comparison(op, g, a, b):
    """MNN compares floats as integers where both operands are broadcast."""
    if a.type.kind != "f" or a.ranked_shape == b.ranked_shape or not (a.rank and b.rank):
        return None
    result = broadcast_shape(a, b)
    if result in (a.ranked_shape, b.ranked_shape):
        return None
    return g[op](g.Expand(a, broadcast_shapes(g, a, b)), b)


def broadcast_shape(a, b):
    """The shape that two broadcast to, where sizes tell."""
    n = max(a.rank, b.rank)
    padded = [(1,) * (n - v.rank) + tuple(v.ranked_shape) for v in (a, b)]
    return tuple(q if p == 1 else p for p, q in zip(*padded, strict=True))
