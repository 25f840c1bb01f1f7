"""Sizes, which tract takes all int64 for that a node makes, and places in dynamic ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import Dim, DType, Shape, Value
from serde.rewrite.rules import RuleTable


def legalize_sizes(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Sign")(legalize_sign)
    legalize("TopK")(legalize_top_k)
    legalize("Equal")(legalize_equal)
    legalize("Where")(legalize_where)
    legalize.for_each(("ArgMax", "ArgMin"))(legalize_place)
    legalize("Trilu")(legalize_triangle)
    legalize("GatherElements")(legalize_gather_elements)
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


def legalize_equal(g, a, b):
    """A size by name is no negative number, which PyTorch asks for; tract has none of booleans."""
    if a.type is DType.BOOL:
        return g.Not(g.Xor(a, b))
    known, others = shape_data_of(a), shape_data_of(b)
    if known is None or others is None or a.shape != b.shape:
        return None
    answers = [compare_sizes(*pair) for pair in zip(known, others, strict=True)]
    if None in answers:
        return None
    return g.const(np.reshape(np.array(answers, bool), a.static_shape))


def compare_sizes(a: Dim, b: Dim) -> bool | None:
    """Whether two sizes are equal, None where that is not known."""
    name, number = (a, b) if isinstance(a, str) else (b, a)
    if isinstance(name, str) and isinstance(number, int):
        return False if number < 0 and "-" not in name else None
    return None if a is None or b is None or (isinstance(a, str) and a != b) else a == b


def legalize_where(g, condition, a, b):
    """Sizes that constants choose from two lists."""
    is_list = condition.tensor is not None and condition.rank == 1
    if not is_list or not (a.shape == b.shape == condition.shape):
        return None
    if None in (shape_data_of(a), shape_data_of(b)):
        return None
    chosen = [g.Slice(a if c else b, [i], [i + 1]) for i, c in enumerate(condition.array())]
    return g.Concat(*chosen, axis=0) if len(chosen) > 1 else g.Identity(*chosen)


def find_scales(shape: Shape, sizes: Shape | None) -> Any:
    """What sizes are multiplied by, None where it is not known to be exact."""
    pairs = list(zip(shape, sizes or (), strict=bool(sizes)))
    if not sizes or not all(
        a is not None and (a == b or (isinstance(a, int) and isinstance(b, int))) for a, b in pairs
    ):
        return None
    ratios = np.array([1 if a == b else b / a for a, b in pairs], np.float32)
    is_exact = all(a == b or int(a * r) == b for (a, b), r in zip(pairs, ratios, strict=True))
    return ratios if is_exact else None


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


def legalize_triangle(g, x, k=None, *, upper: int):
    """tract takes no size for the diagonal, which it takes int64 for that a node makes."""
    if k is None or g.producer(k) is None:
        return None
    return g.decompose("Trilu", 14, x, k, upper=upper)


def legalize_gather_elements(g, x, indices, *, axis: int):
    """tract takes no sizes by name for indices; as int32 they are numbers."""
    if not is_size(g, indices):
        return None
    return g.GatherElements(x, g.cast(indices, DType.INT32), axis=axis)


def legalize_scatter_elements(g, x, indices, updates, *, reduction: str, **form):
    """tract does not reduce sizes, which it takes int64 for that a node makes.

    It takes no sizes by name for indices; as int32 they are numbers.
    """
    form["reduction"] = reduction
    if is_size(g, indices):
        return g.ScatterElements(x, g.cast(indices, DType.INT32), updates, **form)
    if reduction == "none" or not is_size(g, x):
        return None
    x_float64, added = (g.cast(v, DType.FLOAT64) for v in (x, updates))
    return g.cast(g.ScatterElements(x_float64, indices, added, **form), DType.INT64)


def legalize_sign(g, x):
    """tract has none of sizes, which it takes int64 for that a node makes."""
    if not is_size(g, x):
        return None
    return g.Sub(g.cast_like(g.Greater(x, 0), x), g.cast_like(g.Less(x, 0), x))
