"""Quantised convolutions and dense layers: alone, and fused with what follows by oneDNN.

A fused layer is a chain of layers in its ``layers``: ``Convolution`` or ``FullyConnected``, then
``BatchNorm``, an activation, a sum, an activation. Its weights are floats that MXNet quantises as
it runs, channel by channel, once BatchNorm is part of them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from serde.errors import require
from serde.geometry import Ints
from serde.graph import DType, Node, Value
from serde.idioms import cast, cast_like, scalar

from ..rules import reads
from .convolution import TUNING, window
from .quantized import (
    COUNTS,
    RANGE,
    Calibration,
    both,
    calibrated,
    counting,
    nearest,
    product_range,
    quantised,
    reach,
    real,
    step_of,
)

FLAGS = (  # what the layers say as well
    "with_bn", "with_act", "with_relu", "with_sum", "with_postsum_act", "with_postsum_relu",
    "with_eltwise",
)  # fmt: skip
RECTIFIERS = ("relu", "clip")  # activations after which oneDNN counts in uint8
Layer = tuple[str, dict[str, Any]]


def applied(g, layer: Layer, *operands: Value):
    """What the rule of a layer's operator makes of operands."""
    op, attrs = layer
    return reads.apply(Node(op, operands, (), attrs, "mxnet"), g, operands)[0]


class Parts:
    """The operands of a fused layer, by what they are to its chain of layers."""

    def __init__(self, layers: str, operands: tuple[Value, ...]) -> None:
        chain: list[Layer] = [(op, attrs) for op, attrs in json.loads(layers)]
        rest = iter(operands)
        self.first = chain[0]
        self.x, self.w = next(rest), next(rest)
        has_bias = self.first[1].get("no_bias", "False") not in ("True", "1", "true")
        self.b = next(rest) if has_bias else None
        self.bare = (self.first[0], {k: v for k, v in self.first[1].items() if k != "no_bias"})
        self.norm = chain[1] if len(chain) > 1 and chain[1][0].startswith("BatchNorm") else None
        self.statistics = [next(rest) for _ in range(4 if self.norm else 0)]
        self.after = chain[2 if self.norm else 1 :]
        self.sums = any(op == "elemwise_add" for op, _ in self.after)
        self.sum = next(rest) if self.sums else None
        self.ranges = list(rest)


def finished(g, y: Value, parts: Parts, summand: Value | None):
    """The layers behind the first, and behind BatchNorm where that is part of the weights."""
    for op, attrs in parts.after:
        y = g.Add(y, summand) if op == "elemwise_add" else applied(g, (op, attrs), y)
    return y


@reads("_sg_mkldnn_conv", ignore=FLAGS)
def read_fused_convolution(
    g, *operands, layers: str, quantized=False, min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    parts = Parts(layers, operands)
    if not quantized:
        y = applied(g, parts.first, parts.x, parts.w, *([] if parts.b is None else [parts.b]))
        y = applied(g, parts.norm, y, *parts.statistics) if parts.norm else y
        return finished(g, y, parts, parts.sum)
    check_activations(parts)
    w, b = normalised(g, parts)
    if not both(min_calib_range, max_calib_range):
        require(not parts.sums, "a sum without calibration")
        return counted(g, parts.bare, parts, w, b)
    w, b = coarse(g, w, b, parts.x.type, *parts.ranges[:2])
    y = applied(g, parts.bare, real(g, parts.x, *parts.ranges[:2]), w, *([] if b is None else [b]))
    summand = real(g, parts.sum, *parts.ranges[2:]) if parts.sums else None
    y = finished(g, y, parts, summand)
    ends = calibrated(g, min_calib_range, max_calib_range)
    dtype = output_type(parts)
    return summed(g, y, dtype, step_of(g, dtype, *ends), parts.sum), *ends


@counting("_sg_mkldnn_conv", ignore=FLAGS)
def count_fused_convolution(
    g, *operands, layers: str, quantized=False, min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    """A calibrated one adds up whole numbers, and rounds where oneDNN does."""
    if not quantized or not both(min_calib_range, max_calib_range):
        return read_fused_convolution(
            g, *operands, layers=layers, quantized=quantized, min_calib_range=min_calib_range,
            max_calib_range=max_calib_range,
        )  # fmt: skip
    parts = Parts(layers, operands)
    check_activations(parts)
    ends = calibrated(g, min_calib_range, max_calib_range)
    one = g.const(np.float32(1))
    return summed(g, added(g, parts, ends), output_type(parts), one, parts.sum), *ends


def added(g, parts: Parts, ends):
    """The layer in units of its result: counts, and what is added, with one rounding."""
    low, high, *range_of_sum = parts.ranges
    w, b = normalised(g, parts)
    w, scale, b, counts = whole_numbers(g, w, b, parts.x.type, low, high)
    y = cast(g, products(g, parts.bare, parts.x, w), DType.FLOAT32)
    each = [1, -1] + [1] * (w.rank - 2)
    if b is not None:
        y = g.Add(y, g.Reshape(cast(g, b, DType.FLOAT32), each))
    unit = g.Div(COUNTS[output_type(parts)], reach(g, *ends))
    y = g.Mul(y, g.Reshape(g.Div(g.Div(unit, counts), scale), each))
    for op, attrs in parts.after:
        if op != "elemwise_add" or parts.sum is None:
            y = applied(g, (op, attrs), y)
            continue
        share = g.Div(unit, g.Div(COUNTS[parts.sum.type], reach(g, *range_of_sum)))
        summand = g.Mul(*(cast(g, v, DType.FLOAT64) for v in (parts.sum, share)))
        y = cast(g, g.Add(cast(g, y, DType.FLOAT64), summand), DType.FLOAT32)
    return y


def check_activations(parts: Parts) -> None:
    """Refuse activations that are not the same at every scale: oneDNN applies them to integers.

    A clip is left to the range of the result, and cuts at 0 only.
    """
    for op, attrs in parts.after:
        kind = attrs.get("act_type")
        same = op in ("elemwise_add", "clip") or (op, kind) in (
            ("Activation", "relu"), ("LeakyReLU", "leaky")
        )  # fmt: skip
        require(same, f"{kind or op} fused behind quantised numbers, which MXNet applies to those")
        low = attrs.get("a_min", "0")
        require(op != "clip" or float(low) == 0, f"a fused clip from {low}, which MXNet cuts at 0")
    parts.after = [("relu", {}) if op == "clip" else (op, attrs) for op, attrs in parts.after]


def output_type(parts: Parts) -> DType:
    """The element type of a calibrated result."""
    op, attrs = parts.after[-1] if parts.after else ("", {})
    return DType.UINT8 if attrs.get("act_type", op) in RECTIFIERS else DType.INT8


def summed(g, y: Value, dtype: DType, step: Value, summand: Value | None):
    """A sum is stored in the type of what was added, whose bits are then taken for the result's."""
    if summand is None or summand.type is dtype:
        return nearest(g, y, dtype, step)
    if dtype is DType.UINT8:  # an int8 that is not negative
        return nearest(g, g.Min(y, g.Mul(step, 127.0)), dtype, step)
    q = cast(g, nearest(g, y, summand.type, step), DType.INT32)
    return cast(g, g.Where(g.Greater(q, 127), g.Sub(q, 256), q), dtype)


def normalised(g, parts: Parts):
    """Weights and bias with BatchNorm in them, computed as MXNet does, in doubles where it does."""
    if parts.norm is None:
        return parts.w, parts.b
    attrs = parts.norm[1]
    gamma, beta, mean, var = parts.statistics
    spread = g.Sqrt(g.Add(cast(g, var, DType.FLOAT64), float(attrs.get("eps", 1e-3))))
    fixed = attrs.get("fix_gamma", "True") in ("True", "1", "true")
    gamma = scalar(g, 1, spread) if fixed else cast(g, gamma, DType.FLOAT64)
    factor = cast_like(g, g.Div(gamma, spread), parts.w)
    away = g.Neg(mean) if parts.b is None else g.Sub(parts.b, mean)
    return g.Mul(parts.w, along_first(g, factor, parts.w)), g.Add(beta, g.Mul(factor, away))


def along_first(g, v: Value, like: Value):
    """One number for each slice along the first axis."""
    return g.Reshape(v, [-1] + [1] * (like.rank - 1))


def whole_numbers(g, w: Value, b: Value | None, dtype: DType, low: Value, high: Value):
    """Weights as int8, the scale of each channel, the bias as int32, and the scale of the data.

    A bias that would pass half of what int32 can hold makes the scale less, where that of the data
    is known.
    """
    wide = g.ReduceMax(g.Abs(w), range(1, w.rank), keepdims=0)
    scale = g.Div(COUNTS[DType.INT8], g.Where(g.Greater(wide, 0.0), wide, scalar(g, 1, wide)))
    counts = g.Div(COUNTS[dtype], reach(g, low, high))
    if b is not None and counts.tensor is not None:
        scale = g.Min(scale, g.Div(g.Div(RANGE / 2, g.Abs(b)), counts))
    q = integers(g, g.Mul(w, along_first(g, scale, w)))
    if b is None:
        return q, scale, None, counts
    return q, scale, cast(g, g.Round(g.Mul(b, g.Mul(scale, counts))), DType.INT32), counts


def coarse(g, w: Value, b: Value | None, dtype: DType, low: Value, high: Value):
    """Weights as int8 and a bias as int32 stand for them, each channel with a scale of its own.

    Where the scale of the data is known only when the model runs, the bias stays as it is.
    """
    q, scale, whole, counts = whole_numbers(g, w, b, dtype, low, high)
    step = g.Reciprocal(scale)
    zeros = g.Sub(cast(g, step, DType.INT8), cast(g, step, DType.INT8))
    w = g.DequantizeLinear(q, step, zeros, axis=0)
    if whole is None or counts.tensor is None:
        return w, b
    return w, g.DequantizeLinear(whole, g.Mul(step, g.Reciprocal(counts)), None, axis=0)


def integers(g, x: Value):
    """The nearest int8."""
    return cast(g, g.Clip(g.Round(x), -128.0, 127.0), DType.INT8)


def counted(g, first: Layer, parts: Parts, w: Value, b: Value | None):
    """A convolution that is not calibrated: int32 counts, of one scale for all weights."""
    low, high = (g.Reshape(g[op](w, keepdims=0), [1]) for op in ("ReduceMin", "ReduceMax"))
    x_low, x_high = parts.ranges[:2]
    scale = g.Div(COUNTS[DType.INT8], reach(g, low, high))
    y = products(g, first, parts.x, integers(g, g.Mul(w, scale)))
    if b is not None:
        counts = g.Div(COUNTS[parts.x.type], reach(g, x_low, x_high))
        whole = cast(g, g.Round(g.Mul(b, g.Mul(scale, counts))), DType.INT32)
        y = g.Add(y, g.Reshape(whole, [1, -1] + [1] * (w.rank - 2)))
    for layer in parts.after:
        y = applied(g, layer, y)
    return y, *product_range(g, parts.x.type, x_low, x_high, low, high)


def unsigned(g, q: Value):
    """Integers as uint8, and the zero among them: what runtimes' integer products take."""
    if q.type is DType.UINT8:
        return q, g.const(np.zeros((), np.uint8))
    moved = cast(g, g.Add(cast(g, q, DType.INT32), 128), DType.UINT8)
    return moved, g.const(np.array(128, np.uint8))


def products(g, first: Layer, x: Value, w: Value):
    """What a layer of whole numbers adds up, as int32."""
    attrs = reads.bind(reads.rules[first[0]], *first)
    attrs.pop("layout", None)
    return convolved(g, x, w, **attrs)


def convolved(g, x: Value, w: Value, *, kernel, stride=(), dilate=(), pad=(), num_group=1):
    """The sums of products, as int32."""
    x, zero = unsigned(g, x)
    w, none = unsigned(g, w)
    frame = window(kernel, stride, dilate, pad)
    return g.ConvInteger(x, w, zero, none, group=num_group, **frame)


def separated(no_bias: bool, *operands: Value | None):
    """A bias, and the ranges of data, weights and bias: without a bias the others move up."""
    given = [v for v in operands if v is not None]
    return (None, given) if no_bias else (given[0], given[1:])


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
    b, ranges = separated(
        no_bias, bias, min_data, max_data, min_weight, max_weight, min_bias, max_bias
    )
    y = convolved(g, data, weight, kernel=kernel, **frame)
    if b is not None:
        y = g.Add(y, g.Reshape(cast(g, b, DType.INT32), [1, -1] + [1] * (weight.rank - 2)))
    return y, *product_range(g, DType.INT8, *ranges[:4])


@reads("_contrib_quantized_fully_connected", ignore=("num_hidden",))
def read_quantized_dense(
    g, data, weight, bias, min_data, max_data, min_weight, max_weight=None, min_bias=None,
    max_bias=None, *, no_bias=False, flatten=True,
):  # fmt: skip
    """The bias is brought to the scale of the products, and cut to a whole number."""
    b, ranges = separated(
        no_bias, bias, min_data, max_data, min_weight, max_weight, min_bias, max_bias
    )
    y = multiplied(g, data, weight, flatten)
    if b is not None:
        y = g.Add(y, cast(g, rescaled(g, data, b, ranges), DType.INT32))
    return y, *product_range(g, data.type, *ranges[:4])


def multiplied(g, x: Value, w: Value, flatten: bool):
    """A product with a transposed matrix, as int32."""
    x = g.Flatten(x, axis=1) if flatten else x
    x, zero = unsigned(g, x)
    return g.MatMulInteger(x, g.Transpose(w, perm=(1, 0)), zero)


def rescaled(g, x: Value, b: Value, ranges):
    """An int8 bias in units of the product of data and weights."""
    unit = g.Mul(g.Div(COUNTS[x.type], reach(g, *ranges[:2])), g.Div(127.5, reach(g, *ranges[2:4])))
    return g.Mul(cast(g, b, DType.FLOAT32), g.Mul(unit, g.Div(reach(g, *ranges[4:]), 127.5)))


@reads(
    "_sg_mkldnn_fully_connected", ignore=FLAGS
)  # fmt: skip
def read_fused_dense(
    g, *operands, layers: str, quantized=False, enable_float_output=False,
    channel_wise_quantize: bool | None = None, min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    parts = Parts(layers, operands)
    if not quantized:
        y = applied(g, parts.first, parts.x, parts.w, *([] if parts.b is None else [parts.b]))
        return finished(g, y, parts, None)
    check_activations(parts)
    is_calibrated = both(min_calib_range, max_calib_range)
    if not is_calibrated and not enable_float_output:
        return counted_dense(g, parts)
    if channel_wise_quantize:
        w, b = coarse(g, parts.w, parts.b, parts.x.type, *parts.ranges[:2])
    else:
        w, b = held(g, parts)
    y = applied(g, parts.bare, real(g, parts.x, *parts.ranges[:2]), w, *([] if b is None else [b]))
    y = finished(g, y, parts, None)
    if enable_float_output:
        return y
    ends = calibrated(g, min_calib_range, max_calib_range)
    return quantised(g, y, output_type(parts), *ends), *ends


def held(g, parts: Parts):
    """Weights that are int8 in the file, and an int8 bias brought to their scale."""
    w = real(g, parts.w, *parts.ranges[2:4])
    if parts.b is None:
        return w, None
    whole = away(g, rescaled(g, parts.x, parts.b, parts.ranges))
    unit = g.Mul(
        step_of(g, parts.x.type, *parts.ranges[:2]), step_of(g, DType.INT8, *parts.ranges[2:4])
    )
    return w, g.DequantizeLinear(cast(g, whole, DType.INT32), unit, None)


def away(g, x: Value):
    """The nearest whole number, the one further from 0 in the middle."""
    return g.Mul(g.Sign(x), g.Floor(g.Add(g.Abs(x), 0.5)))


def counted_dense(g, parts: Parts):
    flatten = parts.first[1].get("flatten", "True") in ("True", "1", "true")
    y = multiplied(g, parts.x, parts.w, flatten)
    if parts.b is not None:
        whole = away(g, rescaled(g, parts.x, parts.b, parts.ranges))
        y = g.Add(y, cast(g, whole, DType.INT32))
    for layer in parts.after:
        y = applied(g, layer, y)
    return y, *product_range(g, parts.x.type, *parts.ranges[:4])
