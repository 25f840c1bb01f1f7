"""Layers MXNet lacks, or has in part, in those it has. A rule that returns None leaves as is."""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any

import numpy as np

from serde.decompositions.expressions import (
    cast,
    full_like,
    reshape,
    size_of,
    sizes_of,
    slice_axis,
    steps,
)
from serde.errors import ConversionError, require
from serde.ir.geometry import Ints, window_output
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.normalization import (
    inference_or_training,
    layer_normalization,
    standardized,
)
from serde.version_converter.adapters.pooling import zero_padded
from serde.version_converter.adapters.roi import roi_align
from serde.version_converter.adapters.vision import deformable_convolution

from .layers import drops
from .spelled_math import LAST, WIDE, standard
from .spelling import spells


def halved(pads: Ints) -> bool:
    """Whether both ends have the same padding."""
    half = len(pads) // 2
    return pads[:half] == pads[half:]


@spells("MaxPool")
def spell_max_pool(
    g, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, outputs: int = 1
):
    """MXNet pads both ends alike, has no gaps, and keeps windows that begin in the padding."""
    frame = {"kernel_shape": kernel_shape, "strides": strides}
    if outputs > 1:
        more = {"dilations": dilations, "pads": pads, "ceil_mode": ceil_mode}
        return with_places(g, x, storage_order, **frame, **more)
    if x.type not in (*WIDE, DType.FLOAT16):
        require(x.type in (DType.INT8, DType.UINT8), f"pooling of {x.type.value} elements")
        wide = cast(g, x, DType.FLOAT32)
        more = {"dilations": dilations, "pads": pads, "ceil_mode": ceil_mode}
        return cast(g, g.MaxPool(wide, **frame, **more), x.type)
    if set(dilations) != {1} or (ceil_mode and drops(x, kernel_shape, strides, pads)):
        return standard(10, "MaxPool")(
            g, x, ceil_mode=ceil_mode, dilations=dilations, storage_order=0, pads=pads, **frame
        )
    if halved(pads):
        return None
    return g.MaxPool(zero_padded(g, x, pads, -math.inf), ceil_mode=ceil_mode, **frame)


def with_places(
    g, x: Value, by_columns: int, *, kernel_shape, strides, dilations, pads, ceil_mode
):  # fmt: skip
    """The largest of each window, and where it stands in the whole tensor, told from a table."""
    sizes = x.known[2:]
    require(all(isinstance(d, int) for d in sizes), "places in an image of a size not known before")
    require(x.type.kind == "f", f"pooling of {x.type.value} elements")
    table, counts = windows(sizes, kernel_shape, strides, dilations, pads, ceil_mode)
    batch = sizes_of(g, x)[:2]
    flat = reshape(g, x, [*batch, math.prod(sizes)])
    padded = g.Concat(flat, full_like(g, slice_axis(g, flat, 2, 0, 1), -math.inf), axis=2)
    each = reshape(g, g.Gather(padded, table.ravel(), axis=2), [*batch, *table.shape])
    chosen = g.Unsqueeze(g.ArgMax(each, axis=3, keepdims=0), [3])
    if by_columns:
        order = np.arange(math.prod(sizes)).reshape(sizes).transpose()
        table = np.append(np.argsort(order.ravel()), 0)[table]
    lit = cast(g, g.Equal(chosen, np.arange(table.shape[1])), DType.INT64)
    within = g.ReduceSum(g.Mul(lit, table), [3], keepdims=0)
    samples, channels = (g.Mul(v, math.prod(sizes)) for v in map(partial(steps, g), batch))
    images = g.Add(g.Mul(g.Unsqueeze(samples, [1]), size_of(g, x, 1)), channels)
    found = g.ReduceMax(each, [3], keepdims=0), g.Add(within, g.Unsqueeze(images, [2]))
    return tuple(reshape(g, v, [*batch, *counts]) for v in found)


def windows(sizes: Ints, kernel, strides, dilations, pads, ceil_mode):
    """A row of elements for each window, the padding being behind the last; how many windows."""
    half = len(sizes)
    axes = zip(sizes, kernel, strides, dilations, pads[:half], pads[half:], strict=True)
    places, counts = [], []
    for size, k, s, d, begin, end in axes:
        count = window_output(size, k, s, d, begin + end, bool(ceil_mode))
        if ceil_mode and (count - 1) * s >= size + begin:
            count -= 1
        at = np.arange(count)[:, None] * s + np.arange(k) * d - begin
        places.append(np.where((at >= 0) & (at < size), at, -1))
        counts.append(count)
    rows: Any = np.zeros((1, 1), np.int64)
    inside: Any = np.ones((1, 1), bool)
    for size, at in zip(sizes, places, strict=True):
        shape = rows.shape[0] * len(at), -1
        here = (at >= 0)[None, :, None, :]
        rows = (rows[:, None, :, None] * size + at[None, :, None, :]).reshape(shape)
        inside = (inside[:, None, :, None] & here).reshape(shape)
    return np.where(inside, rows, math.prod(sizes)), counts


@spells("AveragePool")
def spell_average_pool(
    g, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad
):
    frame = {"kernel_shape": kernel_shape, "strides": strides}
    gaps = set(dilations) != {1}
    if gaps or (ceil_mode and (not halved(pads) or drops(x, kernel_shape, strides, pads))):
        rule, more = standard(*((19, "AveragePool") if gaps else (10, "AveragePool"))), {}
        if gaps:
            more = {"dilations": dilations}
        return rule(g, x, ceil_mode=ceil_mode, count_include_pad=count_include_pad, pads=pads,
                    **frame, **more)  # fmt: skip
    if halved(pads):
        return None
    sums = g.AveragePool(zero_padded(g, x, pads), count_include_pad=1, **frame)
    if count_include_pad:
        return sums
    counted = zero_padded(g, full_like(g, x, 1.0), pads)
    return g.Div(sums, g.AveragePool(counted, count_include_pad=1, **frame))


@spells("LpPool")
def spell_lp_pool(g, x, *, p, kernel_shape, strides, dilations, pads, ceil_mode):
    """The root of the sum, which is an average times the size of the window."""
    if set(dilations) != {1} or ceil_mode:
        return standard(18, "LpPool")(
            g, x, p=p, ceil_mode=ceil_mode, kernel_shape=kernel_shape, strides=strides,
            dilations=dilations, pads=pads,
        )  # fmt: skip
    powers = g.Pow(g.Abs(x), float(p))
    mean = g.AveragePool(
        powers, kernel_shape=kernel_shape, strides=strides, pads=pads, count_include_pad=1
    )
    return g.Pow(g.Mul(mean, float(math.prod(kernel_shape))), 1.0 / p)


@spells("GlobalLpPool")
def spell_global_lp_pool(g, x, *, p):
    sums = g.ReduceSum(g.Pow(g.Abs(x), float(p)), list(range(2, x.rank)), keepdims=1)
    return g.Pow(sums, 1.0 / p)


def spell_wide(op, g, *operands, **attrs):
    """MXNet multiplies no half floats on a processor: in wide ones."""
    if operands[0].type is not DType.FLOAT16:
        return None
    wide = (None if v is None else cast(g, v, DType.FLOAT32) for v in operands)
    return cast(g, g[op](*wide, **attrs), DType.FLOAT16)


@spells("Conv")
def spell_conv(g, x, w, b=None, *, kernel_shape, strides, dilations, pads, group):
    """MXNet pads both ends alike; images and volumes are padded by its ``Pad``."""
    if not halved(pads) and x.rank == 3:
        x, pads = zero_padded(g, x, pads), (0,) * len(pads)
        return g.Conv(
            x, w, b, kernel_shape=kernel_shape, strides=strides, dilations=dilations, pads=pads,
            group=group,
        )  # fmt: skip
    return spell_wide(
        "Conv", g, x, w, b, kernel_shape=kernel_shape, strides=strides, dilations=dilations,
        pads=pads, group=group,
    )  # fmt: skip


def spell_softmax(op, g, x, *, axis):
    return spell_wide(op, g, x, axis=axis)


for _op in ("Softmax", "LogSoftmax"):
    spells(_op)(partial(spell_softmax, _op))


@spells("ConvTranspose")
def spell_conv_transpose(
    g, x, w, b=None, *, group, kernel_shape: Ints | None = None, strides: Ints | None = None,
    dilations: Ints | None = None, pads: Ints | None = None, output_padding: Ints | None = None,
    output_shape: Ints | None = None, auto_pad="NOTSET",
):  # fmt: skip
    """Pads that differ are cut off behind; zeros stand where an output is asked for beyond."""
    if x.type is DType.FLOAT16:
        return spell_wide(
            "ConvTranspose", g, x, w, b, group=group, kernel_shape=kernel_shape, strides=strides,
            dilations=dilations, pads=pads, output_padding=output_padding,
            output_shape=output_shape, auto_pad=auto_pad,
        )  # fmt: skip
    if w.rank == 5 and x.type is DType.FLOAT64:
        raise ConversionError("of volumes in float64, for which MXNet has no kernel")
    gaps = set(dilations or (1,)) != {1}
    if gaps and (w.rank == 5 or x.type is DType.FLOAT64):
        wide, ones = with_gaps(g, w, dilations), (1,) * len(dilations)
        return g.ConvTranspose(
            x, wide, b, group=group, kernel_shape=wide.dims[2:], strides=strides, dilations=ones,
            pads=pads, output_padding=output_padding, output_shape=output_shape, auto_pad=auto_pad,
        )  # fmt: skip
    settled = output_shape is None and auto_pad == "NOTSET" and pads is not None
    if settled and halved(pads):
        return None
    kernel_shape = kernel_shape or w.dims[2:]
    n = len(kernel_shape)
    strides, dilations, more = (
        strides or (1,) * n,
        dilations or (1,) * n,
        output_padding or (0,) * n,
    )
    frame = {"kernel_shape": kernel_shape, "strides": strides, "dilations": dilations}
    if pads is None or not settled:
        pads = pads_for(x, output_shape, more, auto_pad, **frame)
    y = g.ConvTranspose(x, w, b, output_padding=more, group=group, pads=(0,) * 2 * n, **frame)
    cut = [max(p, 0) for p in pads]
    y = g.Slice(y, cut[:n], [-p or LAST for p in cut[n:]], list(range(2, n + 2)), [1] * n)
    beyond = [max(-p, 0) for p in pads]
    require(b is None or not any(beyond), "an output_shape beyond what the windows reach")
    return zero_padded(g, y, tuple(beyond)) if any(beyond) else y


def with_gaps(g, w: Value, dilations: Ints):
    """A kernel with zeros between its elements.

    MXNet dilates no transposed convolution of volumes, and errs in those of float64.
    """
    for axis, gap in enumerate(dilations, 2):
        size = w.dims[axis]
        if gap == 1 or size == 1:
            continue
        before, behind = math.prod(w.dims[:axis]), math.prod(w.dims[axis + 1 :])
        rows = g.Reshape(w, [before, size, 1, behind])
        zeros = g.const(np.zeros((before, size, gap - 1, behind), w.type.numpy))
        rows = g.Reshape(g.Concat(rows, zeros, axis=2), [before, size * gap, behind])
        reach = (size - 1) * gap + 1
        shape = [*w.dims[:axis], reach, *w.dims[axis + 1 :]]
        w = g.Reshape(slice_axis(g, rows, 1, 0, reach), shape)
    return w


def pads_for(
    x: Value, output_shape: Ints | None, more: Ints, auto_pad: str, *, kernel_shape: Ints,
    strides: Ints, dilations: Ints,
) -> Ints:  # fmt: skip
    """What is to be cut off for an output of the shape asked for; negative where it is short."""
    if output_shape is None or not x.is_static:
        raise ConversionError("an output_shape over a dynamic size")
    axes = zip(x.dims[2:], strides, more, kernel_shape, dilations, strict=True)
    whole = [s * (d - 1) + m + (k - 1) * e + 1 for d, s, m, k, e in axes]
    over = [w - o for w, o in zip(whole, output_shape[-len(whole) :], strict=True)]
    small = [math.floor(o / 2) for o in over]
    large = [o - s for o, s in zip(over, small, strict=True)]
    return (*small, *large) if auto_pad == "SAME_UPPER" else (*large, *small)


@spells("LayerNormalization")
def spell_layer_norm(
    g, x, scale, bias=None, *, axis, epsilon, stash_type, outputs: int = 1
):  # fmt: skip
    """MXNet normalises one axis, and has no outputs beside."""
    one = axis == x.rank - 1 and scale.rank == 1 and outputs == 1 and x.type in WIDE
    if one and bias is not None and stash_type == 1:
        return None
    if one and stash_type == 1 and scale.is_static:
        zeros = full_like(g, scale, 0.0)
        return g.LayerNormalization(x, scale, zeros, axis=axis, epsilon=epsilon)
    made = layer_normalization(
        g, x, scale, bias, axis=axis, epsilon=epsilon, stash_type=stash_type
    )  # fmt: skip
    return made[:outputs]


@spells("BatchNormalization")
def spell_batch_norm(g, x, *parameters, epsilon, momentum, training_mode, outputs: int = 1):
    """In training the statistics are the batch's, and come out as well."""
    if training_mode:
        return standard(14, "BatchNormalization")(
            g, x, *parameters, epsilon=epsilon, momentum=momentum, training_mode=1
        )[:outputs]
    if x.rank == 1:  # of one channel
        y = g.BatchNormalization(g.Unsqueeze(x, [1]), *parameters, epsilon=epsilon)
        return g.Squeeze(y, [1])
    kind = statistics_type(x, *parameters)
    wide = cast(g, x, kind) if kind is DType.FLOAT64 else x
    casted = [cast(g, v, kind) for v in parameters]
    if any(g.made(v) is not None for v in casted[2:]):
        return cast(g, normalized(g, cast(g, x, kind), *casted, epsilon=epsilon), x.type)
    if wide is x and casted == list(parameters):
        return None
    return cast(g, g.BatchNormalization(wide, *casted, epsilon=epsilon), x.type)


def statistics_type(*operands: Value) -> DType:
    """The element type in which MXNet has all parameters of a BatchNorm: halves have float32."""
    return DType.FLOAT64 if any(v.type is DType.FLOAT64 for v in operands) else DType.FLOAT32


def normalized(g, x: Value, scale: Value, bias: Value, mean: Value, var: Value, *, epsilon: float):
    """A BatchNorm spelled out: MXNet's takes no computed statistics."""
    scale, bias, mean, var = (
        g.Unsqueeze(v, list(range(1, x.rank - 1))) if x.rank > 2 else v
        for v in (scale, bias, mean, var)
    )
    return g.Add(g.Mul(g.Div(g.Sub(x, mean), g.Sqrt(g.Add(var, epsilon))), scale), bias)


@spells("InstanceNormalization")
def spell_instance_norm(g, x, scale, bias, *, epsilon):
    if x.type is DType.FLOAT32:
        return None
    if x.type is DType.FLOAT64:
        centred, _, inverse = standardized(g, x, list(range(2, x.rank)), epsilon)
        scale, bias = (g.Unsqueeze(v, list(range(1, x.rank - 1))) for v in (scale, bias))
        return g.Add(g.Mul(g.Mul(centred, inverse), scale), bias)
    wide = (cast(g, v, DType.FLOAT32) for v in (x, scale, bias))
    return cast(g, g.InstanceNormalization(*wide, epsilon=epsilon), x.type)


@spells("LRN")
def spell_lrn(g, x, *, size, alpha, beta, bias):
    """MXNet has that of float32 images."""
    if x.type is DType.FLOAT32 and x.rank == 4 and size % 2:
        return None
    if x.type is DType.FLOAT16:
        return spell_wide("LRN", g, x, size=size, alpha=alpha, beta=beta, bias=bias)
    before, behind = (size - 1) // 2, size // 2
    none = full_like(g, slice_axis(g, x, 1, 0, 1), 0.0)
    squares = g.Concat(*[none] * before, g.Mul(x, x), *[none] * behind, axis=1)
    ends = [at - size + 1 or LAST for at in range(size)]
    total = reduce(g.Add, [slice_axis(g, squares, 1, at, end) for at, end in enumerate(ends)])
    return g.Div(x, g.Pow(g.Add(g.Mul(total, alpha / size), bias), beta))


@spells("Dropout")
def spell_dropout(g, x: Value, ratio=None, mode=None, *, seed: int | None = None, outputs: int = 1):
    made = inference_or_training(g, x, ratio, mode, seed)
    return made[:outputs]


@spells("RoiAlign")
def spell_roi_align(
    g, x, rois, image, *, mode, output_height, output_width, sampling_ratio, spatial_scale,
    coordinate_transformation_mode,
):  # fmt: skip
    """MXNet has regions of averages."""
    if mode == "avg":
        return None
    return roi_align(
        g, x, rois, image, mode=mode, output_height=output_height, output_width=output_width,
        sampling_ratio=sampling_ratio, spatial_scale=spatial_scale,
        half=coordinate_transformation_mode == "half_pixel",
    )  # fmt: skip


@spells("DeformConv")
def spell_deform_conv(
    g, x, w, offset, b=None, mask=None, *, dilations, group, kernel_shape, offset_group, pads,
    strides,
):  # fmt: skip
    """MXNet has windows of images, and channels of the result in as many groups as offsets."""
    if len(kernel_shape) == 2 and w.dims[0] % offset_group == 0:
        return None
    return deformable_convolution(
        g, x, w, offset, b, mask, dilations=dilations, group=group, kernel_shape=kernel_shape,
        offset_group=offset_group, pads=pads, strides=strides,
    )  # fmt: skip
