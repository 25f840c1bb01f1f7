"""Sizes, which tract takes all int64 for that a node makes, and places in dynamic ranges."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.rewrite.rules import RuleTable


def legalize_sizes(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Sign")(legalize_sign)
    legalize("TopK")(legalize_top_k)
    legalize.for_each(("ArgMax", "ArgMin"))(legalize_place)
    legalize("ScatterElements")(legalize_scatter_elements)
    legalize.for_each(("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"))(legalize_bitwise)
    for_comparisons = legalize.for_each(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"))
    for_comparisons(legalize_comparison)


def legalize_bitwise(op, g, *operands):
    """tract has none of sizes, which it takes int64 for that a node makes."""
    require(not any(is_size(g, v) for v in operands), f"tract has no {op} of sizes: use int32")


def is_size(g, x: Value, depth: int = 8) -> bool:
    """Whether tract takes a tensor for one of sizes."""
    node = g.producer(x) if x.dtype is DType.INT64 else None
    if node is None or not depth:
        return False
    if node.op in ("Cast", "Shape", "Size"):
        return True
    return any(v is not None and is_size(g, v, depth - 1) for v in node.inputs)


def legalize_comparison(op, g, a, b):
    """tract slices what is chosen by a comparison of places, also what is broadcast.

    It does not see through a comparison of 1 and 0 with a fraction.
    """
    if (a.is_static and b.is_static) or not any(has_places(g, v) for v in (a, b)):
        return None
    chosen = g.cast(g.as_is(op, (a, b), {}), DType.FLOAT32)
    return g.as_is("Greater", (chosen, g.const(0.5, DType.FLOAT32)), {})


def has_places(g, x: Value, depth: int = 8) -> bool:
    """Whether a tensor is computed of a Range of dynamic size."""
    node = g.producer(x) if depth else None
    if node is None or node.op in ("Shape", "Size"):
        return False
    if node.op == "Range":
        return not x.is_static
    return any(v is not None and has_places(g, v, depth - 1) for v in node.inputs)


def legalize_place(op, g, x, **form):
    """tract has none of sizes, which it takes int64 for that a node makes."""
    return g[op](g.cast(x, DType.FLOAT64), **form) if is_size(g, x) else None


def legalize_top_k(g, x, k, *, outputs: int = 2, **form):
    """tract has none of sizes, which it takes int64 for that a node makes."""
    if not is_size(g, x):
        return None
    values, indices = g.TopK(g.cast(x, DType.FLOAT64), k, **form, outputs=2)
    return g.cast(values, DType.INT64), indices


def legalize_scatter_elements(g, x, indices, updates, *, reduction: str, **form):
    """tract does not reduce sizes, which it takes int64 for that a node makes."""
    if reduction == "none" or not is_size(g, x):
        return None
    wide, added = (g.cast(v, DType.FLOAT64) for v in (x, updates))
    y = g.ScatterElements(wide, indices, added, reduction=reduction, **form)
    return g.cast(y, DType.INT64)


def legalize_sign(g, x):
    """tract has none of sizes, which it takes int64 for that a node makes."""
    if not is_size(g, x):
        return None
    return g.Sub(g.cast_like(g.Greater(x, 0), x), g.cast_like(g.Less(x, 0), x))
