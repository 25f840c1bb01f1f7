"""Pooling: windows, whole axes, and windows that fit a given output size.

Written pools have no ``ceil_mode``: Relay's keeps windows ONNX drops, so pads are written out.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from serde.decompositions.adaptive_pools import GREATEST, MEAN
from serde.decompositions.composites import emit_adaptive_pool
from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import BYTES, DType, Value
from serde.spec.expressions import lowest_value
from serde.version_converter.adapters.pooling import ceil_mode_pads

from ..rules import reads
from ..target import format_pads, halves, legalizations, writes
from .convolution import FIXED_PADS, LAYOUTS, normalize_pads, repeat_per_axis, spatial
from .layouts import pack_layout, require_static_sizes, unpack_layout
from .reduction import integer_mean
from .widths import compute_widely


def read_pool(
    kind, count, g, x, *, pool_size: Ints, strides: Ints = (1,), dilation: Ints = (1,),
    padding: Ints = (0,), layout: str | None = None, out_layout="", ceil_mode=False,
    count_include_pad=False,
):  # fmt: skip
    target = "NC" + spatial(count)
    layout = layout or target
    frame = {
        "kernel_shape": repeat_per_axis(pool_size, count),
        "strides": repeat_per_axis(strides, count),
        "dilations": repeat_per_axis(dilation, count),
        "pads": normalize_pads(padding, count),
    }
    x = unpack_layout(g, x, layout, target)
    y = pool(g, x, kind, frame, ceil_mode, count_include_pad)
    return pack_layout(g, y, target, out_layout or layout)


def pool(g, x: Value, kind: str, frame, up: bool, include: bool):
    """Windows of which the last may reach beyond the padding; what lies there never counts."""
    window_pads = frame["pads"]
    if up:
        frame = {**frame, "pads": pads_of_last_window(x, frame)}
    half = len(frame["kernel_shape"])
    spans = [d * (k - 1) + 1 for k, d in zip(
        frame["kernel_shape"], frame["dilations"], strict=True)]  # fmt: skip
    outside = any(p >= s for p, s in zip(frame["pads"], spans * 2, strict=True))
    if kind == "max":
        if outside:
            x, frame = pad_input(g, x, frame, lowest_value(x), half)
        if x.type.kind == "f" or x.type in BYTES:
            return g.MaxPool(x, **frame)
        return compute_widely(g, lambda g, x: max_pool_in_float(g, x, frame), x)
    if x.type.kind in "iu":
        return integer_average(g, x, frame, window_pads, include)
    if include and any(window_pads):
        x = g.Pad(x, (0, 0, *window_pads[:half], 0, 0, *window_pads[half:]))
        over = tuple(p - q for p, q in zip(frame["pads"], window_pads, strict=True))
        frame = {**frame, "pads": over}
    require(include or not outside, "average pooling with a window that lies in the padding")
    return g.AveragePool(x, count_include_pad=0, **frame)


def integer_average(g, x: Value, frame, window_pads: Ints, include: bool):
    """The sum of a window, which float32 counts exactly, divided by its size and cut off."""
    size = g.const(prod(frame["kernel_shape"]), DType.FLOAT32)

    def sum_window(v):
        mean = g.AveragePool(v, count_include_pad=1, **frame)
        return g.cast(g.Floor(g.Add(g.Mul(mean, size), 0.5)), DType.INT32)

    x_float32 = g.cast(x, DType.FLOAT32)
    total = sum_window(x_float32)
    require(
        not include or frame["pads"] == window_pads, "integers, ceil_mode and count_include_pad"
    )
    if include or not any(frame["pads"]):
        return g.cast(g.Div(total, g.cast(size, DType.INT32)), x.type)
    counted = sum_window(g.full_like(g.Slice(x_float32, [0, 0], [1, 1], [0, 1], [1, 1]), 1))
    return g.cast(g.Div(total, g.Max(counted, g.const(1, DType.INT32))), x.type)


def max_pool_in_float(g, x: Value, frame):
    require(x.type is DType.INT32, f"max pooling of {x.type.value}")
    return g.cast(g.MaxPool(g.cast(x, DType.FLOAT64), **frame), DType.INT32)


def pads_of_last_window(x: Value, frame) -> Ints:
    """Pads with as much more at the end as the last window needs when sizes are rounded up.

    One less than the stride is never more than one window, where the size is dynamic.
    """
    half = len(frame["kernel_shape"])
    begins, ends = frame["pads"][:half], list(frame["pads"][half:])
    for at in range(half):
        k, s, d = (frame[n][at] for n in ("kernel_shape", "strides", "dilations"))
        size = x.ranked_shape[2 + at]
        if isinstance(size, int):
            rest = (size + begins[at] + ends[at] - (d * (k - 1) + 1)) % s
            ends[at] += s - rest if rest else 0
        else:
            ends[at] += s - 1
    return (*begins, *ends)


def pad_input(g, x: Value, frame, fill, half: int):
    """Pad ``x`` itself, so that the window's own pads are none."""
    pads: Ints = (0, 0, *frame["pads"][:half], 0, 0, *frame["pads"][half:])
    return g.Pad(x, pads, g.scalar(fill, x)), {**frame, "pads": (0,) * 2 * half}


for _count in (1, 2, 3):
    for _kind in ("avg", "max"):
        reads(f"nn.{_kind}_pool{_count}d")(partial(read_pool, _kind, _count))


@reads.for_each(
    {"nn.global_avg_pool2d": "GlobalAveragePool", "nn.global_max_pool2d": "GlobalMaxPool"}
)
def read_global_pool(op, g, x, *, layout="NCHW", out_layout=""):
    y = global_pool(g, unpack_layout(g, x, layout, "NCHW"), op)
    return pack_layout(g, y, "NCHW", out_layout or layout)


def global_pool(g, x: Value, op: str):
    """The greatest element, or the mean."""
    if x.type.kind == "f":
        return g[op](x)
    axes = tuple(range(2, x.rank))
    if op == "GlobalMaxPool":
        return g.cast(g.ReduceMax(g.cast(x, DType.INT64), axes, keepdims=1), x.type)
    return integer_mean(g, x, axes, True)


def read_adaptive_pool(
    kind, count, g, x, *, output_size: Ints = (), layout: str | None = None, out_layout=""
):
    """The window of output ``i`` of ``n`` runs from ``floor(i·d/n)`` to ``ceil((i+1)·d/n)``."""
    target = "NC" + spatial(count)
    layout = layout or target
    x = unpack_layout(g, x, layout, target)
    expected = repeat_per_axis(output_size, count) if output_size else x.ranked_shape[2:]
    y = adaptive_pool(g, x, kind, expected)
    return pack_layout(g, y, target, out_layout or layout)


def adaptive_pool(g, x: Value, kind: str, expected):
    if all(n == 1 for n in expected):
        return global_pool(g, x, "GlobalAveragePool" if kind == "avg" else "GlobalMaxPool")
    dims = require_static_sizes(x)
    if x.type.kind != "f":
        return adaptive_pool_integers(g, x, kind, dims, expected)
    whole = MEAN if kind == "avg" else GREATEST
    return emit_adaptive_pool(g, x, expected, whole, partial(pool_windows, kind, dims))


def pool_windows(kind: str, dims, g, x: Value, expected, _):
    """Pools over windows of one size, or windows that are gathered."""
    if all(d % n == 0 for d, n in zip(dims, expected, strict=True)):
        kernel = tuple(d // n for d, n in zip(dims, expected, strict=True))
        op = "AveragePool" if kind == "avg" else "MaxPool"
        return g[op](x, kernel_shape=kernel, strides=kernel)
    for at, (d, n) in enumerate(zip(dims, expected, strict=True)):
        x = pool_unequal_windows(g, x, kind, 2 + at, d, n)
    return x


def adaptive_pool_integers(g, x: Value, kind: str, dims, expected):
    """The greatest element of each window, or its sum, which wraps around, divided by its size."""
    y, sizes = g.cast(x, DType.INT64), np.ones((), np.int64)
    for at, (d, n) in enumerate(zip(dims, expected, strict=True)):
        table, lengths = windows_of(d, n)
        sizes = sizes[..., None] * lengths
        y = g.Gather(y, g.const(table, DType.INT64), axis=2 + at)
        if kind == "avg":
            inside = arrays.arange(table.shape[1]) < lengths[:, None]
            shape = (*table.shape, *(1,) * (x.rank - at - 3))
            y = g.Mul(y, g.const(inside.reshape(shape).astype(np.int64)))
        y = g["ReduceSum" if kind == "avg" else "ReduceMax"](y, [3 + at], keepdims=0)
    if kind == "avg":
        sizes = sizes.astype(x.type.numpy).astype(np.int64)
        require(bool(sizes.all()), f"windows of a size that {x.type.value} lacks")
        y = g.Div(g.cast(g.cast(y, x.type), DType.INT64), g.const(sizes))
    return g.cast(y, x.type)


def windows_of(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The places in each of ``count`` windows, the last one repeated, and the windows' lengths."""
    starts = arrays.arange(count) * size // count
    ends = -(-(arrays.arange(count) + 1) * size // count)
    longest = int((ends - starts).max())
    arrays.charge_elements(count, longest)
    places = starts[:, None] + np.arange(longest)
    return np.minimum(places, ends[:, None] - 1), ends - starts


def pool_unequal_windows(g, x: Value, kind: str, axis: int, size: int, count: int):
    """Windows of unequal sizes along one axis: each is gathered, the short ones filled up."""
    if size == count:
        return x
    table, lengths = windows_of(size, count)
    windows = g.Gather(x, g.const(table, DType.INT64), axis=axis)
    if kind == "max":
        return g.ReduceMax(windows, [axis + 1], keepdims=0)
    inside = arrays.arange(table.shape[1]) < lengths[:, None]
    shape = (*table.shape, *(1,) * (x.rank - axis - 1))
    weights = (inside / lengths[:, None]).reshape(shape).astype(x.type.numpy)
    scaled = g.Mul(windows, g.const(weights))
    return g.ReduceSum(scaled, [axis + 1], keepdims=0)


for _count in (1, 2, 3):
    for _kind in ("avg", "max"):
        reads(f"nn.adaptive_{_kind}_pool{_count}d")(partial(read_adaptive_pool, _kind, _count))


def pads_of_ceil_mode(x: Value, kernel: Ints, strides: Ints, dilations: Ints, pads: Ints) -> Ints:
    """Pads with which the windows of ``ceil_mode`` are those that fit."""
    begin, end = halves(pads)
    extra = ceil_mode_pads(x, kernel, strides, dilations, pads)
    require(extra is not None, "ceil_mode along an axis of dynamic size")
    return (*begin, *(p + e for p, e in zip(end, extra, strict=True)))


@legalizations("MaxPool", only=FIXED_PADS)
def legalize_max_pool(g, x, *, ceil_mode, storage_order, outputs: int = 1, **window):
    dilations = window["dilations"]
    if outputs > 1:
        window |= {"storage_order": storage_order, "outputs": outputs}
        if ceil_mode or set(dilations) != {1}:
            return g.decompose("MaxPool", 10, x, ceil_mode=ceil_mode, **window)
        del window["dilations"]
        return g.decompose("MaxPool", 8, x, **window)
    if ceil_mode:
        return g.MaxPool(x, **{**window, "pads": pads_of_ceil_mode(x, *_of_window(window))})
    return None if x.is_static or x.rank == 4 else pool_by_images(g.MaxPool, g, x, **window)


def _of_window(window) -> tuple[Ints, Ints, Ints, Ints]:
    """Kernel, strides, dilations and pads."""
    return tuple(window[n] for n in ("kernel_shape", "strides", "dilations", "pads"))


@legalizations("AveragePool", only=FIXED_PADS)
def legalize_average_pool(g, x, *, ceil_mode, count_include_pad, **window):
    """Pads that count are zeros of the tensor; what is behind them never counts."""
    pads = window["pads"]
    if not ceil_mode and not (count_include_pad and any(pads)):
        if x.is_static or x.rank == 4:
            return None
        return pool_by_images(g.AveragePool, g, x, **window)
    wider = pads_of_ceil_mode(x, *_of_window(window)) if ceil_mode else pads
    if count_include_pad:
        begin, end = halves(pads)
        x = g.Pad(x, (0, 0, *begin, 0, 0, *end))
        wider = tuple(a - b for a, b in zip(wider, pads, strict=True))
    return g.AveragePool(x, **{**window, "pads": wider})


def pool_by_images(pool, g, x: Value, *, pads, **form):
    """TVM pools images only of dynamic size: a signal is one, and a volume is pooled twice."""
    (begin, end), axes = halves(pads), len(form["kernel_shape"])
    if axes == 1:
        image_window = {n: (1, *v) for n, v in form.items()}
        return g.Squeeze(pool(g.Unsqueeze(x, [2]), pads=(0, *begin, 0, *end), **image_window), [2])
    require(axes == 3, f"pooling over {axes} axes of dynamic size")
    size, channels = g.Shape(x), g.Shape(x, end=2)
    flat = g.Reshape(x, g.Concat(g.Shape(x, end=1), [-1], g.Shape(x, start=3), axis=0))
    inner = {n: v[1:] for n, v in form.items()}
    flat = pool(flat, pads=(*begin[1:], *end[1:]), **inner)
    image = g.Shape(flat, start=2)
    deep = g.Reshape(flat, g.Concat(g.Slice(size, [0], [3], [0], [1]), [-1], axis=0))
    outer = {n: (v[0], 1) for n, v in form.items()}
    deep = pool(deep, pads=(begin[0], 0, end[0], 0), **outer)
    depth = g.Shape(deep, start=2, end=3)
    return g.Reshape(deep, g.Concat(channels, depth, image, axis=0))


@legalizations("LpPool", only=FIXED_PADS)
def legalize_lp_pool(g, x, *, ceil_mode, p: int, **window):
    """The root of a sum of powers; the sum is an average, multiplied."""
    begin, end = halves(pads_of_ceil_mode(x, *_of_window(window)) if ceil_mode else window["pads"])
    powers = g.Pow(g.Abs(x), float(p)) if p != 2 else g.Mul(x, x)
    powers = g.Pad(powers, (0, 0, *begin, 0, 0, *end))
    mean = g.AveragePool(powers, **{**window, "pads": (0,) * len(begin + end)})
    return g.Pow(g.Mul(mean, float(prod(window["kernel_shape"]))), 1 / p)


def write_pool(kind, r, x, *, kernel_shape, strides, dilations, pads):
    axes = len(kernel_shape)
    require(axes in LAYOUTS, f"pooling over {axes} axes")
    return r[f"nn.{kind}_pool{axes}d"](
        x, pool_size=kernel_shape, strides=strides, dilation=dilations, padding=format_pads(pads),
        layout=LAYOUTS[axes][0],
    )  # fmt: skip


FIXED = {"ceil_mode": (0,), **FIXED_PADS}
writes("MaxPool", only={**FIXED, "storage_order": (0,)})(partial(write_pool, "max"))
writes("AveragePool", only=FIXED, ignore=("count_include_pad",))(partial(write_pool, "avg"))


@legalizations.for_each({"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"})
def legalize_global(op, g, x):
    """Images have an operator of their own."""
    if x.rank == 4 and x.type.kind == "f":
        return None
    return g[op](x, list(range(2, x.rank)), keepdims=1)


writes.rename(
    {"GlobalAveragePool": "nn.global_avg_pool2d", "GlobalMaxPool": "nn.global_max_pool2d"}
)
