"""Pooling."""

from __future__ import annotations

from functools import partial

from serde.decompositions.adaptive_pools import GREATEST, MEAN, adapt_axes
from serde.decompositions.composites import emit_adaptive_pool
from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import DType

from ..promotion import as_type
from ..rules import reads
from .convolution import for_each_axis

AXES = (1, 2, 3)


def apply_to_images(g, x, n, apply):
    """Apply a function of images to one image too."""
    if x.rank != n + 1:
        return apply(x)
    y = apply(g.Unsqueeze(x, [0]))
    if isinstance(y, tuple):
        return tuple(g.Squeeze(v, [0]) for v in y)
    return g.Squeeze(y, [0])


@reads.for_each({f"max_pool{n}d": n for n in AXES})
def read_max_pool(n, g, x, kernel, stride, padding, dilation, ceil_mode):
    return apply_to_images(
        g, x, n, partial(max_pool, g, n, kernel, stride, padding, dilation, ceil_mode, 1)
    )


@reads.for_each({"max_pool1d_with_indices": 1, "max_pool2d_with_indices": 2,
                 "max_pool3d_with_indices": 3})  # fmt: skip
def read_max_pool_indices(n, g, x, kernel, stride, padding, dilation, ceil_mode):
    return apply_to_images(
        g, x, n, partial(max_pool, g, n, kernel, stride, padding, dilation, ceil_mode, 2)
    )


def max_pool(g, n, kernel, stride, padding, dilation, ceil_mode, outputs, x):
    """The greatest of windows; indices count within a channel."""
    attrs = {
        "kernel_shape": for_each_axis(kernel, n), "strides": for_each_axis(stride or kernel, n),
        "pads": for_each_axis(padding, n) * 2, "dilations": for_each_axis(dilation, n),
        "ceil_mode": int(ceil_mode),
    }  # fmt: skip
    if outputs == 1:
        return g.MaxPool(x, **attrs)
    y, places = g.MaxPool(x, outputs=2, **attrs)
    area = g.multiply_sizes(g.sizes_of(x)[2:])
    area = g.const(area, DType.INT64) if isinstance(area, int) else g.Squeeze(area, [0])
    return y, g.Mod(places, area)


@reads("avg_pool1d")
def read_avg_pool1d(g, x, kernel, stride, padding, ceil_mode, count_include_pad):
    return avg_pool(1, g, x, kernel, stride, padding, ceil_mode, count_include_pad, None)


@reads.for_each({"avg_pool2d": 2, "avg_pool3d": 3})
def read_avg_pool(n, g, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    return avg_pool(n, g, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor)


def avg_pool(n, g, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    """The mean of windows; a divisor of one's own stands for their counts."""
    kernel = for_each_axis(kernel, n)
    attrs = {
        "kernel_shape": kernel, "strides": for_each_axis(stride or kernel, n),
        "pads": for_each_axis(padding, n) * 2, "ceil_mode": int(ceil_mode),
        "count_include_pad": int(count_include_pad or divisor is not None),
    }  # fmt: skip
    require(divisor is None or not ceil_mode, "divisor_override with ceil_mode: leave one out")

    def apply(x):
        y = g.AveragePool(x, **attrs)
        area = 1
        for k in kernel:
            area *= k
        return y if divisor is None else g.Mul(y, as_type(g, area / divisor, x.type))

    return apply_to_images(g, x, n, apply)


@reads.for_each({"adaptive_avg_pool1d": 1, "adaptive_avg_pool2d": 2, "adaptive_avg_pool3d": 3,
                 "_adaptive_avg_pool2d": 2, "_adaptive_avg_pool3d": 3})  # fmt: skip
def read_adaptive_avg(n, g, x, sizes):
    return apply_to_images(g, x, n, lambda x: adaptive(g, x, n, sizes, MEAN))


@reads.for_each({f"adaptive_max_pool{n}d": n for n in AXES})
def read_adaptive_max(n, g, x, sizes, *, outputs=1):
    if outputs == 1:
        return apply_to_images(g, x, n, lambda x: adaptive(g, x, n, sizes, GREATEST))
    return apply_to_images(g, x, n, lambda x: adaptive_with_indices(g, n, sizes, x))


def adaptive_with_indices(g, n, sizes, x):
    """Windows of one size, which alone tell places."""
    pairs = [*zip(x.ranked_shape[2:], for_each_axis(sizes, n), strict=True)]
    require(all(isinstance(a, int) and isinstance(b, int) and a % b == 0 for a, b in pairs),
            f"indices of an adaptive pool of {x.ranked_shape[2:]} in {sizes} parts, which are "
            "windows of several sizes: leave return_indices out, or pool to a divisor")  # fmt: skip
    kernel = [a // b for a, b in pairs]
    return max_pool(g, n, kernel, kernel, (0,), (1,), False, 2, x)


def adaptive(g, x, n, sizes, kind):
    """Windows that cover each axis in as many parts as are asked for."""
    sizes = for_each_axis(sizes, n)
    if not all(isinstance(s, int) for s in sizes):  # as PyTorch tells of an axis that is kept
        sizes = [s if isinstance(s, int) else shape_data_of(s)[0] for s in sizes]
        known = zip(sizes, x.ranked_shape[2:], strict=True)
        require(all(isinstance(s, int) or s == dim for s, dim in known), "an adaptive pool to "
                "computed sizes: give numbers")  # fmt: skip
        return adapt_axes(g, x, sizes, kind)
    if all(s == 1 for s in sizes):
        reduce = g.ReduceMean if kind == MEAN else g.ReduceMax
        return reduce(x, list(range(2, 2 + n)), keepdims=1)
    return emit_adaptive_pool(g, x, sizes, kind)


@reads("max_unpool2d")
def read_unpool(g, x, places, sizes):
    return unpool(g, x, places, sizes, 2)


@reads("max_unpool3d", ignore=("stride", "padding"))
def read_unpool_of_volumes(g, x, places, sizes):
    return unpool(g, x, places, sizes, 3)


def unpool(g, x, places, sizes, n):
    """Elements at the places that they had in each channel, and zeros."""
    lead = g.sizes_of(x)[:-n]
    whole = g.shape_from([*lead, g.multiply_sizes(list(sizes))])
    rows = g.shape_from([*lead, -1])
    zeros = g.Expand(as_type(g, 0, x.type), whole)
    y = g.ScatterElements(zeros, g.Reshape(places, rows), g.Reshape(x, rows), axis=x.rank - n)
    return g.Reshape(y, g.shape_from([*lead, *sizes]))
