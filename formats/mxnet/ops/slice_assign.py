"""Slices taken out of a tensor or put into it, and elements replaced where a mask says so."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import move_axis_perm
from serde.ir.graph import DType, Value
from serde.spec.expressions import Size

from ..rules import reads
from .slicing import FAR, flatten_without_axis

Bound = int | None


def places(g, size: Size, start: Bound, stop: Bound, step: Bound):
    """The indices of ``range(size)[start:stop:step]``."""
    if isinstance(size, int):
        return g.const(arrays.arange(size, dtype=np.int64)[start:stop:step])
    up = step is None or step > 0
    first = (0 if up else FAR) if start is None else start
    last = (FAR if up else -FAR) if stop is None else stop
    return g.Slice(g.index_range(size), [first], [last], [0], [step or 1])


@reads("_npi_delete")
def read_delete(
    g, x, index=None, *, start: Bound = None, stop: Bound = None, step: Bound = None,
    int_ind: Bound = None, axis: Bound = None,
):  # fmt: skip
    """Without what an integer, slice or tensor names; negative indices of a tensor name nothing."""
    x, at = flatten_without_axis(g, x, axis)
    size = g.size_of(x, at)
    if index is None and int_ind is not None:
        require((start, stop, step) == (None,) * 3, "an integer and a slice at once")
        start, stop, step = int_ind, int_ind + 1 or None, 1
    if index is None and isinstance(size, int):
        left = np.delete(arrays.arange(size), arrays.arange(size)[start:stop:step])
        return g.Gather(x, g.const(left, DType.INT64), axis=at)
    length = g.shape_from([size])
    if index is None:
        index = places(g, size, start, stop, step)
    else:
        index = g.cast(g.Reshape(index, [-1]), DType.INT64)
        outside = g.Or(g.Less(index, 0), g.GreaterOrEqual(index, length))
        index = g.Where(outside, length, index)
    ones = g.Expand(g.const(1), g.Add(length, [1]))
    marked = g.ScatterElements(ones, index, g.Mul(index, 0), axis=0)
    return g.Compress(x, g.is_true(g.Slice(marked, [0], [-1], [0], [1])), axis=at)


def add_leading_axes(g, values: Value, rank: int):
    """``values`` with axes of size 1 in front."""
    return g.Unsqueeze(values, list(range(rank - values.rank)))


def broadcast_except(g, values: Value, x: Value, axis: int):
    """``values`` in the sizes of ``x`` along all axes but one."""
    values = g.cast_like(add_leading_axes(g, values, x.rank), x)
    sizes = g.sizes_of(x)
    sizes[axis] = 1
    return g.Expand(values, g.shape_from(sizes))


def insert_at(g, x: Value, values: Value, index, axis: int):
    """``values`` in front of the place ``index`` along an axis."""
    before, behind = g.slice_axis(x, axis, 0, index), g.slice_axis(x, axis, index, FAR)
    return g.Concat(before, broadcast_except(g, values, x, axis), behind, axis=axis)


def insert_each(g, x: Value, values: Value, index: Value, axis: int):
    """Each slice of ``values`` in front of the place its index names in ``x`` as it is."""
    size = g.shape_from([g.size_of(x, axis)])
    index = g.Where(g.Less(index, 0), g.Add(index, size), index)
    count = g.shape_from([g.size_of(index, 0)])
    expected = [*g.sizes_of(x)]
    expected[axis] = 1
    each = g.shape_from([*expected[:axis], count, *expected[axis + 1 :]])
    rows = g.Expand(broadcast_except(g, values, x, axis), each)
    ordered, order = g.TopK(index, count, axis=0, largest=0, outputs=2)
    new = g.Add(ordered, g.index_range(g.size_of(index, 0)))
    total = g.Add(size, count)
    ones = g.Expand(g.const(1), count)
    is_new = g.ScatterElements(g.Expand(g.const(0), total), new, ones, axis=0)
    passed = g.CumSum(is_new, 0)
    old = g.Sub(g.index_range(total), passed)
    rank = g.Max(g.Sub(passed, 1), 0)
    source = g.Where(g.is_true(is_new), g.Add(g.Gather(order, rank, axis=0), size), old)
    return g.Gather(g.Concat(x, rows, axis=axis), source, axis=axis)


@reads("_npi_insert_scalar", only={"start": ("None",), "stop": ("None",), "step": ("None",)})
def read_insert_scalar(
    g, x, values=None, *, val: float | None = None, int_ind: Bound = None, axis: Bound = None
):
    """The values' first axis goes along the axis they are put in."""
    require(int_ind is not None, "no index is given")
    x, at = flatten_without_axis(g, x, axis)
    if values is None:
        return insert_at(g, x, g.const(val, DType.FLOAT64), int_ind, at)
    ranked = add_leading_axes(g, values, x.rank)
    return insert_at(g, x, g.Transpose(ranked, perm=move_axis_perm(x.rank, 0, at)), int_ind, at)


@reads("_npi_insert_slice", only={"int_ind": ("None",)})
def read_insert_slice(
    g, x, values=None, *, val: float | None = None, start: Bound = None, stop: Bound = None,
    step: Bound = None, axis: Bound = None,
):  # fmt: skip
    """A slice of one place takes all values."""
    x, at = flatten_without_axis(g, x, axis)
    values = g.const(val, DType.FLOAT64) if values is None else values
    index = places(g, g.size_of(x, at), start, stop, step)
    count = index.ranked_shape[0]
    require(isinstance(count, int), f"needs to know how many places the slice has along axis {at}")
    require(count != 0, "a slice of no places")
    insert = insert_at if count == 1 else insert_each
    return insert(g, x, values, index, at)


@reads(
    "_npi_insert_tensor",
    only={"start": ("None",), "stop": ("None",), "step": ("None",), "int_ind": ("None",)},
)
def read_insert_tensor(g, x, a, b=None, *, val: float | None = None, axis: Bound = None):
    """The indices come last; with ``val`` there are no values before them."""
    x, at = flatten_without_axis(g, x, axis)
    values, index = (g.const(val, DType.FLOAT64), a) if b is None else (a, b)
    if index.rank == 0:
        ranked = add_leading_axes(g, values, x.rank)
        values = g.Transpose(ranked, perm=move_axis_perm(x.rank, 0, at))
        return insert_at(g, x, values, g.Unsqueeze(index, [0]), at)
    count = index.ranked_shape[0]
    require(isinstance(count, int), "needs to know how many indices there are")
    insert = insert_at if count == 1 else insert_each
    return insert(g, x, values, index, at)


def align_mask(g, x: Value, mask: Value, axis: int):
    """A mask of the axes from ``axis`` on, as one of ``x``."""
    mask = g.is_true(mask)
    behind = x.rank - axis - mask.rank
    return g.Unsqueeze(mask, [*range(axis), *range(x.rank - behind, x.rank)])


@reads("_npi_boolean_mask_assign_scalar")
def read_mask_assign_scalar(g, x, mask, *, value: float, start_axis: int):
    return g.Where(align_mask(g, x, mask, start_axis), scalar_of_type(g, value, x), x)


def scalar_of_type(g, value: float, x: Value):
    return g.scalar(value if x.type.kind == "f" else int(value), x)


@reads("_npi_boolean_mask_assign_tensor")
def read_mask_assign_tensor(g, x, mask, values, *, start_axis: int):
    """One slice of ``values`` for each true element, in order, or one for them all."""
    if (
        mask.rank == 0
        or values.rank < x.rank - mask.rank + 1
        or values.ranked_shape[start_axis] == 1
    ):
        return g.Where(align_mask(g, x, mask, start_axis), g.cast_like(values, x), x)
    flat = g.cast(g.Reshape(g.is_true(mask), [-1]), DType.INT64)
    order = g.Reshape(g.Max(g.Sub(g.CumSum(flat, 0), 1), 0), g.Shape(mask))
    spaced = g.Gather(g.cast_like(values, x), order, axis=start_axis)
    return g.Where(align_mask(g, x, mask, start_axis), spaced, x)
