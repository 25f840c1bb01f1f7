"""Pooling: every window counted out, as Relay's ``ceil_mode`` keeps windows ONNX drops."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.ir.geometry import Ints, window_output
from serde.ir.graph import Value

from ..target import halves, windowed, writes
from .convolution import LAYOUTS
from .recast import recasts

FIXED = {"auto_pad": ("NOTSET",)}


def explicit(x: Value, kernel: Ints, strides: Ints, dilations: Ints, pads: Ints) -> Ints:
    """Pads at the ends with which the windows of ``ceil_mode`` are those that fit."""
    begin, end = halves(pads)
    found = []
    sizes = x.known[2:]
    for at, size in enumerate(sizes):
        require(isinstance(size, int), "ceil_mode along an axis of dynamic size")
        wide = (kernel[at] - 1) * dilations[at] + 1
        total = begin[at] + end[at]
        count = window_output(size, kernel[at], strides[at], dilations[at], total, True)
        while (count - 1) * strides[at] >= size + begin[at]:  # begins in the pads
            count -= 1
        found.append(max(0, (count - 1) * strides[at] + wide - size - begin[at]))
    return tuple(found)


@recasts("MaxPool")
def recast_max_pool(
    g, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, auto_pad=None,
    outputs: int = 1,
):  # fmt: skip
    if outputs > 1:
        frame = {"kernel_shape": kernel_shape, "strides": strides, "pads": pads}
        frame |= {"storage_order": storage_order, "outputs": outputs}
        if ceil_mode or set(dilations) != {1}:
            return g.decompose("MaxPool", 10, x, ceil_mode=ceil_mode, dilations=dilations, **frame)
        return g.decompose("MaxPool", 8, x, **frame)
    if not ceil_mode and (x.is_static or x.rank == 4):
        return None
    if not ceil_mode:
        return by_images(g.MaxPool, g, x, kernel_shape, strides, dilations, pads)
    begin, _ = halves(pads)
    ends = explicit(x, kernel_shape, strides, dilations, pads)
    return g.MaxPool(
        x, kernel_shape=kernel_shape, strides=strides, dilations=dilations, pads=(*begin, *ends)
    )


@recasts("AveragePool")
def recast_average_pool(
    g, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad, auto_pad=None
):
    """Pads that count are zeros of the tensor; what is behind them never counts."""
    if not ceil_mode and not (count_include_pad and any(pads)):
        if x.is_static or x.rank == 4:
            return None
        return by_images(g.AveragePool, g, x, kernel_shape, strides, dilations, pads)
    begin, end = halves(pads)
    ends = explicit(x, kernel_shape, strides, dilations, pads) if ceil_mode else end
    if count_include_pad:
        own = tuple(min(a, b) for a, b in zip(ends, end, strict=True))
        x = g.Pad(x, (0, 0, *begin, 0, 0, *own))
        begin, ends = (0,) * len(begin), tuple(a - b for a, b in zip(ends, own, strict=True))
    return g.AveragePool(
        x, kernel_shape=kernel_shape, strides=strides, dilations=dilations, pads=(*begin, *ends)
    )


def by_images(pool, g, x: Value, kernel, strides, dilations, pads):
    """TVM pools images only where sizes are open: a signal is one, and a volume is pooled twice."""
    form = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    begin, end = halves(pads)
    if len(kernel) == 1:
        wide = {n: (1, *v) for n, v in form.items()}
        return g.Squeeze(pool(g.Unsqueeze(x, [2]), pads=(0, *begin, 0, *end), **wide), [2])
    require(len(kernel) == 3, f"pooling over {len(kernel)} axes of dynamic size")
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


@recasts("LpPool")
def recast_lp_pool(
    g, x, *, kernel_shape, strides, dilations, pads, ceil_mode, p: int, auto_pad=None
):
    """The root of a sum of powers; the sum is an average, multiplied."""
    begin, end = halves(pads)
    ends = explicit(x, kernel_shape, strides, dilations, pads) if ceil_mode else end
    powers = g.Pow(g.Abs(x), float(p)) if p != 2 else g.Mul(x, x)
    powers = g.Pad(powers, (0, 0, *begin, 0, 0, *ends))
    volume = 1
    for k in kernel_shape:
        volume *= k
    mean = g.AveragePool(powers, kernel_shape=kernel_shape, strides=strides, dilations=dilations)
    return g.Pow(g.Mul(mean, float(volume)), 1 / p)


@writes("MaxPool", only={"ceil_mode": (0,), "storage_order": (0,), **FIXED})
def write_max_pool(r, x, *, kernel_shape, strides, dilations, pads):
    return _pool(r, "max", x, kernel_shape, strides, dilations, pads)


@writes("AveragePool", only={"ceil_mode": (0,), **FIXED}, ignore=("count_include_pad",))
def write_average_pool(r, x, *, kernel_shape, strides, dilations, pads):
    return _pool(r, "avg", x, kernel_shape, strides, dilations, pads)


def _pool(r, kind, x, kernel_shape, strides, dilations, pads):
    axes = len(kernel_shape)
    require(axes in LAYOUTS, f"pooling over {axes} axes")
    return r[f"nn.{kind}_pool{axes}d"](
        x, pool_size=kernel_shape, strides=strides, dilation=dilations, padding=windowed(pads),
        layout=LAYOUTS[axes][0],
    )  # fmt: skip


def recast_global(op, g, x, **attrs):
    """Images have an operator of their own."""
    if x.rank == 4 and op != "ReduceL2" and x.type.kind == "f":
        return None
    return g[op](x, list(range(2, x.rank)), keepdims=1)


def write_global(name, r, x):
    return r[f"nn.{name}"](x)


for _op, _reduction, _name in (
    ("GlobalAveragePool", "ReduceMean", "global_avg_pool2d"),
    ("GlobalMaxPool", "ReduceMax", "global_max_pool2d"),
):
    recasts(_op)(partial(recast_global, _reduction))
    writes(_op)(partial(write_global, _name))


@recasts("GlobalLpPool")
def recast_global_lp_pool(g, x, *, p: int):
    over = list(range(2, x.rank))
    return g.Pow(g.ReduceSum(g.Pow(g.Abs(x), float(p)), over, keepdims=1), 1 / p)
