"""Operators that pick elements by indices."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value

from ..target import TfliteBuilder, derive, writes
from .shapes import find_lengths


def wrap_indices(t: TfliteBuilder, x: Value, places: range, indices: Value) -> Value:
    """Indices along axes, counted from the front, as int32 where they are constant."""
    if indices.tensor is None:
        return wrap_computed(t, indices, find_lengths(t, x, places, indices.type))
    sizes = x.ranked_shape[places.start : places.stop]
    is_front = not (indices.array() < 0).any()
    require(is_front or all(isinstance(d, int) for d in sizes), "constant indices from the end of "
            "a size by name. Give numbers (--static, --input)")  # fmt: skip
    lengths = 0 if is_front else sizes[0] if len(sizes) == 1 else np.asarray(sizes)
    return derive(t, indices, lambda a: np.where(a < 0, a + lengths, a).astype(np.int32),
                  indices.static_shape, DType.INT32)  # fmt: skip


@writes("Gather")
def write_gather(t: TfliteBuilder, x: Value, indices: Value, *, axis: int):
    place = axis_of(axis, x.rank)
    shape = (*x.ranked_shape[:place], *indices.ranked_shape, *x.ranked_shape[place + 1 :])
    wrapped = wrap_indices(t, x, range(place, place + 1), indices)
    return t.make("GATHER", [x, wrapped], x.dtype, shape, axis=place)


@writes("GatherND", only={"batch_dims": (0,)})
def write_gather_nd(t: TfliteBuilder, x: Value, indices: Value):
    depth = indices.ranked_shape[-1]
    require(isinstance(depth, int), "as many indices as a name says. Give numbers (--static)")
    shape = (*indices.ranked_shape[:-1], *x.ranked_shape[depth:])
    return t.make("GATHER_ND", [x, wrap_indices(t, x, range(depth), indices)], x.dtype, shape)


@writes("NonZero")
def write_non_zero(t: TfliteBuilder, x: Value):
    """The places row by row, turned."""
    if x.dtype is not DType.BOOL:
        zero = t.const(np.asarray(0, x.type.numpy))
        x = t.make("NOT_EQUAL", [x, zero], DType.BOOL, x.shape)
    return t.transpose(t.make("WHERE", [x], DType.INT64, (None, x.rank)), (1, 0))


def wrap_computed(t: TfliteBuilder, indices: Value, lengths: Value) -> Value:
    """Computed indices, those below 0 from the end of their axes: remainders by known sizes."""
    lengths = t.reshape(lengths, ()) if lengths.ranked_shape == (1,) else lengths
    if lengths.tensor is not None and np.all(lengths.array() > 0):
        return t.make("FLOOR_MOD", [indices, lengths], indices.dtype, indices.shape)
    zero = t.const(np.asarray(0, indices.type.numpy))
    is_low = t.make("LESS", [indices, zero], DType.BOOL, indices.shape)
    moved = t.make("ADD", [indices, lengths], indices.dtype, indices.shape)
    return t.make("SELECT_V2", [is_low, moved, indices], indices.dtype, indices.shape)
