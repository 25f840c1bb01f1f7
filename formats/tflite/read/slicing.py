"""Parts of tensors, and tensors with something around them."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import Value
from serde.rewrite.rules import Hint

from ..quantization import Forms
from ..rules import reads
from .shapes import fill_of, long

END = 2**31 - 1


@reads("SLICE")
def read_slice(g, x, begin, size):
    """A size of -1 goes to the end."""
    axes = list(range(x.rank))
    if size.tensor is not None and begin.tensor is not None:
        starts = begin.ints()
        ends = [END if n == -1 else s + n for s, n in zip(starts, size.ints(), strict=True)]
        return g.Slice(x, list(starts), ends, axes, [1] * x.rank)
    starts, sizes = long(g, begin), long(g, size)
    ends = g.Where(g.Less(sizes, g.scalar(0, sizes)), g.scalar(END, sizes), g.Add(starts, sizes))
    return g.Slice(x, starts, ends, axes, [1] * x.rank)


def is_set(mask: int, bit: int) -> bool:
    """Whether a mask has a bit."""
    return bool(mask >> bit & 1)


@reads("STRIDED_SLICE")
def read_strided_slice(
    g, x, begin, end, strides, *, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0,
    new_axis_mask: int = 0, shrink_axis_mask: int = 0, offset: bool = False,
):  # fmt: skip
    """NumPy's slices; ``...``, ``None`` and single indices are bits of masks."""
    count = strides.static_shape[0]
    steps = strides.ints()
    starts, ends = (_parts(g, v, count) for v in (begin, end))
    axis, after = 0, 0
    cuts: list[tuple[int, object, object, int]] = []
    gone, new = [], []
    real = count - sum(is_set(new_axis_mask, k) and not is_set(ellipsis_mask, k)
                       for k in range(count))  # fmt: skip
    real -= any(is_set(ellipsis_mask, k) for k in range(count))
    for k in range(count):
        if is_set(ellipsis_mask, k):
            span = x.rank - real
            axis, after = axis + span, after + span
        elif is_set(new_axis_mask, k):
            new.append(after)
            after += 1
        else:
            single = is_set(shrink_axis_mask, k)
            bounds = _bounds(
                g, starts[k], ends[k], steps[k], single,
                is_set(begin_mask, k) and not single, is_set(end_mask, k), offset,
            )  # fmt: skip
            cuts.append((axis, *bounds))
            gone += [axis] if single else []
            axis, after = axis + 1, after + (not single)
    return _cut(g, x, cuts, gone, new)


def _parts(g, operand: Value, count: int):
    """The numbers of an operand, or a slice of it for each."""
    if operand.tensor is not None:
        return list(operand.ints())
    data = operand.shape_data
    operand_int64 = long(g, operand)
    return [
        d if data is not None and isinstance(d, int) else g.slice_axis(operand_int64, 0, k, k + 1)
        for k, d in enumerate(data or [None] * count)
    ]


def _bounds(g, start, end, step, single, is_begun, is_ended, offset):
    """Where a slice begins and ends, and its step."""
    if single:
        if isinstance(start, int):
            return start, END if start == -1 else start + 1, 1
        following = g.Add(start, 1)
        zero = g.Equal(following, g.const([0]))
        return start, g.Where(zero, g.const([END]), following), 1
    if offset and not is_ended:
        require(isinstance(start, int) and isinstance(end, int), "computed ends with offset. "
                "Make them constants")  # fmt: skip
        end = start + end
    low = -END - 1
    return (
        (0 if step > 0 else END) if is_begun else start,
        (END if step > 0 else low) if is_ended else end,
        step,
    )


def _cut(g, x, cuts, gone, new):
    if cuts:
        axes, starts, ends, steps = zip(*cuts, strict=True)
        bounds = [
            list(v) if all(isinstance(n, int) for n in v) else g.shape_from(v)
            for v in (starts, ends)
        ]
        x = g.Slice(x, *bounds, list(axes), list(steps))
    x = g.Squeeze(x, gone) if gone else x
    return g.Unsqueeze(x, new) if new else x


def flatten_pads(g, pads: Value):
    """Pads of each axis in ONNX's order: those in front of all axes, then those behind."""
    if pads.tensor is not None:
        return [int(n) for n in pads.array().T.reshape(-1)]
    return g.Reshape(g.Transpose(long(g, pads), perm=[1, 0]), [-1])


@reads("PAD")
def read_pad(g, x, pads, *, forms: Hint[Forms]):
    return g.Pad(x, flatten_pads(g, pads), fill_of(g, x, forms))


@reads("PADV2")
def read_pad_v2(g, x, pads, fill):
    return g.Pad(x, flatten_pads(g, pads), g.Squeeze(fill, [0]) if fill.rank == 1 else fill)


@reads("MIRROR_PAD")
def read_mirror_pad(g, x, pads, *, mode: int = 0):
    """REFLECT leaves out the border, SYMMETRIC repeats it."""
    if mode == 0:
        return g.Pad(x, flatten_pads(g, pads), mode="reflect")
    ends = pads.array().reshape(-1, 2)
    for axis, (before, behind) in enumerate(ends.tolist()):
        if before or behind:
            size = x.ranked_shape[axis]
            require(isinstance(size, int), "a mirrored axis of unknown size. Give it "
                    "(--static, --input)")  # fmt: skip
            require(0 <= max(before, behind) <= size, "a mirror of more than there is. Pad less")
            places = np.pad(np.arange(size), (before, behind), mode="symmetric")
            x = g.Gather(x, places.astype(np.int64), axis=axis)
    return x


@reads("DYNAMIC_UPDATE_SLICE")
def read_dynamic_update_slice(g, x, update, starts):
    """What is written begins where it fits into the tensor."""
    rank = x.rank
    if rank == 0:
        return update
    sizes, written = (v.static_shape for v in (x, update))
    most = np.asarray(sizes, np.int64) - np.asarray(written, np.int64)
    first = g.Max(g.Min(long(g, starts), most), np.zeros(rank, np.int64))
    grid = np.moveaxis(arrays.indices(written, np.int64), 0, -1)
    return g.ScatterND(x, g.Add(grid, first), update)
