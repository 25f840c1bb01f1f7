"""Quantised convolutions and dense layers: alone, and fused with what follows by oneDNN."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from ...rules import Layer, reads, reads_second
from ..convolution import TUNING
from .fused import (
    Parts,
    QuantizedWeights,
    add_residual,
    add_summand,
    apply_following_layers,
    apply_layer,
    check_activations,
    fold_batch_norm,
    is_scale_invariant,
    multiply_by,
    multiply_integers,
    output_type,
    quantize_clip_bounds,
    quantize_weights,
    round_bias,
    round_to_int8,
    run_quantized_layer,
    scale_products,
)
from .integer_matmul import channels_first, convolve, multiply
from .layers import (
    Calibration,
    abs_max,
    compute_inverse_scale,
    compute_range,
    compute_scale,
    dequantize,
    floating,
    floating_second,
    has_range,
    make_range,
    product_range,
    round_to_int32,
    round_to_type,
)

FLAGS = (  # what the layers say as well
    "with_bn", "with_act", "with_relu", "with_sum", "with_postsum_act", "with_postsum_relu",
    "with_eltwise",
)  # fmt: skip


def read_fused_convolution(
    way, is_second, g, *operands, layers: tuple[Layer, ...], quantized=False,
    min_calib_range: Calibration = None, max_calib_range: Calibration = None,
):  # fmt: skip
    """MXNet 2.0 has fewer bits for the weights beside data of int8, and applies a clip, which
    other releases leave to the range of the result.
    """
    parts, bounds = Parts(layers, operands), (min_calib_range, max_calib_range)
    if not quantized:
        y = apply_layer(g, parts.first, parts.x, parts.w, parts.b)
        y = apply_layer(g, parts.norm, y, *parts.statistics) if parts.norm else y
        return apply_following_layers(g, y, parts.after, lambda y: g.Add(y, parts.sum))
    reason = "int8 data, beside which MXNet 2.0 has weights of 7 bits: quantize to uint8"
    require(not is_second or parts.x.type is not DType.INT8, reason)
    check_activations(parts)
    w, b = fold_batch_norm(g, parts)
    if not is_second:  # even where the result has no range
        cut: list[Layer] = [Layer("relu", {})] if has_range(*bounds) else []
        parts.after = [p for each in parts.after for p in (cut if each.op == "clip" else [each])]
    if not has_range(*bounds):
        return convolve_uncalibrated(g, parts, w, b, is_exact=way is convolve_in_integers)
    ends = make_range(g, *bounds)
    return way(g, parts, w, b, ends), *ends


def convolve_in_floats(g, parts: Parts, w: Value, b: Value | None, ends):
    """Of real numbers, those that the integers stand for, which runtimes take for a pattern."""
    reason = "an activation that MXNet applies to integers, which only integers='exact' says"
    require(is_scale_invariant(parts), reason)
    w, b = quantize_per_channel(g, w, b, parts.x.type, *parts.ranges[:2])
    return run_in_floats(g, parts, w, b, ends)


def run_in_floats(g, parts: Parts, w: Value, b: Value | None, ends):
    """The layers on real numbers, which stay what they are where there are no ``ends``."""
    y = apply_layer(g, parts.bare, dequantize(g, parts.x, *parts.ranges[:2]), w, b)
    y = apply_following_layers(
        g, y, parts.after, lambda y: g.Add(y, dequantize(g, parts.sum, *parts.ranges[2:]))
    )
    if ends is None:
        return y
    dtype = output_type(parts)
    return add_summand(g, y, dtype, compute_scale(g, dtype, *ends), parts.sum)


def convolve_in_integers(g, parts: Parts, w: Value, b: Value | None, ends):
    weights = quantize_weights(g, w, b, parts.x.type, *parts.ranges[:2])
    if any(layer.op == "clip" for layer in parts.after):
        unit = compute_inverse_scale(g, output_type(parts), *ends)
        parts.after = quantize_clip_bounds(parts.after, unit.array().item())
    return run_quantized_layer(g, parts, weights, ends)


for _reads, _reads_second, _way in (
    (reads, reads_second, convolve_in_integers),
    (floating, floating_second, convolve_in_floats),
):
    for _table, _is_second in ((_reads, False), (_reads_second, True)):
        _table("_sg_mkldnn_conv", ignore=FLAGS)(partial(read_fused_convolution, _way, _is_second))


def quantize_per_channel(g, w: Value, b: Value | None, dtype: DType, low: Value, high: Value):
    """Weights as int8 and a bias as int32 stand for them, each channel with a scale of its own.

    Where the scale of the data is dynamic, the bias stays as it is.
    """
    weights = quantize_weights(g, w, b, dtype, low, high)
    step = g.Reciprocal(weights.scale)
    w = multiply_by(g, weights.q, step)
    if weights.bias is None or weights.inverse_scale.tensor is None:
        return w, b
    return w, multiply_by(g, weights.bias, g.Mul(step, g.Reciprocal(weights.inverse_scale)))


def convolve_uncalibrated(g, parts: Parts, w: Value, b: Value | None, *, is_exact: bool):
    """A convolution that is not calibrated: int32 counts, of one scale for all weights."""
    low, high = compute_range(g, w)
    x_low, x_high = parts.ranges[:2]
    scale = compute_inverse_scale(g, DType.INT8, low, high)
    unit = g.Mul(compute_inverse_scale(g, parts.x.type, x_low, x_high), scale)
    y = multiply_integers(g, parts, round_to_int8(g, g.Mul(w, scale)))
    if b is not None:
        y = g.Add(y, round_bias(g, b, unit))
    if parts.after:
        add = partial(add_residual, g, parts, unit, is_exact=is_exact)
        y = round_to_int32(g, apply_following_layers(g, g.cast(y, DType.FLOAT32), parts.after, add))
    return channels_first(g, y), *product_range(g, parts.x.type, x_low, x_high, low, high)


def split_bias(no_bias: bool, *operands: Value | None):
    """A bias, and the ranges of data, weights and bias: without a bias the others move up."""
    values = [v for v in operands if v is not None]
    return (None, values) if no_bias else (values[0], values[1:])


@reads(
    "_contrib_quantized_conv",
    ignore=tuple(t for t in TUNING if t != "no_bias"),
    only={"layout": ("None", "NCHW", "NCDHW")},
)
def read_quantized_convolution(
    g, data, weight, bias, min_data, max_data, min_weight, max_weight=None, min_bias=None,
    max_bias=None, *, kernel: Ints, stride=(), dilate=(), pad=(), num_group=1, no_bias=False,
):  # fmt: skip
    """The bias is added as it is, whatever its range, which is what MXNet does."""
    frame = {"stride": stride, "dilate": dilate, "pad": pad, "num_group": num_group}
    b, ranges = split_bias(
        no_bias, bias, min_data, max_data, min_weight, max_weight, min_bias, max_bias
    )
    y = convolve(g, data, weight, kernel=kernel, **frame)
    y = y if b is None else g.Add(y, g.cast(b, DType.INT32))
    return channels_first(g, y), *product_range(g, DType.INT8, *ranges[:4])


@reads("_contrib_quantized_fully_connected", ignore=("num_hidden",))
def read_quantized_dense(
    g, data, weight, bias, min_data, max_data, min_weight, max_weight=None, min_bias=None,
    max_bias=None, *, no_bias=False, flatten=True,
):  # fmt: skip
    """The bias is brought to the scale of the products, and cut to an integer."""
    b, ranges = split_bias(
        no_bias, bias, min_data, max_data, min_weight, max_weight, min_bias, max_bias
    )
    y = multiply(g, data, weight, flatten)
    if b is not None:
        y = g.Add(y, g.cast(rescale_bias(g, data, b, ranges), DType.INT32))
    return y, *product_range(g, data.type, *ranges[:4])


def rescale_bias(g, x: Value, b: Value, ranges):
    """An int8 bias in units of the product of data and weights.

    Dynamic units change their rank between constant factors, as in ``round_bias``.
    """
    unit = g.Mul(
        compute_inverse_scale(g, x.type, *ranges[:2]),
        compute_inverse_scale(g, DType.INT8, *ranges[2:4]),
    )
    step = g.Div(abs_max(g, *ranges[4:]), 127.5)
    unit = g.Squeeze(g.Mul(g.Unsqueeze(unit, [0]), step), [0])
    return g.Mul(g.cast(b, DType.FLOAT32), unit)


def read_fused_dense(
    way, g, *operands, layers: tuple[Layer, ...], quantized=False, enable_float_output=False,
    channel_wise_quantize: bool | None = None, min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    parts, bounds = Parts(layers, operands), (min_calib_range, max_calib_range)
    if not quantized:
        y = apply_layer(g, parts.first, parts.x, parts.w, parts.b)
        return apply_following_layers(g, y, parts.after)
    if enable_float_output:
        return way(g, parts, channel_wise_quantize, None)
    check_activations(parts)
    if not has_range(*bounds):
        return dense_uncalibrated(g, parts)
    ends = make_range(g, *bounds)
    return way(g, parts, channel_wise_quantize, ends), *ends


def dense_in_integers(g, parts: Parts, by_channel, ends):
    """Of integers; as floats where there are no ``ends`` of a range."""
    if by_channel:
        weights = quantize_weights(g, parts.w, parts.b, parts.x.type, *parts.ranges[:2])
    else:
        counts = compute_inverse_scale(g, parts.x.type, *parts.ranges[:2])
        scale = compute_inverse_scale(g, DType.INT8, *parts.ranges[2:4])
        bias = None if parts.b is None else quantize_bias(g, parts)
        weights = QuantizedWeights(parts.w, bias, scale, counts)
    unit = None if ends is None else compute_inverse_scale(g, output_type(parts), *ends)
    if unit is not None and is_scale_invariant(parts):
        parts.after = quantize_clip_bounds(parts.after, unit.array().item())
        return run_quantized_layer(g, parts, weights, ends)
    factor = weights.factor(g, g.const(np.float32(1)))
    y = apply_following_layers(g, scale_products(g, parts, weights, factor), parts.after)
    return y if unit is None else round_to_type(g, g.Mul(y, unit), output_type(parts))


def dense_in_floats(g, parts: Parts, by_channel, ends):
    if by_channel:
        w, b = quantize_per_channel(g, parts.w, parts.b, parts.x.type, *parts.ranges[:2])
    else:
        w, b = dequantize_weights(g, parts)
    return run_in_floats(g, parts, w, b, ends)


DENSE = "_sg_mkldnn_fully_connected"
reads(DENSE, ignore=FLAGS)(partial(read_fused_dense, dense_in_integers))
floating(DENSE, ignore=FLAGS)(partial(read_fused_dense, dense_in_floats))


def dequantize_weights(g, parts: Parts):
    """Weights that are int8 in the file, and an int8 bias brought to their scale."""
    w = dequantize(g, parts.w, *parts.ranges[2:4])
    if parts.b is None:
        return w, None
    unit = g.Mul(
        compute_scale(g, parts.x.type, *parts.ranges[:2]),
        compute_scale(g, DType.INT8, *parts.ranges[2:4]),
    )
    return w, g.DequantizeLinear(quantize_bias(g, parts), unit, None)


def quantize_bias(g, parts: Parts):
    """An int8 bias as int32 in the units of products: the nearest, further from 0 in the middle."""
    b = rescale_bias(g, parts.x, parts.b, parts.ranges)
    return g.cast(g.Mul(g.Sign(b), g.Floor(g.Add(g.Abs(b), 0.5))), DType.INT32)


def dense_uncalibrated(g, parts: Parts):
    y = multiply_integers(g, parts, parts.w)
    if parts.b is not None:
        y = g.Add(y, quantize_bias(g, parts))
    require(all(op != "sqrt" for op, _ in parts.after), "square roots of integers, some below 0")
    if parts.after:
        y = round_to_int32(g, apply_following_layers(g, g.cast(y, DType.FLOAT32), parts.after))
    return y, *product_range(g, parts.x.type, *parts.ranges[:4])
