"""Operators that move elements without changing them."""

from __future__ import annotations

from typing import Any

from serde.decompositions.expressions import (
    Size,
    cast,
    reshape,
    scalar,
    shape_from,
    size_of,
    sizes_of,
    slice_axis,
    slice_like,
    times,
)
from serde.decompositions.reshape_codes import coded
from serde.errors import require
from serde.ir.geometry import Ints, axes_of, axis_of
from serde.ir.graph import DType, Value

from ..rules import Pairs, reads

FAR = 2**31 - 1


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
    return reshape(g, x, coded(g, sizes_of(g, x), newshape))


@reads("contrib_reverse_reshape")
def read_reverse_reshape(g, x, *, newshape: Ints, allowzero=False):
    """The codes from the right: 0 and -1 only, as in TVM."""
    if allowzero:
        return read_reshape(g, x, newshape=newshape, allowzero=True)
    sizes = coded(g, sizes_of(g, x)[::-1], reversed_codes(newshape))
    return reshape(g, x, sizes[::-1])


def reversed_codes(shape: Ints) -> Ints:
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
    known = shape.elements if shape.tensor is None else shape.ints()
    codes = [d for d in known or () if isinstance(d, int)]
    require(all(d >= -1 for d in codes), f"newshape={codes}: codes below -1 of a computed shape")
    return g.Reshape(x, cast(g, shape, DType.INT64), allowzero=int(allowzero))


@reads("reshape_like")
def read_reshape_like(
    g, x, like, *, lhs_begin=0, lhs_end: int | None = None, rhs_begin=0,
    rhs_end: int | None = None,
):  # fmt: skip
    """The axes of ``x`` from begin to end take the sizes of those of ``like``."""
    begin, end = end_of(lhs_begin, x.rank), end_of(lhs_end, x.rank)
    start, stop = end_of(rhs_begin, like.rank), end_of(rhs_end, like.rank)
    mine, other = sizes_of(g, x), sizes_of(g, like)
    return reshape(g, x, [*mine[:begin], *other[start:stop], *mine[end:]])


def end_of(axis: int | None, rank: int) -> int:
    return rank if axis is None else axis + rank if axis < 0 else axis


@reads("transpose")
def read_transpose(g, x, *, axes: Ints | None = None):
    order = axes_of(axes, x.rank) if axes else tuple(reversed(range(x.rank)))
    return g.Transpose(x, perm=order)


@reads("expand_dims")
def read_expand_dims(g, x, *, axis: int, num_newaxis=1):
    at = axis_of(axis, x.rank + 1)
    return g.Unsqueeze(x, list(range(at, at + num_newaxis)))


@reads("dyn.expand_dims")
def read_dyn_expand_dims(g, x, axis, *, num_newaxis=1):
    """New axes from ``axis`` on, which counts from the end of ``x`` where it is negative."""
    if not num_newaxis:
        return x
    axis = g.Reshape(cast(g, axis, DType.INT64), [1])
    first = g.Where(g.Less(axis, [0]), g.Add(axis, [x.rank + 1]), axis)
    return g.Unsqueeze(x, g.Add(first, list(range(num_newaxis))))


@reads("squeeze")
def read_squeeze(g, x, *, axis: Ints | None = None):
    if axis is None:
        return g.Squeeze(x, tuple(i for i, d in enumerate(x.dims) if d == 1))
    return g.Squeeze(x, axes_of(axis, x.rank))


@reads("dyn.squeeze", ignore=("axis",))
def read_dyn_squeeze(g, x, axes):
    return g.Squeeze(x, g.Reshape(cast(g, axes, DType.INT64), [-1]))


@reads("concatenate")
def read_concatenate(g, *xs, axis=0):
    return g.Concat(*xs, axis=axis_of(axis, xs[0].rank))


@reads("stack")
def read_stack(g, *xs, axis=0):
    axis = axis_of(axis, xs[0].rank + 1)
    return g.Concat(*(g.Unsqueeze(x, [axis]) for x in xs), axis=axis)


@reads("split")
def read_split(g, x, *, indices_or_sections: int | Ints, axis=0):
    """So many equal parts, or parts between positions."""
    axis = axis_of(axis, x.rank)
    if isinstance(indices_or_sections, int):
        if indices_or_sections == 1:
            return (x,)
        parts = g.Split(
            x, num_outputs=indices_or_sections, axis=axis, outputs=indices_or_sections
        ) if not isinstance(x.known[axis], int) else None  # fmt: skip
        if parts is not None:
            return tuple(parts)
        size = x.known[axis]
        require(size % indices_or_sections == 0, f"{size} is not {indices_or_sections} equal parts")
        step = size // indices_or_sections
        indices_or_sections = tuple(range(step, size, step)) if step else ()
    ends = (*indices_or_sections, FAR)
    starts = (0, *indices_or_sections)
    return tuple(
        slice_axis(g, x, axis, a, max(a, b)) for a, b in zip(starts, ends, strict=True)
    ) if len(ends) > 1 else (x,)  # fmt: skip


@reads("tile")
def read_tile(g, x, *, reps: Ints):
    reps = (1,) * (x.rank - len(reps)) + reps
    extra = len(reps) - x.rank
    x = g.Unsqueeze(x, list(range(extra))) if extra else x
    return g.Tile(x, reps)


@reads("dyn.tile", ignore=("reps",))
def read_dyn_tile(g, x, reps):
    (count,) = reps.dims
    extra = count - x.rank
    reps = cast(g, reps, DType.INT64)
    x = g.Unsqueeze(x, list(range(extra))) if extra > 0 else x
    return g.Tile(x, g.Concat([1] * -extra, reps, axis=0) if extra < 0 else reps)


@reads("repeat")
def read_repeat(g, x, *, repeats: int, axis: int | None = None):
    """Each element, or slice along ``axis``, ``repeats`` times in a row."""
    if axis is None:
        x, axis = g.Reshape(x, [-1]), 0
    axis = axis_of(axis, x.rank)
    sizes = sizes_of(g, x)
    spread = [*sizes[: axis + 1], repeats, *sizes[axis + 1 :]]
    wide = g.Expand(g.Unsqueeze(x, [axis + 1]), shape_from(g, spread))
    return reshape(g, wide, [*sizes[:axis], times(g, [sizes[axis], repeats]), *sizes[axis + 1 :]])


@reads("reverse")
def read_reverse(g, x, *, axis: Ints):
    axes = axes_of(axis, x.rank)
    return g.Slice(x, [-1] * len(axes), [-FAR - 1] * len(axes), axes, [-1] * len(axes))


@reads("broadcast_to", ignore=("dtype",))
def read_broadcast_to(g, x, *, shape: Ints):
    return g.Expand(x, shape)


@reads("dyn.broadcast_to", ignore=("shape", "dtype"))
def read_dyn_broadcast_to(g, x, shape):
    return g.Expand(x, cast(g, shape, DType.INT64))


@reads("broadcast_to_like")
def read_broadcast_to_like(g, x, like):
    return g.Expand(x, g.Shape(like))


@reads("slice_like")
def read_slice_like(g, x, like, *, axes: Ints | None = None):
    return slice_like(g, x, like, axes=axes or ())


@reads("nn.pad")
def read_pad(g, x, fill, *, pad_width: Pairs, pad_mode="constant"):
    return padded(g, x, fill, pairs(pad_width), pad_mode)


@reads("nn.mirror_pad")
def read_mirror_pad(g, x, *, pad_width: Pairs, mode="SYMMETRIC"):
    """REFLECT leaves the border out, SYMMETRIC repeats it."""
    before, after = pairs(pad_width)
    if mode == "REFLECT":
        return g.Pad(x, before + after, mode="reflect")
    require(mode == "SYMMETRIC", f"mode={mode!r} is unknown")
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        parts = [x]
        if b:
            parts.insert(0, slice_axis(g, x, axis, b - 1, -FAR - 1, -1))
        if a:
            parts.append(slice_axis(g, x, axis, -1, -a - 1, -1))
        x = g.Concat(*parts, axis=axis) if len(parts) > 1 else x
    return x


def pairs(pad_width) -> tuple[Ints, Ints]:
    """Pads before and behind each axis."""
    flat = all(isinstance(p, tuple) and len(p) == 2 for p in pad_width)
    require(flat, f"pad_width={pad_width}: not two numbers an axis")
    for pair in pad_width:
        require(all(isinstance(p, int) for p in pair), "pad_width is dynamic")
    return tuple(p[0] for p in pad_width), tuple(p[1] for p in pad_width)


def padded(g, x: Value, fill: Value, widths: tuple[Ints, Ints], mode: str):
    require(mode in ("constant", "edge", "reflect"), f"pad_mode={mode!r} is unknown")
    before, after = widths
    work = cast(g, x, DType.INT32) if x.type in (DType.INT16, DType.UINT16) else x
    value = fill_of(g, fill, work) if mode == "constant" else None
    return cast(g, g.Pad(work, before + after, value, mode=mode), x.type)


def fill_of(g, fill: Value, x: Value):
    """The fill as a scalar of the type of ``x``, None for zero."""
    if fill.tensor is not None and not fill.array().any():
        return None
    fill = cast(g, fill, x.type)
    return fill if fill.shape == () else g.Reshape(fill, [])


@reads("dyn.nn.pad", ignore=("pad_width",))
def read_dyn_pad(g, x, widths, fill, *, pad_mode="constant"):
    require(pad_mode in ("constant", "edge", "reflect"), f"pad_mode={pad_mode!r} is unknown")
    order = g.Reshape(g.Transpose(cast(g, widths, DType.INT64), perm=(1, 0)), [-1])
    return g.Pad(x, order, fill_of(g, fill, x), mode=pad_mode)


@reads("nn.dilate")
def read_dilate(g, x, *, strides: Ints, dilation_value=0.0):
    return dilated(g, x, strides, dilation_value)


def dilated(g, x: Value, strides: Ints, fill: float):
    """``strides[i] - 1`` elements of ``fill`` between those along axis ``i``."""
    for axis, step in enumerate(strides):
        if step == 1:
            continue
        sizes = sizes_of(g, x)
        pads = [0] * (2 * x.rank + 2)
        pads[x.rank + 2 + axis] = step - 1
        wide = g.Pad(g.Unsqueeze(x, [axis + 1]), pads, scalar(g, fill, x))
        merged = times(g, [sizes[axis], step])
        whole = reshape(g, wide, [*sizes[:axis], merged, *sizes[axis + 1 :]])
        x = slice_axis(g, whole, axis, 0, -(step - 1))
    return x


@reads("nn.space_to_batch_nd")
def read_space_to_batch_nd(g, x, *, block_shape: Ints, paddings: Pairs, pad_value=0.0):
    before, after = pairs(paddings)
    count, rest = len(block_shape), x.rank - len(block_shape) - 1
    pads = (0, *before, *(0,) * rest, 0, *after, *(0,) * rest)
    x = g.Pad(x, pads, scalar(g, pad_value, x) if pad_value else None)
    sizes = sizes_of(g, x)
    spread: list[Size] = [sizes[0]]
    for size, block in zip(sizes[1:], block_shape, strict=False):
        spread += [divided(g, size, block), block]
    wide = reshape(g, x, [*spread, *sizes[count + 1 :]])
    blocks, spots = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
    tail = range(2 * count + 1, 2 * count + 1 + rest)
    turned = g.Transpose(wide, perm=(*blocks, 0, *spots, *tail))
    batch = times(g, [*block_shape, sizes[0]])
    return reshape(g, turned, [batch, *(spread[i] for i in spots), *sizes[count + 1 :]])


@reads("nn.batch_to_space_nd")
def read_batch_to_space_nd(g, x, *, block_shape: Ints, crops: Pairs):
    before, after = pairs(crops)
    count, sizes = len(block_shape), sizes_of(g, x)
    batch = sizes[0]
    for block in block_shape:
        batch = divided(g, batch, block)
    wide = reshape(g, x, [*block_shape, batch, *sizes[1:]])
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    turned = g.Transpose(wide, perm=(*order, *range(2 * count + 1, count + x.rank)))
    grown = [times(g, [s, b]) for s, b in zip(sizes[1:], block_shape, strict=False)]
    y = reshape(g, turned, [batch, *grown, *sizes[count + 1 :]])
    ends = [-a if a else FAR for a in after]
    return g.Slice(y, before, ends, list(range(1, count + 1)), [1] * count)


def divided(g, size: Size, by: int) -> Any:
    if isinstance(size, int):
        require(size % by == 0, f"{size} does not split into blocks of {by}")
        return size // by
    return g.Div(size, [by])


@reads("nn.depth_to_space")
def read_depth_to_space(g, x, *, block_size: int, layout="NCHW", mode="DCR"):
    """Every mode but ``DCR`` is ONNX's ``CRD``, which TVM's documentation calls ``CDR``."""
    order = "DCR" if mode == "DCR" else "CRD"

    def apply(x):
        return g.DepthToSpace(x, blocksize=block_size, mode=order)

    return channels_first(g, x, layout, apply)


@reads("nn.space_to_depth", ignore=("mode",))
def read_space_to_depth(g, x, *, block_size: int, layout="NCHW"):
    return channels_first(g, x, layout, lambda x: g.SpaceToDepth(x, blocksize=block_size))


def channels_first(g, x: Value, layout: str, apply):
    """Apply a function of NCHW."""
    require(layout in ("NCHW", "NHWC"), f"layout={layout!r} is unknown")
    if layout == "NCHW":
        return apply(x)
    return g.Transpose(apply(g.Transpose(x, perm=(0, 3, 1, 2))), perm=(0, 2, 3, 1))


@reads("nn.fifo_buffer")
def read_fifo_buffer(g, x, buffer, *, axis=0):
    """The buffer moved along by what is new."""
    axis = axis_of(axis, x.rank)
    both = g.Concat(buffer, x, axis=axis)
    return slice_axis(g, both, axis, size_of(g, x, axis), FAR)


@reads("sliding_window")
def read_sliding_window(g, x, *, axis: int, window_shape: Ints, strides: Ints):
    """Windows over the axes from ``axis`` on: their places, then their contents."""
    axis = axis_of(axis, x.rank)
    count = len(window_shape)
    require(axis + count == x.rank, "windows over some of the axes behind the first only")
    for at in range(count):
        size: Any = size_of(g, x, axis + at)
        require(isinstance(size, int), "windows over an axis of unknown size")
        starts = range(0, size - window_shape[at] + 1, strides[at])
        table = [[s + i for i in range(window_shape[at])] for s in starts]
        x = g.Gather(x, g.const(table, DType.INT64), axis=axis + at)
        order = list(range(x.rank))
        order.append(order.pop(axis + at + 1))  # the window's contents go to the end
        x = g.Transpose(x, perm=order)
    return x
