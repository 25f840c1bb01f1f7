"""Statistics of elements: the most frequent one, and the middle of those that are numbers."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType

from ..promotion import as_type
from ..rules import reads
from .quantiles import read_median
from .reduction import sorted_pair


@reads("mode")
def read_mode(g, x, dim, keepdim):
    """The least of the most frequent elements, and the last place that it has."""
    if x.rank == 0:
        return sorted_pair(g, x, None, dim, False)
    axis = axis_of(dim, x.rank)
    one, other = g.Unsqueeze(x, [axis + 1]), g.Unsqueeze(x, [axis])
    count = g.ReduceSum(g.cast(g.Equal(one, other), DType.INT64), [axis + 1], keepdims=0)
    is_most = g.Equal(count, g.ReduceMax(count, [axis], keepdims=1))
    kind = x.type.numpy
    greatest = np.inf if x.type.kind == "f" else np.iinfo(kind).max
    least = g.ReduceMin(g.Where(is_most, x, as_type(g, greatest, x.type)), [axis], keepdims=1)
    is_there = g.cast(g.Equal(x, least), DType.INT32)
    place = g.ArgMax(is_there, axis=axis, keepdims=int(keepdim), select_last_index=1)
    return least if keepdim else g.Squeeze(least, [axis]), place


@reads("nanmedian.dim")
def read_nanmedian(g, x, dim, keepdim):
    """The lower of the two in the middle of those that are numbers; NaN where none is."""
    if x.type.kind != "f" or x.rank == 0:
        return read_median(g, x, dim, keepdim)
    axis = axis_of(dim, x.rank)
    is_nan = g.IsNaN(x)
    ordered = g.Where(is_nan, as_type(g, np.inf, x.type), x)
    values, places = sorted_pair(g, ordered, None, axis, False)
    count = g.ReduceSum(g.cast(g.Not(is_nan), DType.INT64), [axis], keepdims=1)
    middle = g.Max(g.Div(g.Sub(count, 1), 2), as_type(g, 0, DType.INT64))
    value, place = (g.GatherElements(y, middle, axis=axis) for y in (values, places))
    value = g.Where(g.Equal(count, as_type(g, 0, DType.INT64)), as_type(g, np.nan, x.type), value)
    return (value, place) if keepdim else (g.Squeeze(value, [axis]), g.Squeeze(place, [axis]))


@reads("nanmedian")
def read_nanmedian_of_all(g, x):
    return read_nanmedian(g, g.reshape(x, [-1]), 0, False)[0]


@reads("nanquantile.scalar", "nanquantile")
def read_nanquantile(g, x, q, dim, keepdim, *, interpolation):
    require(interpolation == "linear", f"interpolation={interpolation!r}: use 'linear'")
    flat, axis = (g.reshape(x, [-1]), 0) if dim is None else (x, axis_of(dim, x.rank))
    require(isinstance(q, float), "nanquantile of several parts: compute them one by one")
    is_nan = g.IsNaN(flat)
    ordered = g.Where(is_nan, as_type(g, np.inf, x.type), flat)
    values, _ = sorted_pair(g, ordered, None, axis, False)
    count = g.ReduceSum(g.cast(g.Not(is_nan), DType.INT64), [axis], keepdims=1)
    last = g.Max(g.Sub(count, 1), as_type(g, 0, DType.INT64))
    place = g.Mul(g.cast(last, x.type), as_type(g, q, x.type))
    low = g.Floor(place)
    at = g.cast(low, DType.INT64)
    ends = (at, g.Min(g.Add(at, 1), last))
    below, above = (g.GatherElements(values, i, axis=axis) for i in ends)
    y = g.Add(below, g.Mul(g.Sub(place, low), g.Sub(above, below)))
    y = g.Where(g.Equal(count, as_type(g, 0, DType.INT64)), as_type(g, np.nan, x.type), y)
    if dim is None:
        return g.reshape(y, [1] * x.rank if keepdim else [])
    return y if keepdim else g.Squeeze(y, [axis])
