"""Determinants."""

from __future__ import annotations

from serde.errors import ConversionError
from serde.graph import Value

from . import decomposed
from .common import END, bounded, cast, wider


@decomposed(11, "Det")
def determinant(g, x: Value):
    """Eliminate column by column, each time with the row that is largest in it."""
    n = x.known[-1]
    if not isinstance(n, int):
        raise ConversionError(
            "Det of a size known only when the model runs; opset 11 is the lowest that takes it"
        )
    bounded(n, "a matrix", 512)
    u, total, rows = wider(g, x), None, x.rank - 2
    columns = rows + 1
    for left in range(n, 0, -1):
        first = g.Slice(u, [0], [1], [columns], [1])
        at = g.ArgMax(g.Abs(first), axis=rows, keepdims=1)  # (…, 1, 1)
        along = g.const([[i] for i in range(left)])
        chosen = g.Equal(at, along)  # (…, left, 1)
        row = g.ReduceSum(g.Mul(u, cast(g, chosen, u.type)), [rows], keepdims=1)
        pivot = g.Slice(row, [0], [1], [columns], [1])
        sign = g.Where(g.Equal(at, 0), g.const(1.0, u.type), g.const(-1.0, u.type))
        factor = g.Mul(pivot, sign)
        total = factor if total is None else g.Mul(total, factor)
        if left == 1:
            break
        top = g.Slice(u, [0], [1], [rows], [1])
        below_ = g.Slice(g.Where(chosen, top, u), [1], [END], [rows], [1])
        safe = g.Where(g.Equal(pivot, 0), g.const(1.0, u.type), pivot)
        ratio = g.Div(g.Slice(below_, [0], [1], [columns], [1]), safe)
        rest = g.Sub(below_, g.Mul(ratio, row))
        u = g.Slice(rest, [1], [END], [columns], [1])
    return cast(g, g.Squeeze(total, [rows, columns]), x.dtype)
