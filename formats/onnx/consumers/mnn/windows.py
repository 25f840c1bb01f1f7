"""Layers that move windows: MNN has them of images."""

from __future__ import annotations

from serde.errors import require
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.indexing import extreme_value
from serde.version_converter.adapters.pooling import Windows, pad_window_axes

from ..pooling import add_rules, are_even, average_padded, keep_apart, lp_pool

IMAGES = "MNN has it over one or two axes"
FILTERS = "MNN takes filters whose sizes have numbers"
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


def conv(g, x, w, b=None, *, group: int, **window):
    """``Conv`` of one axis, or of three, as of two."""
    require(2 < x.rank < 6, IMAGES)
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
    sizes, axes = x.ranked_shape[1:], (0, 2, 1, 3, 4)
    require(all(isinstance(n, int) for n in sizes), "MNN convolves volumes of static sizes only")
    require(group == 1 and "auto_pad" not in window, "MNN convolves volumes of one group only")
    rows, channels, depth = w.static_shape[:3]
    stride, step = window["strides"][0], window["dilations"][0]
    before, behind = window["pads"][0], window["pads"][3]
    count = (sizes[1] + before + behind - step * (depth - 1) - 1) // stride + 1
    x = g.Pad(x, [0, 0, before, 0, 0, 0, 0, behind, 0, 0])
    starts = [at * step for at in range(depth)]
    parts = [g.Slice(x, [at], [at + (count - 1) * stride + 1], [2], [stride]) for at in starts]
    stacked = g.Transpose(g.Concat(*parts, axis=1), perm=axes)
    images = g.Reshape(stacked, [-1, depth * channels, *sizes[2:]])
    filters = g.Reshape(g.Transpose(w, perm=axes), [rows, depth * channels, *w.static_shape[3:]])
    y = g.Conv(images, filters, b, group=1, **choose_axes(window, [1, 2]))
    volumes = g.Reshape(y, [-1, count, rows, *y.ranked_shape[2:]])
    return g.Transpose(volumes, perm=axes)


def conv_transpose(g, x, w, b=None, *, group: int, **window):
    """``ConvTranspose`` of one axis as of two."""
    require(2 < x.rank < 5, IMAGES)
    require(not {"output_shape", "auto_pad"} & window.keys(), PADS)
    require(x.tensor is None, "MNN has no ConvTranspose of constants")
    require(w.is_static, FILTERS)
    if b is not None and b.tensor is None:
        return add_bias(g, g.ConvTranspose(x, w, group=group, **window), b)
    rows, columns = w.ranked_shape[:2]
    is_even = w.tensor is not None or group == 1 or rows == group * columns
    require(is_even, "MNN takes constant weights of groups that change the number of channels")
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
    lists = ("kernel_shape", "strides", "dilations")
    chosen = {**window, **{n: tuple(window[n][a] for a in axes) for n in lists if window.get(n)}}
    if pads := window.get("pads"):
        chosen["pads"] = tuple(pads[a + end] for end in (0, 3) for a in axes)
    return chosen


def max_pool(g, x, *, storage_order: int, outputs: int = 1, **window):
    """``MaxPool`` without dilations, whose sizes are rounded down."""
    if x.rank == 5 and outputs == 1:
        return pool_volume("MaxPool", g, x, window, storage_order=storage_order)
    require(2 < x.rank < 5, IMAGES)
    w = Windows(**window)
    form = {"storage_order": storage_order}
    if outputs > 1:
        return g.decompose("MaxPool", 8, x, outputs=outputs, **form, **window)
    if w.ceil_mode or w.is_spread:
        return g.decompose("MaxPool", 10, x, **form, **window)
    if (apart := keep_apart(g, x)) is not x:
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
    require(x.tensor is None, "MNN has no AveragePool of constants")
    w = Windows(**window)
    form = {"count_include_pad": count_include_pad}
    if w.is_spread:
        return g.decompose("AveragePool", 19, x, **form, **window)
    if (apart := keep_apart(g, x)) is not x:
        return g.AveragePool(apart, **form, **window)
    if w.ceil_mode:
        return g.decompose("AveragePool", 10, x, **form, **window)
    if not are_even(w):
        return average_padded(g, x, w, count_include_pad)
    if x.rank == 4:
        return None
    return g.Squeeze(g.AveragePool(as_image(g, x), **form, **widen(window)), [3])
