"""Counts of elements, and the distinct ones among them."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType
from serde.spec.expressions import END

from ..promotion import as_type
from ..rules import reads


@reads("_unique2")
def read_unique(g, x, *, return_inverse, return_counts, outputs=1):
    return find_unique(g, x, None, outputs)


@reads("unique_dim")
def read_unique_rows(g, x, dim, *, return_inverse, return_counts, outputs=1):
    return find_unique(g, x, axis_of(dim, x.rank), outputs)


def find_unique(g, x, axis, outputs):
    """In order, whether that is asked for or not, as PyTorch does."""
    y, _, inverse, counts = g.Unique(x, axis=axis, sorted=1, outputs=4)
    if axis is None:
        inverse = g.Reshape(inverse, g.Shape(x))
    return (y, inverse, counts)[:outputs]


@reads("unique_consecutive")
def read_unique_neighbours(g, x, *, return_inverse, return_counts, dim, outputs=1):
    """What differs from the element before."""
    require(dim is None, "dim= of unique_consecutive: leave it out, or compare neighbours")
    flat = g.Reshape(x, [-1])
    differs = g.Not(g.Equal(g.slice_axis(flat, 0, 1, END), g.slice_axis(flat, 0, 0, -1)))
    is_first = g.Concat(g.slice_axis(g.full_like(flat, 1, DType.BOOL), 0, 0, 1), differs, axis=0)
    y = g.Compress(flat, is_first, axis=0)
    group = g.Sub(g.CumSum(g.cast(is_first, DType.INT64), g.const(0, DType.INT64)), 1)
    starts = g.Squeeze(g.NonZero(is_first), [0])
    ends = g.Concat(g.slice_axis(starts, 0, 1, END), g.shape_from([g.size_of(flat, 0)]), axis=0)
    return (y, g.Reshape(group, g.Shape(x)), g.Sub(ends, starts))[:outputs]


@reads("bincount")
def read_counts(g, x, weights, minlength):
    """How often each number up to the largest is there."""
    largest = g.Max(g.ReduceMax(g.cast(x, DType.INT64), keepdims=0), -1)
    count = g.Max(g.Add(largest, 1), minlength)
    numbers = g.Range(g.const(0, DType.INT64), count, g.const(1, DType.INT64))
    is_there = g.Equal(g.Unsqueeze(numbers, [1]), g.cast(x, DType.INT64))
    dtype = DType.INT64 if weights is None else weights.type
    if weights is not None and dtype is not DType.FLOAT32:
        dtype = DType.FLOAT64
    shares = g.const(1, dtype) if weights is None else g.cast(weights, dtype)
    return g.ReduceSum(g.Where(is_there, shares, as_type(g, 0, dtype)), [1], keepdims=0)


@reads("histc")
def read_histogram(g, x, bins, low, high):
    """How many elements lie in each of equal parts of a range."""
    require(low != high, f"min={low} and max={high} of histc: give the range")
    lowest, highest = (as_type(g, float(v), x.type) for v in (low, high))
    part = g.Div(g.Mul(g.Sub(g.Reshape(x, [-1]), lowest), float(bins)), g.Sub(highest, lowest))
    part = g.Min(g.Floor(part), as_type(g, float(bins - 1), x.type))
    is_inside = g.And(g.GreaterOrEqual(x, lowest), g.LessOrEqual(x, highest))
    numbers = g.const(np.arange(bins)[:, None].astype(x.type.numpy))
    is_there = g.And(g.Equal(numbers, part), g.Reshape(is_inside, [-1]))
    return g.ReduceSum(g.cast(is_there, x.type), [1], keepdims=0)
