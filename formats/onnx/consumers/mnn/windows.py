"""Layers that move windows: MNN has them of images."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from serde.errors import require
from serde.ir.graph import Value
from serde.legalize.forms import windows
from serde.legalize.forms.form import STATIC, Call, Form, require_sizes
from serde.version_converter.adapters.pooling import Windows, pad_window_axes

from ..illegal_forms import OPEN_PADS
from .outputs import MOVED

MOST_MOVES = 8  # that are looked through
IMAGES = "MNN has it over up to three axes"


def widen(window):
    """The attributes of a window of one axis, for one of two."""
    ones = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 0}
    form = dict(window)
    for name, one in ones.items():
        if form.get(name):
            form[name] = (*form[name], one)
    if form.get("pads"):
        begin, end = form["pads"]
        form["pads"] = (begin, 0, end, 0)
    return form


def uneven_pads(window) -> tuple[int, ...]:
    """The pads, if they differ at both ends of an axis: MNN fails at those of single channels."""
    pads = tuple(window.get("pads") or ())
    return () if pads[: len(pads) // 2] == pads[len(pads) // 2 :] else pads


def as_image(g, x):
    """A tensor of one window axis as one of two."""
    return g.Unsqueeze(x, [3])


def may_be_square(g, x: Value) -> bool:
    """Whether it is a transposed image of one sample that may have as many channels as columns."""
    node, moves = g.producer(x), 0
    while node is not None and node.op in MOVED and moves < MOST_MOVES:
        node, moves = g.producer(node.inputs[0]), moves + 1
    if x.rank != 4 or node is None or node.op != "Transpose":
        return False
    samples, rows, _, columns = x.ranked_shape
    is_other = isinstance(rows, int) and isinstance(columns, int) and rows != columns
    is_several = isinstance(samples, int) and samples != 1
    return not is_other and not is_several and (moves > 0 or node.attrs["perm"] == (0, 2, 3, 1))


def conv_volume(g, x, w, b, group: int, window):
    """A ``Conv`` over three axes: of images that have the channels of each place in a window."""
    check_volumes(x, window)
    rows, columns, depth, *kernel = w.static_shape
    step, pads = window["dilations"][0], window["pads"]
    x = pad_window_axes(g, x, (pads[0], 0, 0, pads[3], 0, 0))
    starts = [at * step for at in range(depth)]
    images, count = stack_depth(g, x, group, starts, window["strides"][0])
    apart = g.Transpose(w, perm=(0, 2, 1, 3, 4))
    filters = g.Reshape(apart, [rows, depth * columns, *kernel])
    y = g.Conv(images, filters, b, group=group, **choose_axes(window, [1, 2]))
    return restore_depth(g, y, count)


def conv_transpose_volume(g, x, w, b, group: int, window):
    """A ``ConvTranspose`` over three axes: along the first a ``Conv`` of what zeros spread."""
    check_volumes(x, window)
    rows, columns, depth, *kernel = w.static_shape
    step, pads = window["dilations"][0], window["pads"]
    reach, more = step * (depth - 1), window["output_padding"][0]
    x = spread_depth(g, x, window["strides"][0])
    x = pad_window_axes(g, x, (reach - pads[0], 0, 0, reach - pads[3] + more, 0, 0))
    starts = [reach - at * step for at in range(depth)]
    images, count = stack_depth(g, x, group, starts, 1)
    apart = g.Reshape(w, [group, rows // group, columns, depth, prod(kernel)])
    apart = g.Transpose(apart, perm=(0, 3, 1, 2, 4))
    filters = g.Reshape(apart, [depth * rows, columns, *kernel])
    y = g.ConvTranspose(images, filters, b, group=group, **choose_axes(window, [1, 2]))
    return restore_depth(g, y, count)


def check_volumes(x, window) -> None:
    """Refuse volumes of dynamic sizes."""
    is_static = all(isinstance(n, int) for n in x.ranked_shape[1:])
    require(is_static, f"MNN convolves volumes of static sizes only. {STATIC}")


def spread_depth(g, x, stride: int):
    """Volumes with zeros between their images."""
    if stride == 1:
        return x
    channels, depth, *sizes = x.ranked_shape[1:]
    columns = g.Reshape(x, [-1, channels * depth, 1, prod(sizes)])
    spread = g.Pad(columns, [0, 0, 0, 0, 0, 0, stride - 1, 0])
    volumes = g.Reshape(spread, [-1, channels, depth * stride, *sizes])
    return g.slice_axis(volumes, 2, 0, (depth - 1) * stride + 1)


def stack_depth(g, x, group: int, starts: Sequence[int], stride: int):
    """Images that have the channels of volumes at some places, and how many there are of each.

    The channels of a group stay together; the images of a volume follow one another as samples.
    """
    channels, length, *sizes = x.ranked_shape[1:]
    count = (length - max(starts) - 1) // stride + 1
    parts = [g.slice_axis(x, 2, at, at + (count - 1) * stride + 1, stride) for at in starts]
    stacked, depth = g.Concat(*parts, axis=1), len(parts)
    if group > 1:
        pixels = count * prod(sizes)
        apart = g.Reshape(stacked, [-1, depth, group, channels // group, pixels])
        moved = g.Transpose(apart, perm=(0, 2, 1, 3, 4))
        stacked = g.Reshape(moved, [-1, depth * channels, count, *sizes])
    images = g.Transpose(stacked, perm=(0, 2, 1, 3, 4))
    return g.Reshape(images, [-1, depth * channels, *sizes]), count


def restore_depth(g, y, count: int):
    """Volumes of so many images that follow one another."""
    volumes = g.Reshape(y, [-1, count, *y.ranked_shape[1:]])
    return g.Transpose(volumes, perm=(0, 2, 1, 3, 4))


def conv_over_depth(g, call: Call):
    """A layer over three axes, along the first one by channels."""
    form = {n: v for n, v in call.attrs.items() if n != "group"}
    rule = conv_volume if call.op == "Conv" else conv_transpose_volume
    return rule(g, call.x, call.inputs[1], call.operand(2), call.attrs["group"], form)


def conv_image(g, call: Call):
    """A layer over one axis as one over two."""
    operands = (as_image(g, call.x), as_image(g, call.inputs[1]), call.operand(2))
    return g.Squeeze(call.emit(g, *operands, **widen(call.attrs)), [3])


def has_uneven_groups(call: Call) -> bool:
    """Whether computed weights are of groups that change the number of channels."""
    w, group = call.inputs[1], call.attrs["group"]
    rows, columns = w.ranked_shape[:2]
    return w.tensor is None and group != 1 and rows != group * columns


def crops_wrongly(call: Call) -> bool:
    """Whether MNN fails at what pads crop: unevenly of single channels, or more than it has."""
    rows, columns = call.inputs[1].ranked_shape[:2]
    is_single = rows == call.attrs["group"] and columns == 1
    return bool(is_single and uneven_pads(call.attrs)) or crops_all(call.attrs)


def crops_all(window) -> bool:
    """Whether pads cut off more than one kernel reaches beyond the image: MNN aborts."""
    reach = [d * (k - 1) for d, k in zip(window["dilations"], window["kernel_shape"], strict=True)]
    return any(p > most for p, most in zip(window["pads"], 2 * reach, strict=True))


def pool_volume(op, g, x, window, **form):
    """A pool over three axes: one over the first, and one over the others."""
    channels, *sizes = x.ranked_shape[1:]
    require(all(isinstance(d, int) for d in (channels, *sizes)), IMAGES)
    columns = g.Reshape(x, [0, 0, 0, -1])
    deep = g[op](columns, **form, **widen(choose_axes(window, [0])))
    depth = deep.ranked_shape[2]
    images = g.Reshape(deep, [0, channels * depth, *sizes[1:]])
    y = g[op](images, **form, **choose_axes(window, [1, 2]))
    return g.Reshape(y, [0, channels, depth, *y.ranked_shape[2:]])


def choose_axes(window, axes):
    """The attributes of a window for some of its three axes."""
    lists = ("kernel_shape", "strides", "dilations", "output_padding")
    chosen = {**window, **{n: tuple(window[n][a] for a in axes) for n in lists if window.get(n)}}
    if pads := window.get("pads"):
        chosen["pads"] = tuple(pads[a + end] for end in (0, 3) for a in axes)
    return chosen


def is_volume(call: Call) -> bool:
    """Whether it pools over three axes, and returns no places."""
    return call.x.rank == 5 and call.outputs == 1


def pool_axes(g, call: Call):
    """A pool over three axes, axis by axis."""
    form = {n: v for n, v in call.attrs.items() if n not in Windows._fields}
    return pool_volume(call.op, g, call.x, call.window._asdict(), **form)


def is_wide_padding(call: Call) -> bool:
    """Whether padding depends on sizes by name: MNN has it behind only, and of wide windows."""
    w = call.window
    is_wide = all(n >= s for n, s in zip(w.covers, w.strides, strict=True))
    is_behind = w.auto_pad == "SAME_UPPER" and is_wide
    return w.auto_pad not in ("NOTSET", "VALID") and not is_behind


def is_transposed(call: Call) -> bool:
    """Whether MNN transposes the image wrongly."""
    return call.g is not None and may_be_square(call.g, call.x)


def copy_image(g, call: Call):
    """The same of a copy."""
    return call.emit(g, g.Min(call.x, call.x), *call.inputs[1:])


def pool_image(g, call: Call):
    """A pool over one axis as one over two."""
    return g.Squeeze(call.emit(g, as_image(g, call.x), **widen(call.attrs)), [3])


VOLUME = Form("three axes of windows", is_volume, pool_axes)
AXES = Form("other than one to three axes of windows", lambda call: not 2 < call.x.rank < 5)
BY_SIZES = Form("padding by sizes by name", is_wide_padding, advice=STATIC)
TRANSPOSED = Form("a transposed image of as many channels as columns", is_transposed, copy_image)
ONE_AXIS = Form("one axis of windows", lambda call: call.x.rank == 3, pool_image)
CONSTANT = Form("a constant operand", lambda call: call.x.tensor is not None,
                advice="Make it an input of the model")  # fmt: skip
LAYER_AXES = AXES._replace(has=lambda call: not 2 < call.x.rank < 6)
FILTERS = require_sizes("W")
THREE_AXES = Form("three axes of windows", lambda call: call.x.rank == 5, conv_over_depth)
ONE_LAYER_AXIS = Form("one axis of windows", lambda call: call.x.rank == 3, conv_image)
WINDOWS = {
    "AveragePool": [
        VOLUME, AXES, BY_SIZES, CONSTANT, windows.AVERAGE_DILATIONS, windows.ZEROS_BEFORE,
        TRANSPOSED, windows.CEIL_MODE, windows.UNEVEN_AVERAGE, ONE_AXIS,
    ],
    "Conv": [
        LAYER_AXES, BY_SIZES, TRANSPOSED, *FILTERS, windows.COMPUTED_BIAS, THREE_AXES,
        ONE_LAYER_AXIS,
    ],
    "ConvTranspose": [
        LAYER_AXES, OPEN_PADS, CONSTANT, TRANSPOSED, *FILTERS, windows.COMPUTED_BIAS,
        Form("groups of computed weights that change the number of channels", has_uneven_groups,
             advice="Make the weights constants"),
        THREE_AXES,
        windows.UNEVEN_CROP._replace(has=crops_wrongly),
        ONE_LAYER_AXIS,
    ],
    "LpPool": windows.LP_POOL_BEHIND_PAD,
    "MaxPool": [
        VOLUME, AXES, BY_SIZES, windows.PLACES, windows.MAX_DILATIONS, windows.CEIL_MODE,
        windows.ZEROS_BEFORE, TRANSPOSED, windows.UNEVEN_MAX, ONE_AXIS,
    ],
}  # fmt: skip
