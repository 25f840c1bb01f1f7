"""Determinants."""

from __future__ import annotations

from serde.ir.graph import DType, Value

from . import decomposition
from .common import END, cast, make_full, reshape_exactly, scalar, size, widen_float

MOST = 16  # columns to eliminate one by one without a loop


@decomposition(11, "Det")
def determinant(g, x: Value):
    """Eliminate column by column, each time with the row that is largest in it."""
    n = x.ranked_shape[-1]
    if not isinstance(n, int) or n > MOST:
        return determinant_by_looping(g, x)
    u, total, rows = widen_float(g, x), None, x.rank - 2
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


def determinant_by_looping(g, x: Value):
    """The same for a matrix that is large, or of dynamic size.

    Each turn brings the chosen row into the turn's place, and takes it off the rows below.
    """
    u, rows = widen_float(g, x), x.rank - 2
    columns, n = rows + 1, scalar(g, size(g, x, rows))
    body = g.child("columns")
    turn, go = body.input("i", DType.INT64, ()), body.input("go", DType.BOOL, ())
    left = body.input("left", u.dtype, u.shape)
    total = body.input("total", u.dtype)

    index = body.Reshape(body.Range(0, n, 1), [-1, 1])  # of rows
    here = body.Equal(index, turn)
    first = body.Unsqueeze(body.Gather(left, turn, axis=columns), [columns])  # (…, n, 1)
    open_ = cast(body, body.Not(body.Less(index, turn)), DType.FLOAT32)
    sizes = body.Add(body.Abs(first), 1.0)
    at = body.ArgMax(body.Mul(sizes, cast(body, open_, u.dtype)), axis=rows, keepdims=1)
    chosen = body.Equal(index, at)  # (…, n, 1)
    pivots, swapped_rows = (
        body.ReduceSum(body.Mul(left, cast(body, v, u.type)), [rows], keepdims=1)
        for v in (chosen, here)
    )
    placed = body.Where(here, pivots, body.Where(chosen, swapped_rows, left))
    pivot = body.Unsqueeze(body.Gather(pivots, turn, axis=columns), [columns])  # (…, 1, 1)
    safe = body.Where(body.Equal(pivot, 0), body.const(1.0, u.type), pivot)
    column = body.Unsqueeze(body.Gather(placed, turn, axis=columns), [columns])
    under = cast(body, body.Less(turn, index), u.type)
    rest = body.Sub(placed, body.Mul(body.Mul(body.Div(column, safe), under), pivots))
    swapped = cast(body, body.Equal(at, turn), u.type)
    factor = body.Mul(pivot, body.Sub(body.Mul(swapped, 2.0), 1.0))
    graph = body.build([body.Identity(go), rest, body.Mul(total, factor)])

    one = make_full(g, 1.0, g.Concat(g.Shape(x, end=rows), [1, 1], axis=0), u.type)
    _, product = g.Loop(n, True, u, one, body=graph, outputs=2)
    product = reshape_exactly(g, product, g.Shape(one))
    return cast(g, g.Squeeze(product, [rows, columns]), x.dtype)
