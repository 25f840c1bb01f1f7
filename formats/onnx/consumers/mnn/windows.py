"""Layers that move windows: MNN has them of images."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from serde.errors import require
from serde.ir.graph import Value
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.indexing import extreme_value
from serde.version_converter.adapters.pooling import Windows, pad_window_axes

from ..pooling import add_rules, are_even, average_padded, keep_apart, lp_pool
from .outputs import MOVED

MOST_MOVES = 8  # that are looked through
IMAGES = "MNN has it over up to three axes"
FILTERS = "MNN takes filters whose sizes have numbers"
BY_SIZES = "padding by sizes that have names: give numbers (--static, --input)"
PADS = "pads that depend on sizes by name, or are negative: give numbers in 'pads'"


def legalize_windows(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    add_rules(legalize, average_pool, conv, conv_transpose, lp_pool, max_pool)


def widen(window):
    """The attributes of a window of one axis, for one of two."""
    ones = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 0}
    wide = dict(window)
    for name, one in ones.items():
        if wide.get(name):
            wide[name] = (*wide[name], one)
    if wide.get("pads"):
        begin, end = wide["pads"]
        wide["pads"] = (begin, 0, end, 0)
    return wide


def uneven_pads(window) -> tuple[int, ...]:
    """The pads, if they differ at both ends of an axis: MNN fails at those of single channels."""
    pads = tuple(window.get("pads") or ())
    return () if pads[: len(pads) // 2] == pads[len(pads) // 2 :] else pads


def add_bias(g, y, b):
    """A computed bias, where MNN takes a constant."""
    return g.Add(y, g.Unsqueeze(b, list(range(1, y.rank - 1))))


def as_image(g, x):
    """A tensor of one window axis as one of two."""
    return g.Unsqueeze(x, [3])


def keep_transposed_apart(g, x: Value) -> Value:
    """``x``, copied where it is a transposed image that may have as many channels as columns.

    MNN transposes such images of one sample wrongly for layers of windows.
    """
    node, moves = g.producer(x), 0
    while node is not None and node.op in MOVED and moves < MOST_MOVES:
        node, moves = g.producer(node.inputs[0]), moves + 1
    if x.rank != 4 or node is None or node.op != "Transpose":
        return x
    samples, rows, _, columns = x.ranked_shape
    is_other = isinstance(rows, int) and isinstance(columns, int) and rows != columns
    is_several = isinstance(samples, int) and samples != 1
    if is_other or is_several or (not moves and node.attrs["perm"] != (0, 2, 3, 1)):
        return x
    return g.Min(x, x)


def check_padding(window) -> None:
    """Refuse padding by sizes that have names: MNN has it behind only, and of wide windows."""
    how = window.get("auto_pad", "NOTSET")
    gaps = window.get("dilations") or (1,) * len(window["kernel_shape"])
    covers = (d * (k - 1) + 1 for k, d in zip(window["kernel_shape"], gaps, strict=True))
    is_wide = all(n >= s for n, s in zip(covers, window["strides"], strict=True))
    require(how in ("NOTSET", "VALID") or (how == "SAME_UPPER" and is_wide), BY_SIZES)


def conv(g, x, w, b=None, *, group: int, **window):
    """``Conv`` of one axis, or of three, as of two."""
    require(2 < x.rank < 6, IMAGES)
    check_padding(window)
    if (apart := keep_transposed_apart(g, x)) is not x:
        return g.Conv(apart, w, b, group=group, **window)
    require(w.is_static, FILTERS)
    if b is not None and b.tensor is None:
        return add_bias(g, g.Conv(x, w, group=group, **window), b)
    if x.rank == 4:
        return None
    if x.rank == 5:
        return conv_volume(g, x, w, b, group, window)
    return g.Squeeze(g.Conv(as_image(g, x), as_image(g, w), b, group=group, **widen(window)), [3])


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
    require(is_static, "MNN convolves volumes of static sizes only")
    require("auto_pad" not in window, PADS)


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


def conv_transpose(g, x, w, b=None, *, group: int, **window):
    """``ConvTranspose`` of one axis, or of three, as of two."""
    require(2 < x.rank < 6, IMAGES)
    require(not {"output_shape", "auto_pad"} & window.keys(), PADS)
    require(x.tensor is None, "MNN has no ConvTranspose of constants")
    if (apart := keep_transposed_apart(g, x)) is not x:
        return g.ConvTranspose(apart, w, b, group=group, **window)
    require(w.is_static, FILTERS)
    if b is not None and b.tensor is None:
        return add_bias(g, g.ConvTranspose(x, w, group=group, **window), b)
    rows, columns = w.ranked_shape[:2]
    is_even = w.tensor is not None or group == 1 or rows == group * columns
    require(is_even, "MNN takes constant weights of groups that change the number of channels")
    if x.rank == 5:
        return conv_transpose_volume(g, x, w, b, group, window)
    is_single = rows == group and columns == 1
    if (is_single and uneven_pads(window)) or crops_all(window):
        y = g.ConvTranspose(x, w, b, group=group, **{**window, "pads": None})
        return pad_window_axes(g, y, tuple(-p for p in window["pads"]))
    if x.rank == 4:
        return None
    wide = g.ConvTranspose(as_image(g, x), as_image(g, w), b, group=group, **widen(window))
    return g.Squeeze(wide, [3])


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


def max_pool(g, x, *, storage_order: int, outputs: int = 1, **window):
    """``MaxPool`` without dilations, whose sizes are rounded down."""
    if x.rank == 5 and outputs == 1:
        return pool_volume("MaxPool", g, x, window, storage_order=storage_order)
    require(2 < x.rank < 5, IMAGES)
    check_padding(window)
    w = Windows(**window)
    form = {"storage_order": storage_order}
    if outputs > 1:
        return g.decompose("MaxPool", 8, x, outputs=outputs, **form, **window)
    if w.ceil_mode or w.is_spread:
        return g.decompose("MaxPool", 10, x, **form, **window)
    if (apart := keep_transposed_apart(g, keep_apart(g, x))) is not x:
        return g.MaxPool(apart, **form, **window)
    if not are_even(w):
        padded = pad_window_axes(g, x, w.pads, extreme_value(x.type, False))
        return g.MaxPool(padded, **{**window, "pads": None})
    if x.rank == 4:
        return None
    return g.Squeeze(g.MaxPool(as_image(g, x), **widen(window)), [3])


def average_pool(g, x, *, count_include_pad: int, **window):
    """``AveragePool`` without dilations, whose sizes are rounded down."""
    if x.rank == 5:
        return pool_volume("AveragePool", g, x, window, count_include_pad=count_include_pad)
    require(2 < x.rank < 5, IMAGES)
    check_padding(window)
    require(x.tensor is None, "MNN has no AveragePool of constants")
    w = Windows(**window)
    form = {"count_include_pad": count_include_pad}
    if w.is_spread:
        return g.decompose("AveragePool", 19, x, **form, **window)
    if (apart := keep_transposed_apart(g, keep_apart(g, x))) is not x:
        return g.AveragePool(apart, **form, **window)
    if w.ceil_mode:
        return g.decompose("AveragePool", 10, x, **form, **window)
    if not are_even(w):
        return average_padded(g, x, w, count_include_pad)
    if x.rank == 4:
        return None
    return g.Squeeze(g.AveragePool(as_image(g, x), **form, **widen(window)), [3])
