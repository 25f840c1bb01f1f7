"""Operators that pick elements by indices."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value

from ..target import TfliteBuilder, derive, writes


def wrap_indices(t: TfliteBuilder, indices: Value, size: int) -> Value:
    """Indices counted from the front, as int32 where they are constant."""
    if indices.tensor is None:
        return wrap_computed(t, indices, size)
    return derive(t, indices, lambda a: np.where(a < 0, a + size, a).astype(np.int32),
                  indices.static_shape, DType.INT32)  # fmt: skip


@writes("Gather")
def write_gather(t: TfliteBuilder, x: Value, indices: Value, *, axis: int):
    place = axis_of(axis, x.rank)
    size = x.ranked_shape[place]
    require(isinstance(size, int), "indices of a size by name. Give numbers (--static, --input)")
    shape = (*x.ranked_shape[:place], *indices.ranked_shape, *x.ranked_shape[place + 1 :])
    return t.make("GATHER", [x, wrap_indices(t, indices, size)], x.dtype, shape, axis=place)


@writes("GatherND", only={"batch_dims": (0,)})
def write_gather_nd(t: TfliteBuilder, x: Value, indices: Value):
    depth = indices.ranked_shape[-1]
    sizes = np.asarray(x.static_shape[:depth], np.int64)
    if indices.tensor is None:
        places = wrap_computed(t, indices, sizes)
    else:
        places = derive(t, indices, lambda a: np.where(a < 0, a + sizes, a).astype(np.int32),
                        indices.static_shape, DType.INT32)  # fmt: skip
    shape = (*indices.ranked_shape[:-1], *x.static_shape[depth:])
    return t.make("GATHER_ND", [x, places], x.dtype, shape)


@writes("NonZero")
def write_non_zero(t: TfliteBuilder, x: Value):
    """The places row by row, turned."""
    if x.dtype is not DType.BOOL:
        zero = t.const(np.asarray(0, x.type.numpy))
        x = t.make("NOT_EQUAL", [x, zero], DType.BOOL, x.shape)
    return t.transpose(t.make("WHERE", [x], DType.INT64, (None, x.rank)), (1, 0))


def wrap_computed(t: TfliteBuilder, indices: Value, sizes) -> Value:
    """Computed indices, those below 0 from the end."""
    zero, length = (t.const(np.asarray(n, indices.type.numpy)) for n in (0, sizes))
    is_low = t.make("LESS", [indices, zero], DType.BOOL, indices.shape)
    moved = t.make("ADD", [indices, length], indices.dtype, indices.shape)
    return t.make("SELECT_V2", [is_low, moved, indices], indices.dtype, indices.shape)
