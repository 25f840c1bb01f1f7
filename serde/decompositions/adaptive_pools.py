"""Adaptive pools: windows that cover each axis in as many parts as are asked for.

The window of part ``i`` of ``n`` of an axis of ``d`` elements runs from ``floor(i * d / n)`` to
``ceil((i + 1) * d / n)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from serde.ir.geometry import Ints
from serde.ir.graph import Value

MEAN, GREATEST = "mean", "max"


def is_divisible(x: Value, sizes: Sequence[int]) -> bool:
    """Whether all parts of each axis are known to be of one size."""
    pairs = zip(x.ranked_shape[2:], sizes, strict=True)
    return all(isinstance(area, int) and size and area % size == 0 for area, size in pairs)


def adaptive_pool(g, x: Value, sizes: Ints, kind: str) -> Value:
    """The means, or the greatest elements, of parts of the axes behind that of channels."""
    if is_divisible(x, sizes):
        areas = zip(x.ranked_shape[2:], sizes, strict=True)
        kernel = tuple(area // size for area, size in areas)
        pool = g.AveragePool if kind == MEAN else g.MaxPool
        return pool(x, kernel_shape=kernel, strides=kernel)  # type: ignore[no-any-return]
    return adapt_axes(g, x, sizes, kind)


def adapt_axes(g, x: Value, sizes: Ints, kind: str) -> Value:
    """The same, axis by axis."""
    adapt = take_means if kind == MEAN else take_greatest
    for axis in reversed(range(2, x.rank)):
        if x.ranked_shape[axis] != sizes[axis - 2]:
            x = adapt(g, x, axis, sizes[axis - 2])
    return x


def take_means(g, x: Value, axis: int, count: int) -> Value:
    """The means of parts of one axis, as a product with the share of each element in each."""
    weights = mean_weights(g, x, axis, count)
    if axis == x.rank - 1:
        return g.MatMul(x, weights)  # type: ignore[no-any-return]
    if axis == x.rank - 2:
        return g.MatMul(g.Transpose(weights), x)  # type: ignore[no-any-return]
    order = _swap(x, axis)
    return g.Transpose(g.MatMul(g.Transpose(x, perm=order), weights), perm=order)  # type: ignore[no-any-return]


def mean_weights(g, x: Value, axis: int, count: int) -> Value:
    """``(size, count)``: the share each element along an axis has in each of ``count`` means."""
    inside, first, behind = list_parts(g, x, axis, count)
    return g.Div(g.cast_like(inside, x), g.cast_like(g.Sub(behind, first), x))  # type: ignore[no-any-return]


def take_greatest(g, x: Value, axis: int, count: int) -> Value:
    """The greatest elements of parts of one axis."""
    inside, _, _ = list_parts(g, x, axis, count)
    order = _swap(x, axis)
    rows = g.Unsqueeze(g.Transpose(x, perm=order), [x.rank - 1])
    lowest = g.scalar(-math.inf, x)
    y = g.ReduceMax(g.Where(g.Transpose(inside), rows, lowest), [-1], keepdims=0)
    return g.Transpose(y, perm=order)  # type: ignore[no-any-return]


def list_parts(g, x: Value, axis: int, count: int) -> tuple[Value, Value, Value]:
    """Whether each element of an axis is in each part, and where parts begin and end."""
    size = g.size_of(x, axis)
    length = g.shape_from([size])
    places = g.Unsqueeze(g.index_range(size), [1])
    first = g.Div(g.Mul(g.index_range(count), length), count)
    behind = g.Div(g.Add(g.Mul(g.Add(g.index_range(count), 1), length), count - 1), count)
    return g.And(g.GreaterOrEqual(places, first), g.Less(places, behind)), first, behind


def _swap(x: Value, axis: int) -> list[int]:
    """The order of axes in which one and the last one change places."""
    order = list(range(x.rank))
    order[axis], order[-1] = order[-1], axis
    return order
