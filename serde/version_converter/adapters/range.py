"""Counting up, and sums and masks over what is counted."""

from __future__ import annotations

from functools import partial

from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_TYPES

from . import decomposition, downgrades
from .common import (
    FLOATS,
    cast,
    count_range,
    require_constant_axis,
    size,
    sum_by_factors,
    widen_float,
)
from .dynamic_axes import apply_along, known_ints


@downgrades[27]("Range")
def range_of_wide_floats(g, start: Value, limit: Value, delta: Value, *, stash_type: int):
    """Half floats, new at opset 27, count in the wider type ``stash_type`` names."""
    if start.dtype not in (DType.FLOAT16, DType.BFLOAT16):
        return g.Range(start, limit, delta)
    stash_dtype = ELEMENT_TYPES[stash_type]
    return cast(g, g.Range(*(cast(g, v, stash_dtype) for v in (start, limit, delta))), start.dtype)


@decomposition(11, "Range")
def range_by_looping(g, start: Value, limit: Value, delta: Value):
    """``start + i * delta`` for each of the loop's turns."""
    exact = start.dtype in FLOATS
    length, step = (v if exact else cast(g, v, DType.FLOAT64) for v in (g.Sub(limit, start), delta))
    count = cast(g, g.Ceil(g.Div(length, step)), DType.INT64)  # a loop of -1 turns takes none
    body = g.child("count")
    turn, go = body.input("i", DType.INT64, ()), body.input("go", DType.BOOL, ())
    carried = body.input("carried", DType.INT64, ())
    here = body.Add(start, body.Mul(cast(body, turn, start.dtype), delta))
    outputs = [body.Identity(go), body.Identity(carried), here]
    _, counted = g.Loop(count, True, count, body=body.build(outputs), outputs=2)
    return counted


def triangle(g, count: Value, reverse: bool, exclusive: bool):
    """Whether element ``row`` goes into the running total at ``column``, for each pair."""
    index = count_range(g, count)
    row, column = g.Unsqueeze(index, [1]), g.Unsqueeze(index, [0])
    if reverse:
        row, column = column, row
    return g.Less(row, column) if exclusive else g.LessOrEqual(row, column)


def accumulate(op, version, combine, g, x: Value, axis: Value, *, exclusive: int, reverse: int):
    """Combine, at each place of the axis, the elements that the triangle keeps."""
    if known_ints(axis) is None:
        how = {"exclusive": exclusive, "reverse": reverse}
        return apply_along(g, x, axis, lambda v: g[op](v, 1, **how))
    at = require_constant_axis(axis, x, version)
    return combine(g, x, at, triangle(g, size(g, x, at), bool(reverse), bool(exclusive)))


def sum_of_kept(g, x: Value, at: int, kept: Value):
    """Multiply by a triangle of ones."""
    kept = cast(g, kept, x.type)
    order = (*(a for a in range(x.rank) if a != at), at)
    back = tuple(sorted(range(x.rank), key=order.__getitem__))
    flat = g.Transpose(x, perm=order)
    return g.Transpose(sum_by_factors(g, flat, lambda v: g.MatMul(v, kept)), perm=back)


def product_of_kept(g, x: Value, at: int, kept: Value):
    """The product, over one axis more, of what the triangle keeps; 1 stands for the rest."""
    behind = x.rank - at - 1
    kept = g.Unsqueeze(kept, list(range(2, 2 + behind))) if behind else kept
    factors = g.Where(kept, g.Unsqueeze(widen_float(g, x), [at + 1]), 1)
    return cast(g, g.ReduceProd(factors, [at], keepdims=0), x.dtype)


decomposition(11, "CumSum")(partial(accumulate, "CumSum", 11, sum_of_kept))
decomposition(26, "CumProd")(partial(accumulate, "CumProd", 26, product_of_kept))


@decomposition(14, "Trilu")
def triangular(g, x: Value, k: Value | None = None, *, upper: int):
    rows = g.Unsqueeze(count_range(g, size(g, x, x.rank - 2)), [1])
    columns = g.Unsqueeze(count_range(g, size(g, x, x.rank - 1)), [0])
    edge = rows if k is None else g.Add(rows, g.Reshape(k, [1]))
    kept = g.GreaterOrEqual(columns, edge) if upper else g.LessOrEqual(columns, edge)
    if x.dtype is DType.BOOL:
        return g.And(x, kept)
    return g.Where(kept, x, g.const(0, x.type))


@decomposition(9, "EyeLike")
def identity_matrix(g, x: Value, *, k: int, dtype: int | None = None):
    rows = g.Unsqueeze(count_range(g, size(g, x, 0)), [1])
    columns = g.Unsqueeze(count_range(g, size(g, x, 1)), [0])
    kind = x.type if dtype is None else ELEMENT_TYPES[dtype]
    return cast(g, g.Equal(g.Add(rows, k), columns), kind)
