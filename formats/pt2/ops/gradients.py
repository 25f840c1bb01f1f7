"""Gradients, where a module computes them itself."""

from __future__ import annotations

import math

from serde.errors import require
from serde.ir import arrays

from ..promotion import as_type
from ..rules import reads
from .convolution import for_each_axis, frame
from .normalization import in_channels


@reads("embedding_dense_backward")
def read_embedding_backward(g, grad, indices, count, padding_idx, by_frequency):
    width = g.size_of(grad, grad.rank - 1)
    rows = g.reshape(grad, [-1, width])
    at = g.Reshape(indices, [-1])
    places = g.Unsqueeze(at, [1])
    if padding_idx >= 0:
        rows = g.Where(g.Equal(places, as_type(g, padding_idx, at.type)), 0.0, rows)
    if by_frequency:
        ones = g.full_like(at, 1, grad.type)
        counts = g.ScatterND(zeros(g, [count], grad), places, ones, reduction="add")
        rows = g.Div(rows, g.Unsqueeze(g.Gather(counts, at, axis=0), [1]))
    return g.ScatterND(zeros(g, [count, width], grad), places, rows, reduction="add")


def zeros(g, sizes, like):
    """Zeros of sizes, of the type of another tensor."""
    return g.Expand(as_type(g, 0, like.type), g.shape_from(sizes))


def normalization_gradient(g, grad, unit, deviation, axes):
    """The gradient of what was normalized to ``unit``, by the reciprocal of its deviation."""
    mean = g.ReduceMean(grad, axes, keepdims=1)
    along = g.ReduceMean(g.Mul(grad, unit), axes, keepdims=1)
    return g.Mul(deviation, g.Sub(g.Sub(grad, mean), g.Mul(unit, along)))


@reads("native_layer_norm_backward")
def read_layer_norm_backward(g, grad, x, shape, mean, deviation, w, b, mask):
    axis = x.rank - len(shape)
    unit = g.Mul(g.Sub(x, mean), deviation)
    weighted = grad if w is None else g.Mul(grad, w)
    axes = list(range(axis))
    return (
        normalization_gradient(g, weighted, unit, deviation, list(range(axis, x.rank))),
        g.ReduceSum(g.Mul(grad, unit), axes, keepdims=0) if mask[1] else None,
        g.ReduceSum(grad, axes, keepdims=0) if mask[2] else None,
    )


@reads("native_group_norm_backward")
def read_group_norm_backward(g, grad, x, mean, deviation, w, n, c, area, groups, mask):
    mean, deviation = (g.Reshape(v, g.shape_from([n, groups, 1])) for v in (mean, deviation))
    unit = g.Mul(g.Sub(g.reshape(x, [n, groups, -1]), mean), deviation)
    weighted = grad if w is None else g.Mul(grad, in_channels(g, x, w))
    y = normalization_gradient(g, g.reshape(weighted, [n, groups, -1]), unit, deviation, [2])
    grad, unit = (g.reshape(v, [n, c, -1]) for v in (grad, unit))
    return (
        g.reshape(y, g.sizes_of(x)),
        g.ReduceSum(g.Mul(grad, unit), [0, 2], keepdims=0) if mask[1] else None,
        g.ReduceSum(grad, [0, 2], keepdims=0) if mask[2] else None,
    )


@reads("convolution_backward")
def read_convolution_backward(
    g, grad, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask
):  # fmt: skip
    """Of the input, the weight and the bias; a transposed convolution swaps the roles."""
    n = w.rank - 2
    require(grad.is_static and x.is_static and w.is_static, "the gradient of a convolution of "
            "images of unknown sizes: fix them when exporting")  # fmt: skip
    attrs = frame(n, stride, padding, dilation, groups)
    large, small = (grad, x) if transposed else (x, grad)
    gradient = None
    if mask[0] and transposed:
        gradient = g.Conv(grad, w, **attrs)
    elif mask[0]:
        gradient = g.ConvTranspose(grad, w, output_padding=missing_rows(x, grad, w, attrs), **attrs)
    return (
        gradient,
        weight_gradient(g, large, small, w, attrs) if mask[1] else None,
        g.ReduceSum(grad, [0, *range(2, grad.rank)], keepdims=0) if mask[2] else None,
    )


def missing_rows(x, grad, w, attrs):
    """How much larger the input is along each axis than its windows are together."""
    window = zip(attrs["strides"], attrs["pads"], attrs["dilations"], strict=False)
    axes = zip(x.static_shape[2:], grad.static_shape[2:], w.static_shape[2:], window, strict=True)
    return tuple(size - ((steps - 1) * s - 2 * p + d * (kernel - 1) + 1)
                 for size, steps, kernel, (s, p, d) in axes)  # fmt: skip


def weight_gradient(g, large, small, w, attrs):
    """A convolution of the larger images with the smaller ones, whose strides are dilations."""
    groups, count = attrs["group"], large.static_shape[0]
    channels = large.static_shape[1] // groups
    axes = list(range(3, large.rank + 1))
    images = g.reshape(large, [count, groups, channels, *large.static_shape[2:]])
    images = g.Transpose(images, perm=[2, 1, 0, *axes])
    images = g.reshape(images, [channels, groups * count, *large.static_shape[2:]])
    order = [1, 0, *range(2, small.rank)]
    y = g.Conv(images, g.Transpose(small, perm=order), group=groups, pads=attrs["pads"],
               strides=attrs["dilations"], dilations=attrs["strides"])  # fmt: skip
    for axis, size in enumerate(w.static_shape[2:], 2):
        y = g.slice_axis(y, axis, 0, size)
    return g.Transpose(y, perm=order)


@reads("max_pool2d_with_indices_backward")
def read_max_pool_backward(g, grad, x, kernel, stride, padding, dilation, ceil_mode, indices):
    lead = g.sizes_of(x)[:-2]
    flat = g.reshape(g.full_like(x, 0), [*lead, -1])
    grad, indices = (g.reshape(v, [*lead, -1]) for v in (grad, indices))
    y = g.ScatterElements(flat, indices, grad, axis=len(lead), reduction="add")
    return g.reshape(y, g.sizes_of(x))


@reads("avg_pool2d_backward")
def read_avg_pool_backward(
    g, grad, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor
):  # fmt: skip
    kernel, padding = for_each_axis(kernel, 2), for_each_axis(padding, 2)
    stride = for_each_axis(stride or kernel, 2)
    shares = []
    for axis, (k, s, p) in enumerate(zip(kernel, stride, padding, strict=True), -2):
        size, steps = known_size(x, axis), known_size(grad, axis)
        windows = [(t * s - p, min(t * s - p + k, size + p)) for t in arrays.arange(steps)]
        shares.append(make_shares(size, windows, divisor is None, count_include_pad))
    y = spread_gradient(g, grad, *shares)
    return y if divisor is None else g.Div(y, as_type(g, divisor, y.type))


@reads("_adaptive_avg_pool2d_backward")
def read_adaptive_backward(g, grad, x):
    shares = []
    for axis in (-2, -1):
        size, steps = known_size(x, axis), known_size(grad, axis)
        places = arrays.arange(steps)
        windows = [(t * size // steps, math.ceil((t + 1) * size / steps)) for t in places]
        shares.append(make_shares(size, windows, True, True))
    return spread_gradient(g, grad, *shares)


def known_size(x, axis):
    """A size of an image, which has to be known."""
    size = x.ranked_shape[axis]
    require(isinstance(size, int), "the gradient of a pool of images of unknown sizes: fix them")
    return size


def make_shares(size, windows, is_mean, counts_padding):
    """A matrix whose rows are windows; of a mean they have their shares of 1."""
    rows = arrays.zeros((len(windows), size))
    for row, (start, end) in zip(rows, windows, strict=True):
        inside = slice(max(start, 0), min(end, size))
        count = end - start if counts_padding else inside.stop - inside.start
        row[inside] = 1 / count if is_mean else 1
    return rows


def spread_gradient(g, grad, rows, columns):
    """The gradient of images, of which windows along both axes took shares."""
    left = g.const(rows.T.astype(grad.type.numpy))
    right = g.const(columns.astype(grad.type.numpy))
    return g.MatMul(g.MatMul(left, grad), right)
