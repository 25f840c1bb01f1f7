"""Dynamic axes, where an older opset takes them in an attribute."""

from __future__ import annotations

import numpy as np

from serde.ir import arrays
from serde.ir.graph import DType, Value

from .common import cast, count_range

NO_AXIS = 2**40


def known_ints(value: Value) -> tuple[int, ...] | None:
    """The elements of an operand, None where they are dynamic."""
    if value.shape == (0,):
        return ()
    return value.ints() if value.tensor is not None else None


def match_axes(g, axes: Value, rank: int | Value):
    """1 for each pair of a listed axis and the axis it names, a row for each that is listed."""
    listed = g.Reshape(cast(g, axes, DType.INT64), [-1, 1])
    front = (
        g.const([range(rank)]) if isinstance(rank, int) else g.Unsqueeze(count_range(g, rank), [0])
    )
    return cast(g, g.Or(g.Equal(listed, front), g.Equal(listed, g.Sub(front, rank))), DType.INT64)


def mark_axes(g, axes: Value, rank: int | Value):
    """1 for each of ``rank`` axes that is listed, 0 for the others."""
    if axes.ranked_shape != ():
        axes = g.Concat(cast(g, axes, DType.INT64), [NO_AXIS], axis=0)  # none may be listed
    return g.ReduceMax(match_axes(g, axes, rank), [0], keepdims=0)


def scatter_by_axis(g, axes: Value, values: Value, rank: int, otherwise: int):
    """For each axis its element of ``values``; ``otherwise`` where it is not listed."""
    listed, values = (
        g.Concat(cast(g, v, DType.INT64), [more], axis=0)
        for v, more in ((axes, NO_AXIS), (values, 0))
    )
    products = g.Mul(match_axes(g, listed, rank), g.Unsqueeze(values, [1]))
    rest = g.Mul(g.Sub(1, mark_axes(g, axes, rank)), otherwise)
    return g.Add(g.ReduceSum(products, [0], keepdims=0), rest)


def select_sizes(g, sizes: Value, mark: Value):
    """``sizes`` where ``mark`` is 1, and 1 elsewhere."""
    return g.Add(g.Mul(sizes, mark), g.Sub(1, mark))


def drop_marked(g, sizes: Value, mark: Value, left: int | None):
    """The ``left`` elements of ``sizes`` where ``mark`` is 0."""
    if left is None:
        return g.Compress(sizes, g.Equal(mark, 0), axis=0)
    kept = g.Sub(1, mark)
    place = g.Unsqueeze(g.CumSum(kept, 0, exclusive=1), [0])
    chosen = cast(g, g.Equal(place, g.const(arrays.arange(left)[:, None])), DType.INT64)
    return g.ReduceSum(g.Mul(chosen, g.Mul(kept, sizes)), [1], keepdims=0)


def static_length(axes: Value) -> int | None:
    """How many axes are listed, where that is known."""
    count = axes.ranked_shape[0] if axes.ranked_shape else 1
    return count if isinstance(count, int) else None


def apply_along(g, x: Value, axis: Value, apply, kept: int = 0, resized: bool = False):
    """Apply a function of a tensor along its axis 1, where ``axis`` of ``x`` is put for it.

    The axes before it are made one, and those behind it; the last ``kept`` axes stay.
    """
    rank = x.rank - kept
    shape, rest = g.Shape(x, start=0, end=rank), [g.Shape(x, start=rank)] if kept else []
    at = g.Slice(mark_axes(g, axis, x.rank), [0], [rank], [0], [1])
    before, behind = (
        g.ReduceSum(g.Mul(at, np.tri(rank, k=-1, dtype=np.int64).T[::way, ::way]), [1], keepdims=0)
        for way in (1, -1)
    )
    sizes = [g.ReduceProd(select_sizes(g, shape, m), [0], keepdims=1) for m in (before, at, behind)]
    y = apply(g.Reshape(x, g.Concat(*sizes, *rest, axis=0)))
    if resized:
        here = g.Mul(g.Shape(y, start=1, end=2), at)
        shape = g.Add(g.Mul(shape, g.Sub(1, at)), here)
        rest = [g.Shape(y, start=3)]
    return g.Reshape(y, g.Concat(shape, *rest, axis=0))
