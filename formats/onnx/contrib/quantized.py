"""Operators on quantized tensors: dequantized, computed, and quantized again (QDQ).

ONNX Runtime fuses that form to the operator it was read from, so that the integers are the same.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.passes.regions import Quantization, Quantized, emit_region, is_single
from serde.spec.schema import ELEMENT_CODES

from .table import apply_in_layout, as_scalar, reads

MODERN_SOFTMAX = 13  # the opset whose Softmax normalizes along one axis


def emit_layer(g, layer, operands, scale: Value, zero: Value | None, dtype: DType):
    """``layer`` of tensors with their scales and zero points, quantized again: a scale for each."""
    zero = g.const(np.zeros((), dtype.numpy)) if zero is None else zero
    parts = [Quantized(x, single_form(g, *form)) for x, *form in operands]
    return emit_region(g, layer, parts, single_form(g, scale, zero))


def single_form(g, scale: Value, zero: Value | None) -> Quantization:
    """The quantization by one scale for the whole tensor."""
    zero = None if zero is None else as_scalar(g, zero)
    return Quantization(as_scalar(g, scale), zero)


def dequantize(g, x: Value, scale: Value, zero: Value | None):
    """``x`` in real numbers, by one scale for the whole tensor."""
    return Quantized(x, single_form(g, scale, zero)).dequantize(g)


@reads.for_each({"QLinearAdd": "Add", "QLinearMul": "Mul"})
def read_binary(op, g, a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero=None):
    operands = (a, a_scale, a_zero), (b, b_scale, b_zero)
    return emit_layer(g, g[op], operands, c_scale, c_zero, a.type)


@reads("QLinearSigmoid")
def read_sigmoid(g, x, x_scale, x_zero, y_scale, y_zero=None):
    return emit_layer(g, g.Sigmoid, [(x, x_scale, x_zero)], y_scale, y_zero, x.type)


@reads("QLinearLeakyRelu")
def read_leaky_relu(g, x, x_scale, x_zero, y_scale, y_zero=None, *, alpha=0.01):
    layer = partial(g.LeakyRelu, alpha=alpha)
    return emit_layer(g, layer, [(x, x_scale, x_zero)], y_scale, y_zero, x.type)


@reads("QLinearSoftmax")
def read_softmax(g, x, x_scale, x_zero, y_scale, y_zero, *, opset: int, axis=-1):
    def normalize(real: Value):
        if opset >= MODERN_SOFTMAX:
            return g.Softmax(real, axis=axis)
        rows = g.Softmax(g.Flatten(real, axis=axis % x.rank), axis=-1)
        return g.Reshape(rows, g.Shape(x))

    scale = read_steps(g, y_scale)
    return emit_layer(g, normalize, [(x, x_scale, x_zero)], scale, y_zero, x.type)


def read_steps(g, scale: Value) -> Value:
    """The scale that ONNX Runtime's kernel of QLinearSoftmax computes with.

    It cuts the number of steps between 0 and 1 off to an integer. The scale for that number is
    the largest whose reciprocal is not less: the kernel, which a runtime may take for the Softmax
    that is written, then finds the same number, and halves are rounded up, as it does.
    """
    if scale.tensor is None or scale.tensor.size != 1:
        return scale
    declared = np.float32(scale.array().item())
    steps = np.floor(np.float32(1) / declared)
    if not steps >= 1 or declared == np.float32(1) / steps:
        return scale
    exact = np.nextafter(np.float32(1) / steps, np.float32(0))
    return g.const(exact)  # type: ignore[no-any-return]


@reads("QLinearAveragePool")
def read_average_pool(
    g, x, x_scale, x_zero, y_scale, y_zero=None, *, kernel_shape: Ints, auto_pad="NOTSET",
    ceil_mode=0, channels_last=0, count_include_pad=0, pads=(), strides=(),
):  # fmt: skip
    require(not (ceil_mode and count_include_pad), "no support for ceil_mode=1 with "
            "count_include_pad=1: it divides by more elements than AveragePool does")  # fmt: skip

    pool = partial(
        g.AveragePool, kernel_shape=kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode,
        count_include_pad=count_include_pad, pads=pads or None, strides=strides or None,
    )  # fmt: skip
    return apply_in_layout(g, x, channels_last, lambda x: emit_layer(
        g, pool, [(x, x_scale, x_zero)], y_scale, y_zero, x.type))  # fmt: skip


@reads("QLinearGlobalAveragePool")
def read_global_average_pool(g, x, x_scale, x_zero, y_scale, y_zero, *, channels_last=0):
    return apply_in_layout(g, x, channels_last, lambda x: emit_layer(
        g, g.GlobalAveragePool, [(x, x_scale, x_zero)], y_scale, y_zero, x.type))  # fmt: skip


@reads("QLinearReduceMean")
def read_reduce_mean(g, x, x_scale, x_zero, y_scale, y_zero=None, *, axes: Ints, keepdims: int):
    return emit_layer(
        g,
        lambda x: g.ReduceMean(x, axes, keepdims=keepdims),
        [(x, x_scale, x_zero)],
        y_scale,
        y_zero,
        x.type,
    )


@reads("QLinearConcat")
def read_concat(g, y_scale, y_zero, *inputs, axis: int):
    require(len(inputs) % 3 == 0, f"{len(inputs)} inputs, which are no triples")
    triples = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    return emit_layer(g, partial(g.Concat, axis=axis), triples, y_scale, y_zero, y_zero.type)


@reads("QLinearWhere")
def read_where(g, condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero):
    operands = (x, x_scale, x_zero), (y, y_scale, y_zero)
    return emit_layer(g, partial(g.Where, condition), operands, z_scale, z_zero, x.type)


@reads("QLinearConv")
def read_conv(
    g, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b=None, *, auto_pad="NOTSET",
    channels_last=0, dilations=(), group=1, kernel_shape=(), pads=(), strides=(),
):  # fmt: skip
    def convolve(x: Value):
        return g.QLinearConv(
            x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b, auto_pad=auto_pad,
            dilations=dilations or None, group=group, kernel_shape=kernel_shape or None,
            pads=pads or None, strides=strides or None,
        )  # fmt: skip

    return apply_in_layout(g, x, channels_last, convolve)


@reads("NhwcMaxPool")
def read_max_pool(
    g, x, *, kernel_shape: Ints, auto_pad="NOTSET", ceil_mode=0, dilations=(), pads=(), strides=()
):
    def pool(x: Value):
        return g.MaxPool(
            x, kernel_shape=kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode,
            dilations=dilations or None, pads=pads or None, strides=strides or None,
        )  # fmt: skip

    return apply_in_layout(g, x, 1, pool)


@reads("DequantizeLinear")
def read_dequantize(g, x, scale, zero=None, *, axis=1):
    if is_single(scale):
        return dequantize(g, x, scale, zero)
    return g.DequantizeLinear(x, scale, zero, axis=axis)


@reads("QuantizeLinear")
def read_quantize(g, x, scale, zero=None, *, axis=1):
    if is_single(scale):
        return emit_layer(g, lambda: x, (), scale, zero, DType.UINT8)
    code = ELEMENT_CODES[DType.UINT8] if zero is None else None
    return g.QuantizeLinear(x, scale, zero, axis=axis, output_dtype=code)
