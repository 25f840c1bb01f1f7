"""Layers of integers, and those that oneDNN fused, as integers that are scaled once.

A fused layer is a chain of layers in its ``layers``: ``Convolution`` or ``FullyConnected``, then
``BatchNorm``, an activation, a sum, an activation. Its weights are floats that MXNet quantises as
it runs, channel by channel, once BatchNorm is part of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType, Node, Value

from ...rules import Layer, reads
from .integer_matmul import (
    MIDDLE,
    channels_first,
    channels_last,
    convolve,
    multiply,
    round_and_saturate,
    to_unsigned,
)
from .layers import (
    QMAX_OF_RANGE,
    RANGE,
    compute_inverse_scale,
    dequantize_unit,
    quantize_with_scale,
)

# Activations that are the same whatever stands for 1, but for the ends of a clip.
INVARIANT = ("relu", "leaky", "clip", "elemwise_add")
KINDS = {  # activations that oneDNN fuses
    "Activation": ("relu", "sigmoid", "softrelu", "tanh"), "LeakyReLU": ("leaky", "elu", "gelu"),
}  # fmt: skip
OF_DENSE = ("square", "sqrt", "exp", "abs")
UNSIGNED = ("relu", "clip", "sigmoid", "softrelu")  # after which MXNet counts in uint8


def apply_layer(g, layer: Layer, *operands: Value | None):
    """What the rule of a layer's operator makes of operands."""
    op, attrs = layer
    return reads.apply(Node(op, operands, (), attrs, "mxnet"), g, operands)[0]


class Parts:
    """The operands of a fused layer, by what they are to its chain of layers."""

    def __init__(self, chain: tuple[Layer, ...], operands: tuple[Value, ...]) -> None:
        require(len(chain) > 0, "a fused layer without the subgraph of its layers")
        rest = iter(operands)
        self.first = chain[0]
        self.x, self.w = next(rest), next(rest)
        has_bias = self.first.attrs.get("no_bias", "False") not in ("True", "1", "true")
        self.b = next(rest) if has_bias else None
        bare = {k: v for k, v in self.first.attrs.items() if k != "no_bias"}
        self.bare = Layer(self.first.op, bare)
        self.norm = chain[1] if len(chain) > 1 and chain[1].op.startswith("BatchNorm") else None
        self.statistics = [next(rest) for _ in range(4 if self.norm else 0)]
        self.after: Sequence[Layer] = chain[2 if self.norm else 1 :]
        self.sums = any(op == "elemwise_add" for op, _ in self.after)
        self.sum = next(rest) if self.sums else None
        self.ranges = list(rest)
        self.convolves = self.first.op == "Convolution"


def apply_following_layers(
    g, y: Value, layers: Sequence[Layer], add: Callable[[Value], Value] | None = None
):
    """Layers behind the first, and behind BatchNorm where that is part of the weights; ``add`` is
    what their sum does.
    """
    for layer in layers:
        y = add(y) if add is not None and layer.op == "elemwise_add" else apply_layer(g, layer, y)
    return y


def kind_of(layer: Layer) -> str:
    """What a layer is called, an activation by its own name."""
    return str(layer.attrs.get("act_type", layer.op))


def check_activations(parts: Parts) -> None:
    """Refuse activations that MXNet does not run behind integers."""
    for layer in parts.after:
        op, attrs = layer
        known = op in ("elemwise_add", "clip") or kind_of(layer) in KINDS.get(op, ())
        known = known or (op in OF_DENSE and not parts.convolves)
        require(known, f"{kind_of(layer)} fused behind quantised numbers")
        low = attrs.get("a_min", "0")
        require(op != "clip" or float(low) == 0, f"a fused clip from {low}, which MXNet cuts at 0")


def is_scale_invariant(parts: Parts) -> bool:
    """Whether all activations are the same whatever stands for 1."""
    return all(kind_of(layer) in INVARIANT for layer in parts.after)


def quantize_clip_bounds(layers: Sequence[Layer], unit: float) -> list[Layer]:
    """Layers of which those that cut off do so in counts, ``unit`` of which stand for 1: first what
    is above, where that is less than the largest uint8, then what is below 0.
    """
    result: list[Layer] = []
    for op, attrs in layers:
        most = np.float32(attrs["a_max"]) * np.float32(unit) if op == "clip" else np.inf
        if most < QMAX_OF_RANGE[DType.UINT8]:
            result.append(Layer("clip", {"a_min": "0", "a_max": str(most)}))
        result.append(Layer("relu", {}) if op == "clip" else Layer(op, attrs))
    return result


def output_type(parts: Parts) -> DType:
    """The element type of a calibrated result."""
    kind = kind_of(parts.after[-1]) if parts.after else ""
    of_dense = not parts.convolves and kind in ("leaky", *OF_DENSE)
    return DType.UINT8 if kind in UNSIGNED or of_dense else DType.INT8


def add_summand(
    g, y: Value, dtype: DType, step: Value, summand: Value | None, *, in_integers: bool = False
):
    """A sum is stored in the type of what was added, whose bits are then taken for the result's.

    What is beyond that type is cut off from the real numbers, or, in less time, from the integers.
    """
    if summand is None or summand.type is dtype:
        return quantize_with_scale(g, y, dtype, step)
    if dtype is DType.UINT8:  # an int8 that is not negative
        if in_integers:
            return g.Min(quantize_with_scale(g, y, dtype, step), g.const(127, dtype))
        return quantize_with_scale(g, g.Min(y, g.Mul(step, 127.0)), dtype, step)
    q = g.cast(quantize_with_scale(g, y, summand.type, step), DType.INT32)
    return g.cast(g.Where(g.Greater(q, 127), g.Sub(q, 256), q), dtype)


def fold_batch_norm(g, parts: Parts):
    """Weights and bias with BatchNorm in them, computed as MXNet does, in doubles where it does."""
    if parts.norm is None:
        return parts.w, parts.b
    attrs = parts.norm.attrs
    gamma, beta, mean, var = parts.statistics
    spread = g.Sqrt(g.Add(g.cast(var, DType.FLOAT64), float(attrs.get("eps", 1e-3))))
    fixed = attrs.get("fix_gamma", "True") in ("True", "1", "true")
    gamma = g.scalar(1, spread) if fixed else g.cast(gamma, DType.FLOAT64)
    factor = g.cast_like(g.Div(gamma, spread), parts.w)
    away = g.Neg(mean) if parts.b is None else g.Sub(parts.b, mean)
    return g.Mul(parts.w, align_to_first_axis(g, factor, parts.w)), g.Add(beta, g.Mul(factor, away))


def align_to_first_axis(g, v: Value, like: Value):
    """One number for each slice along the first axis."""
    return g.Reshape(v, [-1] + [1] * (like.rank - 1))


class QuantizedWeights(NamedTuple):
    """Weights of int8, a bias of int32, and how many of them stand for 1: ``scale`` of the weights,
    by one number or one for each channel, and ``inverse_scale`` of the data.
    """

    q: Value
    bias: Value | None
    scale: Value
    inverse_scale: Value

    def factor(self, g, unit: Value):
        """What products are multiplied by, where ``unit`` stand for 1: in the order of oneDNN."""
        return g.Div(g.Div(unit, self.inverse_scale), self.scale)


def quantize_weights(
    g, w: Value, b: Value | None, dtype: DType, low: Value, high: Value
) -> QuantizedWeights:
    """Weights and a bias as integers, each channel of them with its own scale.

    A bias that would pass half of what int32 can hold makes the scale less, where that of the data
    is known.
    """
    largest = g.ReduceMax(g.Abs(w), range(1, w.rank), keepdims=0)
    scale = g.Div(
        QMAX_OF_RANGE[DType.INT8], g.Where(g.Greater(largest, 0.0), largest, g.scalar(1, largest))
    )
    counts = compute_inverse_scale(g, dtype, low, high)
    if b is not None and counts.tensor is not None:
        scale = g.Min(scale, g.Div(g.Div(RANGE / 2, g.Abs(b)), counts))
    q = round_to_int8(g, g.Mul(w, align_to_first_axis(g, scale, w)))
    if b is not None:
        b = round_bias(g, b, g.Mul(scale, counts))
    return QuantizedWeights(q, b, scale, counts)


def round_bias(g, b: Value, unit: Value):
    """A bias as int32, ``unit`` of which stand for 1.

    The extra axis of a dynamic unit keeps optimizers from merging its constant factor with the
    bias, which would be rounded to other integers.
    """
    apart = unit if unit.tensor is not None else g.Unsqueeze(unit, [0])
    counts = g.cast(g.Round(g.Mul(b, apart)), DType.INT32)
    return counts if counts.rank == b.rank else g.Squeeze(counts, [0])


def round_to_int8(g, x: Value):
    """The nearest int8."""
    return g.cast(g.Clip(g.Round(x), -128.0, 127.0), DType.INT8)


def run_quantized_layer(g, parts: Parts, weights: QuantizedWeights, ends):
    """A calibrated layer, of integers that are scaled once, where oneDNN scales them.

    Runtimes have kernels for the first form, of uint8 data and results, which ``QLinearConv`` is as
    one operator; their scale, that of the weights by 1 and through 1, is oneDNN's to the last bit.
    The second is for what they have no kernel for.
    """
    dtype = output_type(parts)
    unit = compute_inverse_scale(g, dtype, *ends)
    factor = weights.factor(g, unit)
    y = scale_products(g, parts, weights, factor)
    if fits_kernels(parts, weights, factor):
        return round_and_saturate(g, y, dtype)
    cuts = dtype is DType.UINT8 and kind_of(parts.after[-1]) == "relu"  # as uint8 do themselves
    layers, add = parts.after[:-1] if cuts else parts.after, partial(add_residual, g, parts, unit)
    y = apply_following_layers(g, y, layers, add)
    y = add_summand(g, y, dtype, g.const(np.float32(1)), parts.sum, in_integers=True)
    return channels_first(g, y) if parts.convolves else y


def add_residual(g, parts: Parts, unit: Value, y: Value, *, is_exact: bool = True):
    """The other layer's result added, channels last, where ``unit`` stand for 1.

    To be exact, its product with a scale is not rounded before the sum is, as in oneDNN.
    """
    assert parts.sum is not None
    share = g.Div(unit, compute_inverse_scale(g, parts.sum.type, *parts.ranges[2:]))
    summand, zero = to_unsigned(g, parts.sum)
    x = dequantize_unit(g, channels_last(g, summand), zero)
    return g.multiply_add(x, share, y) if is_exact else g.Add(g.Mul(x, share), y)


def fits_kernels(parts: Parts, weights: QuantizedWeights, factor: Value) -> bool:
    """Whether runtimes have an integer kernel for a layer, at every opset that has some."""
    rectified = all(kind_of(layer) == "relu" for layer in parts.after)
    by_one = parts.convolves or factor.rank == 0
    return rectified and by_one and not parts.sums and weights.q.tensor is not None


def scale_products(g, parts: Parts, weights: QuantizedWeights, factor: Value):
    """Products and bias, added up and scaled; channels last where runtimes have no kernel."""
    if not fits_kernels(parts, weights, factor):
        y = g.cast(multiply_integers(g, parts, weights.q), DType.FLOAT32)
        y = y if weights.bias is None else g.Add(y, g.cast_like(weights.bias, y))
        return g.Mul(y, factor)
    w = weights.q if is_depthwise(parts) else to_unsigned(g, weights.q)[0]
    w = multiply_by(g, w, factor)
    b = None if weights.bias is None else multiply_by(g, weights.bias, factor)
    return apply_layer(g, parts.bare, dequantize_unit(g, *to_unsigned(g, parts.x)), w, b)


def is_depthwise(parts: Parts) -> bool:
    """Whether each filter of a convolution reads a channel of its own.

    ONNX Runtime's kernel for these adds up int32 on every processor, faster with int8 weights.
    """
    groups = int(parts.first.attrs.get("num_group", "1"))
    return parts.convolves and parts.w.ranked_shape[:2] == (groups, 1)


def multiply_by(g, q: Value, scale: Value):
    """Integers times one number, or times one for each slice along the first axis.

    Those of uint8 are the ones of ``to_unsigned``.
    """
    zero = None
    if q.type is not DType.INT32:
        middle = MIDDLE if q.type is DType.UINT8 else 0
        zero = g.const(arrays.full(scale.static_shape, middle, q.type.numpy))
    return g.DequantizeLinear(q, scale, zero, axis=0 if scale.rank else 1)


def multiply_integers(g, parts: Parts, w: Value):
    """What a layer of integers adds up, as int32, channels last."""
    attrs = reads.bind(reads.rules[parts.first.op], *parts.bare)
    if not parts.convolves:
        return multiply(g, parts.x, w, attrs.get("flatten", True))
    attrs.pop("layout", None)
    return convolve(g, parts.x, w, **attrs)
