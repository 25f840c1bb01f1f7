"""Picking elements of a tensor by index, and putting them in places."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.decompositions.indexing import one_hot
from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints, axis_of
from serde.ir.graph import DType, Value
from serde.spec.expressions import Size, number

from ..rules import reads
from ..target import emit_scalar, legalizations, set_type, writes


def clip_indices(g, index: Value, size: Size):
    """Indices as int64, those outside ``0 … size - 1`` moved to the nearest end."""
    index = g.cast(index, DType.INT64)
    low = g.const(0, DType.INT64)
    high = g.const(size - 1, DType.INT64) if isinstance(size, int) else g.Squeeze(
        g.Sub(size, [1]), [0]
    )  # fmt: skip
    return g.Min(g.Max(index, low), high)


@reads("take")
def read_take(g, x, index, *, batch_dims=0, axis: int | None = None, mode="clip"):
    """Indices count from the front; ``clip`` and ``wrap`` say what those outside mean."""
    if axis is None:
        x, axis = g.Reshape(x, [-1]), 0
    axis = axis_of(axis, x.rank)
    size = g.size_of(x, axis)
    require(mode in ("clip", "wrap", "fast"), f"mode={mode!r} is unknown")
    if mode == "clip":
        index = clip_indices(g, index, size)
    elif mode == "wrap":
        index = g.Mod(g.cast(index, DType.INT64), g.const(size) if isinstance(size, int) else size)
    else:
        index = g.cast(index, DType.INT64)
    if batch_dims:
        return take_in_batches(g, x, index, axis, batch_dims % index.rank)
    return g.Gather(x, index, axis=axis)


def take_in_batches(g, x: Value, index: Value, axis: int, batch: int):
    """The first ``batch`` axes of both run along together."""
    require(axis == batch, f"batch_dims={batch} with axis={axis}")
    return g.GatherND(x, g.Unsqueeze(index, [index.rank]), batch_dims=batch)


@reads("gather")
def read_gather(g, x, index, *, axis: int):
    return g.GatherElements(x, g.cast(index, DType.INT64), axis=axis_of(axis, x.rank))


@reads("gather_nd", ignore=("index_rank",))
def read_gather_nd(g, x, index, *, batch_dims=0):
    """Relay counts the indices' axes along their first axis, ONNX along the last."""
    order = (*range(1, index.rank), 0)
    index = g.cast(g.Transpose(index, perm=order), DType.INT64)
    return g.GatherND(x, index, batch_dims=batch_dims)


@reads("adv_index")
def read_adv_index(g, x, *indices):
    """Arrays of indices for the first axes, broadcast against each other."""
    rank = max(i.rank for i in indices)
    parts = [g.cast(i, DType.INT64) for i in indices]
    shape = parts[0]
    for part in parts[1:]:
        shape = g.Add(shape, part)
    coordinates = [g.Unsqueeze(g.Expand(p, g.Shape(shape)), [rank]) for p in parts]
    return g.GatherND(
        x, g.Concat(*coordinates, axis=rank) if len(coordinates) > 1 else coordinates[0]
    )


@reads("argwhere")
def read_argwhere(g, condition):
    """The coordinates of what is not 0, one row each."""
    indices = g.NonZero(g.cast(condition, DType.BOOL))
    return g.cast(g.Transpose(indices, perm=(1, 0)), DType.INT32)


@reads("reverse_sequence")
def read_reverse_sequence(g, x, lengths, *, seq_axis=1, batch_axis=0):
    seq, batch = axis_of(seq_axis, x.rank), axis_of(batch_axis, x.rank)
    order = (seq, batch, *(a for a in range(x.rank) if a not in (seq, batch)))
    back = tuple(order.index(a) for a in range(x.rank))
    turned = g.Transpose(x, perm=order)
    y = g.ReverseSequence(turned, g.cast(lengths, DType.INT64), time_axis=0, batch_axis=1)
    return g.Transpose(y, perm=back)


REDUCTIONS = {"update": "none", "add": "add", "mul": "mul", "min": "min", "max": "max"}
SCATTERED = {op: name for name, op in REDUCTIONS.items()}


@reads("scatter_elements")
def read_scatter_elements(g, x, index, updates, *, axis=0, reduction="update"):
    require(reduction != "mean", "reduction='mean', which depends on the order of the updates")
    require(reduction in REDUCTIONS, f"reduction={reduction!r} is unknown")
    return g.ScatterElements(
        x, g.cast(index, DType.INT64), updates,
        axis=axis_of(axis, x.rank), reduction=REDUCTIONS[reduction],
    )  # fmt: skip


@reads.for_each({"scatter": "update", "scatter_add": "add"})
def read_older_scatter(reduction, g, x, index, updates, *, axis=0):
    """As TVM had it up to 0.11."""
    return read_scatter_elements(g, x, index, updates, axis=axis, reduction=reduction)


@reads("scatter_nd")
def read_scatter_nd(g, x, index, updates, *, mode="update"):
    require(mode in REDUCTIONS, f"mode={mode!r}")
    order = (*range(1, index.rank), 0)
    index = g.cast(g.Transpose(index, perm=order), DType.INT64)
    return g.ScatterND(x, index, updates, reduction=REDUCTIONS[mode])


@reads("sparse_to_dense")
def read_sparse_to_dense(g, index, values, default, *, output_shape: Ints):
    return to_dense(g, index, values, default, g.const(list(output_shape), DType.INT64))


@reads("dyn.sparse_to_dense")
def read_dyn_sparse_to_dense(g, index, values, default, shape):
    return to_dense(g, index, values, default, g.cast(shape, DType.INT64))


def to_dense(g, index: Value, values: Value, default: Value, shape: Value):
    """``values`` at ``index`` (a position, a row of positions, or of coordinates)."""
    index = g.cast(index, DType.INT64)
    if index.rank == 0:
        index, values = g.Reshape(index, [1, 1]), g.Reshape(values, [1])
    elif index.rank == 1:
        index = g.Unsqueeze(index, [1])
    if values.rank == 0:
        values = g.Expand(values, g.Shape(index, start=0, end=1))
    base = g.Expand(g.Reshape(default, []), shape)
    return g.ScatterND(base, index, values)


@reads("matrix_set_diag")
def read_matrix_set_diag(
    g, x, diagonal, *, k1=0, k2=0, super_diag_right_align=True, sub_diag_right_align=False
):
    """Each diagonal from ``k1`` to ``k2``, the uppermost first, in place of that of ``x``."""
    rows, columns = x.ranked_shape[-2:]
    require(isinstance(rows, int) and isinstance(columns, int), "a matrix of unknown size")
    diagonal = diagonal if k1 != k2 else g.Unsqueeze(diagonal, [x.rank - 2])
    i, j = arrays.indices((rows, columns))
    for k in range(k1, k2 + 1):
        length = min(rows + min(k, 0), columns - max(k, 0))
        right = super_diag_right_align if k >= 0 else sub_diag_right_align
        first = diagonal.ranked_shape[-1] - length if right else 0
        inside = j - i == k
        places = np.where(inside, np.minimum(i, j) + first, 0)
        row = g.Gather(diagonal, g.const(k2 - k, DType.INT64), axis=x.rank - 2)
        spread = g.Gather(row, g.const(places.astype(np.int64)), axis=x.rank - 2)
        x = g.Where(g.const(inside), spread, x)
    return x


@reads("one_hot")
def read_one_hot(g, index, on, off, *, depth: int, axis=-1, dtype: DType | None = None):
    return make_one_hot(g, index, on, off, g.const(depth, DType.INT64), axis, dtype)


@reads("dyn.one_hot", ignore=("depth",))
def read_dyn_one_hot(g, index, on, off, depth, *, axis=-1, dtype: DType | None = None):
    return make_one_hot(g, index, on, off, g.cast(g.Reshape(depth, []), DType.INT64), axis, dtype)


def make_one_hot(
    g, index: Value, on: Value, off: Value, depth: Value, axis: int, dtype: DType | None
):
    """Indices outside the range give a row of ``off`` only."""
    at = axis_of(axis, index.rank + 1)
    classes = g.Range(g.const(0, DType.INT64), depth, g.const(1, DType.INT64))
    behind = index.rank - at
    classes = g.Unsqueeze(classes, list(range(1, behind + 1))) if behind else classes
    same = g.Equal(g.Unsqueeze(g.cast(index, DType.INT64), [at]), classes)
    kind = dtype or on.type
    one, other = (g.Reshape(g.cast(v, kind), []) for v in (on, off))
    return g.Where(same, one, other)


def from_front(r, index: Value, x: Value, axis: int) -> Value:
    """Indices along one axis of ``x``, those below 0 counted from the end."""
    size: Any = x.ranked_shape[axis]
    if index.tensor is not None and isinstance(size, int):
        numbers = index.array()
        return (
            r.const(np.where(numbers < 0, numbers + size, numbers))
            if (numbers < 0).any()
            else index
        )
    if not isinstance(size, int):
        shape = r.shape_of(x, dtype="int64")
        size = r.take(shape, emit_scalar(r, axis, DType.INT64), axis=0)
        size = r.cast(size, dtype=index.type.value)
    else:
        size = emit_scalar(r, size, index.type)
    below = r.less(index, emit_scalar(r, 0, index.type))
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


@legalizations("GatherElements")
def legalize_gather_elements(g, x, index, *, axis: int):
    """To TVM, data and indices agree along the other axes; to the standard, the rest is unread."""
    ends = find_short_axes(x, index, axis)
    if not ends:
        return None
    first = g.Slice(x, [0] * len(ends), list(ends.values()), list(ends), [1] * len(ends))
    return g.GatherElements(first, index, axis=axis)


@legalizations("ScatterElements")
def legalize_scatter_elements(g, x, index, updates, *, axis: int, reduction: str):
    """The same of updates: TVM counts rows of the data, so those of fewer are given all indices."""
    if not find_short_axes(x, index, axis) or not index.is_static:
        return None
    places = arrays.indices(index.static_shape)
    columns = [g.Unsqueeze(index if i == axis else places[i].astype(index.type.numpy), [index.rank])
               for i in range(x.rank)]  # fmt: skip
    rows = g.cast(g.Concat(*columns, axis=index.rank), DType.INT64)
    return g.ScatterND(x, rows, updates, reduction=reduction)


def find_short_axes(x: Value, index: Value, axis: int) -> dict[int, int]:
    """Axes other than ``axis`` along which there are fewer indices than elements, and how many."""
    sizes = enumerate(zip(x.ranked_shape, index.ranked_shape, strict=True))
    return {
        i: b for i, (a, b) in sizes
        if i != axis and isinstance(a, int) and isinstance(b, int) and a != b
    }  # fmt: skip


def places(r, index: Value, x: Value, batch: int = 0) -> Value:
    """Indices of several axes, their last axis in front, as Relay has them."""
    count = index.ranked_shape[-1]
    require(isinstance(count, int), "indices of a dynamic number of axes")
    sizes = x.ranked_shape[batch : batch + count]
    if index.tensor is not None and all(isinstance(d, int) for d in sizes):
        numbers = index.array()
        index = r.const(np.where(numbers < 0, numbers + np.array(sizes, numbers.dtype), numbers))
    else:
        shape = r.shape_of(x, dtype="int64")
        part = r.strided_slice(shape, begin=[batch], end=[batch + count], strides=[1], axes=[0])
        below = r.less(index, emit_scalar(r, 0, index.type))
        counted = r.add(index, r.cast(part, dtype=index.type.value))
        index = set_type(r.where(below, counted, index), index.dtype, index.shape)
    order = (index.rank - 1, *range(index.rank - 1))
    return r.transpose(index, axes=order) if index.rank > 1 else index


@writes("GatherND")
def write_gather_nd(r, x, index, *, batch_dims: int):
    count = index.ranked_shape[-1]
    return r.gather_nd(x, places(r, index, x, batch_dims), batch_dims=batch_dims, index_rank=count)


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


@legalizations("NonZero")
def legalize_non_zero(g, x):
    """TVM takes NaN for zero."""
    require(x.rank > 0, "the places in a tensor of no axes")
    if x.type.kind == "f":
        flags = [g.const(n, DType.UINT8) for n in (0, 1)]
        return g.NonZero(g.Where(g.Equal(x, g.const(0, x.type)), *flags))
    return g.NonZero(g.cast(x, DType.UINT8)) if x.type is DType.BOOL else None


@writes("OneHot")
def write_one_hot(r, index, depth, values, *, axis: int):
    """Indices below 0 count from the end; those out of range mark nothing."""
    count = int(number(depth))
    low, high = (r.take(values, emit_scalar(r, i, DType.INT64), axis=0) for i in (0, 1))
    size = emit_scalar(r, count, index.type)
    below = r.less(index, emit_scalar(r, 0, index.type))
    counted = r.where(below, r.add(index, size), index)
    kind, axis = values.type.value, axis % (index.rank + 1)
    return r.one_hot(counted, high, low, depth=count, axis=axis, dtype=kind)


@legalizations("OneHot")
def legalize_one_hot(g, index, depth, values, *, axis: int):
    """Of integers, of a depth that is known; otherwise a comparison."""
    if index.type.kind not in "iu":
        return g.OneHot(g.cast(index, DType.INT64), depth, values, axis=axis)
    if number(depth) is not None and index.rank:
        return None
    return one_hot(g, index, depth, values, axis=axis)
