"""Operators that take elements by index, or put them somewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.decompositions import shared
from serde.decompositions.expressions import cast as cast_to
from serde.decompositions.expressions import number
from serde.errors import require
from serde.ir.graph import DType, Value

from ..target import scalar, typed, writes
from .recast import recasts


def from_front(r, index: Value, x: Value, axis: int) -> Value:
    """Indices along one axis of ``x``, those below 0 counted from the end."""
    size: Any = x.known[axis]
    if index.tensor is not None and isinstance(size, int):
        held = index.array()
        return r.const(np.where(held < 0, held + size, held)) if (held < 0).any() else index
    if not isinstance(size, int):
        whole = r.shape_of(x, dtype="int64")
        size = r.take(whole, scalar(r, axis, DType.INT64), axis=0)
        size = r.cast(size, dtype=index.type.value)
    else:
        size = scalar(r, size, index.type)
    below = r.less(index, scalar(r, 0, index.type))
    return r.where(below, r.add(index, size), index)


@writes("Gather")
def write_gather(r, x, index, *, axis: int):
    there = from_front(r, index, x, axis)
    if x.is_static or index.rank or index.tensor is not None:
        return r.take(x, there, axis=axis)
    one = r.annotation.stop_fusion(r.reshape(there, newshape=(1,)))
    return r.squeeze(r.take(x, one, axis=axis), axis=(axis,))


@writes("GatherElements")
def write_gather_elements(r, x, index, *, axis: int):
    return r.gather(x, from_front(r, index, x, axis), axis=axis)


def places(r, index: Value, x: Value, batch: int = 0) -> Value:
    """Indices of several axes, their last axis in front, as Relay has them."""
    count = index.known[-1]
    require(isinstance(count, int), "indices of a dynamic number of axes")
    sizes = x.known[batch : batch + count]
    if index.tensor is not None and all(isinstance(d, int) for d in sizes):
        held = index.array()
        index = r.const(np.where(held < 0, held + np.array(sizes, held.dtype), held))
    else:
        whole = r.shape_of(x, dtype="int64")
        part = r.strided_slice(whole, begin=[batch], end=[batch + count], strides=[1], axes=[0])
        below = r.less(index, scalar(r, 0, index.type))
        counted = r.add(index, r.cast(part, dtype=index.type.value))
        index = typed(r.where(below, counted, index), index.dtype, index.shape)
    order = (index.rank - 1, *range(index.rank - 1))
    return r.transpose(index, axes=order) if index.rank > 1 else index


@writes("GatherND")
def write_gather_nd(r, x, index, *, batch_dims: int):
    count = index.known[-1]
    return r.gather_nd(x, places(r, index, x, batch_dims), batch_dims=batch_dims, index_rank=count)


SCATTERED = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@writes("ScatterElements", only={"reduction": tuple(SCATTERED)})
def write_scatter_elements(r, x, index, updates, *, axis: int, reduction: str):
    there = from_front(r, index, x, axis)
    return r.scatter_elements(x, there, updates, axis=axis, reduction=SCATTERED[reduction])


@writes("ScatterND", only={"reduction": tuple(SCATTERED)})
def write_scatter_nd(r, x, index, updates, *, reduction: str):
    return r.scatter_nd(x, places(r, index, x), updates, mode=SCATTERED[reduction])


@writes("NonZero")
def write_non_zero(r, x):
    """Relay lists the places row by row."""
    return r.transpose(r.cast(r.argwhere(x), dtype="int64"), axes=(1, 0))


@recasts("NonZero")
def recast_non_zero(g, x):
    require(x.rank > 0, "the places in a tensor of no axes")
    return g.NonZero(cast_to(g, x, DType.UINT8)) if x.type is DType.BOOL else None


@recasts("Compress")
def recast_compress(g, x, condition, *, axis: int | None = None):
    at = g.Squeeze(g.NonZero(condition), [0])
    return g.Gather(g.Reshape(x, [-1]) if axis is None else x, at, axis=axis or 0)


@writes("OneHot")
def write_one_hot(r, index, depth, values, *, axis: int):
    """Indices below 0 count from the end; those out of range mark nothing."""
    count = int(number(depth))
    low, high = (r.take(values, scalar(r, i, DType.INT64), axis=0) for i in (0, 1))
    size = scalar(r, count, index.type)
    below = r.less(index, scalar(r, 0, index.type))
    counted = r.where(below, r.add(index, size), index)
    kind, axis = values.type.value, axis % (index.rank + 1)
    return r.one_hot(counted, high, low, depth=count, axis=axis, dtype=kind)


@recasts("OneHot")
def recast_one_hot(g, index, depth, values, *, axis: int):
    """Of integers, of a depth that is known; otherwise a comparison."""
    if index.type.kind not in "iu":
        return g.OneHot(cast_to(g, index, DType.INT64), depth, values, axis=axis)
    if number(depth) is not None and index.rank:
        return None
    return shared.one_hot(g, index, depth, values, axis=axis)
