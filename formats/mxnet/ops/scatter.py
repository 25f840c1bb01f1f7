"""Putting elements in places, and finding the places of elements."""

from __future__ import annotations

import math

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints, axis_of
from serde.ir.graph import DType, Tensor, Value

from ..rules import Bounds, Floats, reads, reads_between
from ..target import writes
from .indexing import clip_indices
from .slicing import read_slice


@reads("scatter_nd")
def read_scatter_nd(g, x, index, *, shape: Ints):
    """The first axis of ``index`` counts the axes of the result; elsewhere there are zeros."""
    require(isinstance(index.ranked_shape[0], int), "needs to know how many axes are indexed")
    empty = Tensor.of(np.zeros(1, x.type.numpy))
    places = g.Transpose(g.cast(index, DType.INT64), perm=(*range(1, index.rank), 0))
    return g.ScatterND(g.ConstantOfShape(list(shape), value=empty), places, x)


@reads("_contrib_index_copy")
def read_index_copy(g, x, index, new):
    """Rows of ``new`` in place of those ``index`` names."""
    return g.ScatterND(x, g.Unsqueeze(g.cast(index, DType.INT64), [1]), new)


@reads("batch_take")
def read_batch_take(g, x, index):
    """One element of each row."""
    places = g.Unsqueeze(clip_indices(g, index, g.size_of(x, 1)), [1])
    return g.Squeeze(g.GatherElements(x, places, axis=1), [1])


def assign_slice(g, x: Value, begin: Bounds, end: Bounds, step: Bounds, values):
    """``x`` with part of it replaced by ``values`` of the places' shape."""
    every = g.Reshape(g.index_range(g.multiply_sizes(g.sizes_of(x))), g.Shape(x))
    places = read_slice(g, every, begin=begin, end=end, step=step)
    flat = (g.Reshape(v, [-1]) for v in (x, places, values(places)))
    return g.Reshape(g.ScatterElements(*flat, axis=0), g.Shape(x))


@reads("_slice_assign")
def read_slice_assign(g, x, new, *, begin: Bounds, end: Bounds, step: Bounds = ()):
    return assign_slice(g, x, begin, end, step, lambda places: new)


@reads("_slice_assign_scalar")
def read_slice_assign_scalar(g, x, *, begin: Bounds, end: Bounds, step: Bounds = (), scalar=0.0):
    number = g.const(np.array(scalar).astype(x.type.numpy))
    return assign_slice(g, x, begin, end, step, lambda places: g.Expand(number, g.Shape(places)))


@reads("_contrib_boolean_mask", only={"axis": (0,)})
def read_boolean_mask(g, x, index):
    return g.Compress(x, g.is_true(index), axis=0)


@reads("_npx_nonzero")
def read_nonzero(g, x):
    """One row for each element that is not zero."""
    return g.Transpose(g.NonZero(x), perm=(1, 0))


@reads("_npi_unique")
def read_unique(
    g, x, *, return_index=False, return_inverse=False, return_counts=False, axis: int | None = None
):
    """The different elements in order, where each is first, which each is, and how often it is."""
    at = None if axis is None else axis_of(axis, x.rank)
    values, *outputs = g.Unique(x, axis=at, sorted=1, outputs=4)
    expected = (return_index, return_inverse, return_counts)
    extras = tuple(v for v, w in zip(outputs, expected, strict=True) if w)
    return (values, *extras) if extras else values


def strides_of(shape: Ints) -> Ints:
    """How far apart in memory neighbours along each axis are."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


@reads("_ravel_multi_index")
def read_ravel(g, x, *, shape: Ints = ()):
    """The place in the flattened tensor of each column of indices."""
    weights = g.const(np.array(strides_of(shape), np.int64).reshape(-1, *[1] * (x.rank - 1)))
    return g.ReduceSum(g.Mul(x, g.cast_like(weights, x)), [0], keepdims=0)


@reads("_unravel_index")
def read_unravel(g, x, *, shape: Ints = ()):
    """The indices, along a new first axis, of places in the flattened tensor."""
    require(x.rank == 1, f"places along {x.rank} axes, which MXNet computes wrongly")
    places = g.cast(x, DType.INT64)
    rows = [g.Div(places, stride) for stride in strides_of(shape)]
    rows = [rows[0], *(g.Mod(r, size) for r, size in zip(rows[1:], shape[1:], strict=True))]
    return g.cast_like(g.stack(rows, 0), x)


@reads_between(0, 10500)("_unravel_index")
def read_old_unravel(g, x, *, shape: Ints = ()):
    """Before MXNet 1.5 no size may be left open."""
    require(min(shape, default=0) >= 0, f"shape={shape}, which MXNet before 1.5 computes wrongly")
    return read_unravel(g, x, shape=shape)


@reads("_histogram")
def read_histogram(g, x, bins=None, *, bin_cnt: int | None = None, range: Floats | None = None):
    """How many elements lie between neighbours of a row of edges, the last one included."""
    if bins is None:
        ends = range or ()
        require(bin_cnt is not None and len(ends) == 2, "needs bin_cnt and range")
        bins = g.const(arrays.linspace(ends[0], ends[1], bin_cnt + 1).astype(x.type.numpy))
    flat = g.Reshape(x, [-1, 1])
    low, high = g.Slice(bins, [0], [-1], [0], [1]), g.Slice(bins, [1], [2**31 - 1], [0], [1])
    last = g.Equal(high, g.Gather(bins, -1, axis=0))
    below = g.Or(g.Less(flat, high), g.And(last, g.Equal(flat, high)))
    inside = g.And(g.GreaterOrEqual(flat, low), below)
    return g.ReduceSum(g.cast(inside, DType.INT64), [0], keepdims=0), bins


@reads("_npi_bincount", ignore=("has_weights",))
def read_bincount(g, x, weights=None, *, minlength=0):
    """How often each number from 0 occurs, or the sum of the weights that stand with it."""
    places = g.cast(x, DType.INT64)
    most = g.Add(g.ReduceMax(places, [0], keepdims=0), 1)
    hit = g.Equal(g.Unsqueeze(places, [1]), g.Range(0, g.Max(most, minlength), 1))
    if weights is None:
        return g.cast_like(g.ReduceSum(g.cast(hit, DType.INT64), [0], keepdims=0), x)
    return g.ReduceSum(g.Mul(g.cast_like(hit, weights), g.Unsqueeze(weights, [1])), [0], keepdims=0)


@writes("NonZero")
def write_non_zero(s, x):
    """The number of places is dynamic; a value of no axes has none."""
    return s.transpose(s["_npx_nonzero"](x), axes=(1, 0))
