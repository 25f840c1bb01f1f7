"""The n-th values in order: medians and quantiles, NaN where an element is."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType

from ..rules import reads
from .reduction import sorted_pair

# How much of the next value a quantile takes between two, by the part of the way to it.
BETWEEN = {
    "linear": lambda g, part: part,
    "lower": lambda g, part: g.Mul(part, g.const(0.0, part.type)),
    "higher": lambda g, part: g.Ceil(part),
    "midpoint": lambda g, part: g.Mul(g.Ceil(part), g.const(0.5, part.type)),
}  # fmt: skip


@reads("kthvalue")
def read_kth_value(g, x, k, dim, keepdim):
    """The k-th smallest, counted from 1, and where it is."""
    if x.rank == 0:
        return sorted_pair(g, x, None, dim, False)
    axis = axis_of(dim, x.rank)
    pair = sorted_pair(g, x, k, axis, False)
    last = g.const(-1 if keepdim is False else [-1], DType.INT64)
    return tuple(g.Gather(y, last, axis=axis) for y in pair)


@reads("median.dim")
def read_median(g, x, dim, keepdim):
    """The lower of the two in the middle."""
    if x.rank == 0:
        return sorted_pair(g, x, None, dim, False)
    size = g.size_of(x, axis_of(dim, x.rank))
    middle = (size + 1) // 2 if isinstance(size, int) else g.Div(g.Add(size, 1), 2)
    value, place = read_kth_value(g, x, middle, dim, keepdim)
    if x.type.kind != "f":
        return value, place
    axis = axis_of(dim, x.rank)
    is_nan, has_nan = find_nan(g, x, axis, int(keepdim))
    first = g.ArgMax(is_nan, axis=axis, keepdims=int(keepdim))
    nan = g.const(float("nan"), x.type)
    return g.Where(has_nan, nan, value), g.Where(has_nan, first, place)


def find_nan(g, x, axis, keepdims):
    """Which elements are NaN, as integers, and whether one along the axis is."""
    is_nan = g.cast(g.IsNaN(x), DType.INT32)
    return is_nan, g.is_true(g.ReduceMax(is_nan, [axis], keepdims=keepdims))


@reads("median")
def read_median_of_all(g, x):
    return read_median(g, g.reshape(x, [-1]), 0, False)[0]


@reads("quantile.scalar", "quantile")
def read_quantile(g, x, q, dim, keepdim, *, interpolation):
    """Of the way from the first to the last in order, the value there or between two."""
    require(interpolation in BETWEEN, f"interpolation={interpolation!r}: use 'linear'")
    rank = x.rank
    flat, axis = (g.reshape(x, [-1]), 0) if dim is None else (x, axis_of(dim, rank))
    parts = g.const([q], x.type) if isinstance(q, float) else q
    is_one = parts is not q or parts.rank == 0
    parts = g.reshape(parts, [-1])
    values, _ = sorted_pair(g, flat, None, axis, False)
    size = g.size_of(flat, axis)
    last = g.const([size - 1]) if isinstance(size, int) else g.Sub(size, 1)
    place = g.Mul(parts, g.cast_like(last, x))
    low = g.Floor(place)
    at = g.cast(low, DType.INT64)
    below, above = (g.Gather(values, i, axis=axis) for i in (at, g.Min(g.Add(at, 1), last)))
    share = BETWEEN[interpolation](g, g.Sub(place, low))
    share = g.reshape(share, [-1, *[1] * (flat.rank - 1 - axis)])
    y = g.Add(below, g.Mul(share, g.Sub(above, below)))
    _, has_nan = find_nan(g, flat, axis, 1)
    y = g.Where(has_nan, g.const(float("nan"), x.type), y)
    if is_one and dim is None:
        return g.reshape(y, [1] * rank if keepdim else [])
    if is_one:
        return y if keepdim else g.Squeeze(y, [axis])
    y = g.Transpose(y, perm=[axis, *(n for n in range(flat.rank) if n != axis)])
    if dim is None:
        return g.reshape(y, [-1, *[1] * rank]) if keepdim else y
    return g.Unsqueeze(y, [axis + 1]) if keepdim else y
