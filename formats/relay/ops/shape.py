"""Operators that move elements without changing them, and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from serde.decompositions.reshape_codes import resolve_reshape_codes
from serde.errors import require
from serde.io.tensor_bytes import MOST_AXES
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import Ints, axes_of, axis_of
from serde.ir.graph import Dim, DType, Value
from serde.spec.expressions import Size

from ..rules import reads
from ..target import dims_or, legalizations, set_type, writes

FAR = 2**31 - 1  # beyond the end of any axis, and the largest bound that Relay takes


@reads("nn.batch_flatten")
def read_batch_flatten(g, x):
    return g.Flatten(x, axis=1)


@reads("reshape")
def read_reshape(g, x, *, newshape: Ints, allowzero=False):
    """All of Relay's codes: 0 copy, -1 infer, -2 the rest, -3 merge two, -4 split one in two."""
    if allowzero:
        require(all(d >= -1 for d in newshape), f"newshape={newshape} with allowzero")
        return g.Reshape(x, newshape, allowzero=1)
    if all(d > 0 or d == -1 for d in newshape):
        return g.Reshape(x, newshape)
    return g.reshape(x, resolve_reshape_codes(g, g.sizes_of(x), newshape))


@reads("contrib_reverse_reshape")
def read_reverse_reshape(g, x, *, newshape: Ints, allowzero=False):
    """The codes from the right: 0 and -1 only, as in TVM."""
    if allowzero:
        return read_reshape(g, x, newshape=newshape, allowzero=True)
    sizes = resolve_reshape_codes(g, g.sizes_of(x)[::-1], reverse_codes(newshape))
    return g.reshape(x, sizes[::-1])


def reverse_codes(shape: Ints) -> Ints:
    """The codes from the right; the two sizes that follow -4 stay behind it."""
    groups, at = [], 0
    while at < len(shape):
        width = 3 if shape[at] == -4 else 1
        group = shape[at : at + width]
        groups.append((group[0], *group[:0:-1]))
        at += width
    return tuple(d for group in reversed(groups) for d in group)


@reads("dyn.reshape", "vm.reshape_tensor", ignore=("newshape",))
def read_dyn_reshape(g, x, shape, *, allowzero=False):
    known = shape.shape_data if shape.tensor is None else shape.ints()
    codes = [d for d in known or () if isinstance(d, int)]
    require(all(d >= -1 for d in codes), f"newshape={codes}: codes below -1 of a computed shape")
    return g.Reshape(x, g.cast(shape, DType.INT64), allowzero=int(allowzero))


@reads("reshape_like")
def read_reshape_like(
    g, x, like, *, lhs_begin=0, lhs_end: int | None = None, rhs_begin=0,
    rhs_end: int | None = None,
):  # fmt: skip
    """The axes of ``x`` from begin to end take the sizes of those of ``like``."""
    begin, end = end_of(lhs_begin, x.rank), end_of(lhs_end, x.rank)
    start, stop = end_of(rhs_begin, like.rank), end_of(rhs_end, like.rank)
    mine, other = g.sizes_of(x), g.sizes_of(like)
    return g.reshape(x, [*mine[:begin], *other[start:stop], *mine[end:]])


def end_of(axis: int | None, rank: int) -> int:
    return rank if axis is None else axis + rank if axis < 0 else axis


@reads("transpose")
def read_transpose(g, x, *, axes: Ints | None = None):
    order = axes_of(axes, x.rank) if axes else tuple(reversed(range(x.rank)))
    return g.Transpose(x, perm=order)


@reads("expand_dims")
def read_expand_dims(g, x, *, axis: int, num_newaxis=1):
    at = axis_of(axis, x.rank + 1)
    return g.Unsqueeze(x, new_axes(x, at, num_newaxis))


@reads("dyn.expand_dims")
def read_dyn_expand_dims(g, x, axis, *, num_newaxis=1):
    """New axes from ``axis`` on, which counts from the end of ``x`` where it is negative."""
    if not num_newaxis:
        return x
    axis = g.Reshape(g.cast(axis, DType.INT64), [1])
    first = g.Where(g.Less(axis, [0]), g.Add(axis, [x.rank + 1]), axis)
    return g.Unsqueeze(x, g.Add(first, new_axes(x, 0, num_newaxis)))


def new_axes(x, first: int, count: int) -> list[int]:
    """``count`` axes from ``first`` on, where a tensor may have as many."""
    total = x.rank + count
    require(count >= 0 and total <= MOST_AXES, f"{count} new axes: at most {MOST_AXES} in all")
    return list(range(first, first + count))


@reads("squeeze")
def read_squeeze(g, x, *, axis: Ints | None = None):
    if axis is None:
        return g.Squeeze(x, tuple(i for i, d in enumerate(x.static_shape) if d == 1))
    return g.Squeeze(x, axes_of(axis, x.rank))


@reads("dyn.squeeze", ignore=("axis",))
def read_dyn_squeeze(g, x, axes):
    return g.Squeeze(x, g.Reshape(g.cast(axes, DType.INT64), [-1]))


@reads("concatenate")
def read_concatenate(g, *xs, axis=0):
    return g.Concat(*xs, axis=axis_of(axis, xs[0].rank))


@reads("stack")
def read_stack(g, *xs, axis=0):
    return g.stack(xs, axis)


@reads("tile")
def read_tile(g, x, *, reps: Ints):
    return g.tile(x, reps)


@reads("dyn.tile", ignore=("reps",))
def read_dyn_tile(g, x, reps):
    (count,) = reps.static_shape
    extra = count - x.rank
    reps = g.cast(reps, DType.INT64)
    x = g.Unsqueeze(x, list(range(extra))) if extra > 0 else x
    return g.Tile(x, g.Concat([1] * -extra, reps, axis=0) if extra < 0 else reps)


@reads("repeat")
def read_repeat(g, x, *, repeats: int, axis: int | None = None):
    """Each element, or slice along ``axis``, ``repeats`` times in a row."""
    if axis is None:
        return g.repeat(g.Reshape(x, [-1]), repeats, 0)
    return g.repeat(x, repeats, axis_of(axis, x.rank))


@reads("reverse")
def read_reverse(g, x, *, axis: Ints):
    axes = axes_of(axis, x.rank)
    return g.Slice(x, [-1] * len(axes), [-FAR - 1] * len(axes), axes, [-1] * len(axes))


@reads("nn.dilate")
def read_dilate(g, x, *, strides: Ints, dilation_value=0.0):
    return dilate(g, x, strides, dilation_value)


def dilate(g, x: Value, strides: Ints, fill: float):
    """``strides[i] - 1`` elements of ``fill`` between those along axis ``i``."""
    for axis, step in enumerate(strides):
        if step == 1:
            continue
        sizes = g.sizes_of(x)
        pads = [0] * (2 * x.rank + 2)
        pads[x.rank + 2 + axis] = step - 1
        padded = g.Pad(g.Unsqueeze(x, [axis + 1]), pads, g.scalar(fill, x))
        merged = g.multiply_sizes([sizes[axis], step])
        y = g.reshape(padded, [*sizes[:axis], merged, *sizes[axis + 1 :]])
        x = g.slice_axis(y, axis, 0, -(step - 1))
    return x


def axis_size(g, x: Value, axis: int):
    """The size of ``x`` along an axis, as a tensor of one int64."""
    size = g.size_of(x, axis)
    return g.const([size], DType.INT64) if isinstance(size, int) else size


def divide_size(g, size: Size, by: int) -> Any:
    if isinstance(size, int):
        require(size % by == 0, f"{size} does not split into blocks of {by}")
        return size // by
    return g.Div(size, [by])


@reads("nn.fifo_buffer")
def read_fifo_buffer(g, x, buffer, *, axis=0):
    """The buffer moved along by what is new."""
    axis = axis_of(axis, x.rank)
    both = g.Concat(buffer, x, axis=axis)
    return g.slice_axis(both, axis, g.size_of(x, axis), FAR)


@reads("sliding_window")
def read_sliding_window(g, x, *, axis: int, window_shape: Ints, strides: Ints):
    """Windows over the axes from ``axis`` on: their places, then their contents."""
    axis = axis_of(axis, x.rank)
    count = len(window_shape)
    require(axis + count == x.rank, "windows over some of the axes behind the first only")
    for at in range(count):
        size: Any = g.size_of(x, axis + at)
        require(isinstance(size, int), "windows over an axis of unknown size")
        starts = range(0, size - window_shape[at] + 1, strides[at])
        table = [[s + i for i in range(window_shape[at])] for s in starts]
        x = g.Gather(x, g.const(table, DType.INT64), axis=axis + at)
        order = list(range(x.rank))
        order.append(order.pop(axis + at + 1))  # the window's contents go to the end
        x = g.Transpose(x, perm=order)
    return x


@reads("shape_of", "vm.shape_of")
def read_shape_of(g, x, *, dtype: DType | None = None):
    return g.cast(g.Shape(x), dtype or DType.INT32)


@reads("ndarray_size")
def read_ndarray_size(g, x, *, dtype: DType | None = None):
    return g.cast(g.Size(x), dtype or DType.INT32)


def static_sizes(value: Value | None) -> tuple[int, ...] | None:
    """The numbers a shape, or a list of axes, holds; None where they are dynamic."""
    sizes = shape_data_of(value)
    if sizes is None and value is not None and value.tensor is not None:
        sizes = value.ints()
    plain = sizes is not None and all(isinstance(d, int) for d in sizes)
    return sizes if plain else None  # type: ignore[return-value]


def declare_sizes(r, x: Value, known: Sequence[Dim] | None):
    """``x`` with the sizes that are known, which TVM does not take from a computed shape.

    Products want to know over how much they sum.
    """
    open_ = [i for i, d in enumerate(known or ()) if not isinstance(d, int)]
    if known is None or len(open_) == len(known):
        return x
    rest = -1 if len(open_) == 1 and 0 not in known else 0  # 0 keeps a size
    return r.reshape(x, newshape=[d if isinstance(d, int) else rest for d in known])


@writes("Reshape")
def write_reshape(r, x, shape, *, allowzero: int):
    expected = static_sizes(shape)
    if expected is None:
        kept = [d if isinstance(d, int) and d > 0 else None for d in shape_data_of(shape) or ()]
        if not x.rank:  # TVM looks for the first size
            x = set_type(r.reshape(x, newshape=(1,)), x.dtype, (1,))
        return declare_sizes(r, r.dyn.reshape(x, shape, allowzero=allowzero), kept)
    return r.reshape(x, newshape=expected, allowzero=allowzero)


@legalizations("Flatten")
def legalize_flatten(g, x, *, axis: int):
    """The sizes in front of ``axis``, and those behind, multiplied."""
    if axis == 1 and x.is_static and 0 not in x.static_shape:
        return g.Reshape(x, [0, -1])
    parts = [
        g.ReduceProd(g.Shape(x, start=s, end=e), keepdims=1) for s, e in ((0, axis), (axis, x.rank))
    ]
    return g.Reshape(x, g.Concat(*parts, axis=0), allowzero=1)


@writes("Transpose")
def write_transpose(r, x, *, perm: tuple[int, ...]):
    return r.transpose(x, axes=perm)


@legalizations("Squeeze")
def legalize_squeeze(g, x, axes=None):
    is_static = axes is None or static_sizes(axes) is not None
    return None if is_static else g.decompose("Squeeze", 13, x, axes)


@writes("Squeeze")
def write_squeeze(r, x, axes=None):
    chosen = static_sizes(axes)
    if axes is None:
        dims = dims_or(x, "a Squeeze of all axes")
        chosen = tuple(at for at, d in enumerate(dims) if d == 1)
    require(chosen is not None, "a Squeeze with dynamic axes")
    return r.squeeze(x, axis=chosen)


@legalizations("Unsqueeze")
def legalize_unsqueeze(g, x, axes):
    return None if static_sizes(axes) is not None else g.decompose("Unsqueeze", 13, x, axes)


@writes("Unsqueeze")
def write_unsqueeze(r, x, axes):
    chosen = static_sizes(axes)
    require(chosen is not None, "an Unsqueeze with dynamic axes")
    if x.rank == 0 and x.tensor is None:  # see ``lifted``
        return r.annotation.stop_fusion(r.reshape(x, newshape=(1,) * len(chosen)))
    for axis in sorted(chosen):
        x = r.expand_dims(x, axis=axis)
    return x


@legalizations("Concat")
def legalize_concat(g, *xs, axis: int):
    """Operands without elements add nothing; one operand is itself."""
    some = [v for v in xs if v.ranked_shape[axis] != 0] or [xs[0]]
    if len(some) == 1:
        return g.Identity(some[0])
    return g.Concat(*some, axis=axis) if len(some) < len(xs) else None


@writes("Concat")
def write_concat(r, *xs, axis: int):
    y = r.concatenate(*xs, axis=axis)
    if all(isinstance(v.ranked_shape[axis], int) for v in xs):
        return y
    return r.annotation.stop_fusion(y)  # as of slices, below


@legalizations("Tile")
def legalize_tile(g, x, repeats):
    """TVM repeats no tensor 0 times: that leaves nothing of it."""
    reps = static_sizes(repeats)
    if reps is None or 0 not in reps:
        return None
    pairs = zip(g.sizes_of(x), reps, strict=True)
    sizes = [0 if n == 0 else g.multiply_sizes([d, n]) for d, n in pairs]
    return g.Expand(g.const(np.zeros((), x.type.numpy)), g.shape_from(sizes))


@writes("Tile")
def write_tile(r, x, repeats):
    reps = static_sizes(repeats)
    return r.dyn.tile(x, repeats) if reps is None else r.tile(x, reps=reps)


@legalizations("Shape")
def legalize_shape(g, x, *, start: int, end: int | None = None):
    """Of no axes there is nothing to compute."""
    return None if range(x.rank)[start:end] else g.const([], DType.INT64)


@writes("Shape")
def write_shape(r, x, *, start: int, end: int | None = None):
    shape = r.cast(r.shape_of(x, dtype="int64"), dtype="int64")
    first, last, _ = slice(start, end).indices(x.rank)
    if (first, last) == (0, x.rank):
        return shape
    return r.strided_slice(shape, begin=[first], end=[max(first, last)], strides=[1], axes=[0])


@writes("Size")
def write_size(r, x):
    return r.cast(r.ndarray_size(x, dtype="int64"), dtype="int64")
