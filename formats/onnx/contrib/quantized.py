"""Operators on quantized tensors: dequantized, computed, and quantized again (QDQ).

ONNX Runtime fuses that form to the operator it was read from, so that the integers are the same.
"""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES

from .table import apply_in_layout, as_scalar, is_one_element, reads

MODERN_SOFTMAX = 13  # the opset whose Softmax normalizes along one axis


def dequantize(g, x: Value, scale: Value, zero: Value | None):
    """``x`` in real numbers, by one scale for the whole tensor."""
    zero = None if zero is None else as_scalar(g, zero)
    return g.DequantizeLinear(x, as_scalar(g, scale), zero)


def quantize(g, x: Value, scale: Value, zero: Value | None, dtype: DType):
    """``x`` as integers of ``dtype``, by one scale for the whole tensor."""
    zero = g.const(np.zeros((), dtype.numpy)) if zero is None else as_scalar(g, zero)
    return g.QuantizeLinear(x, as_scalar(g, scale), zero)


@reads.for_each({"QLinearAdd": "Add", "QLinearMul": "Mul"})
def read_binary(op, g, a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero=None):
    y = g[op](dequantize(g, a, a_scale, a_zero), dequantize(g, b, b_scale, b_zero))
    return quantize(g, y, c_scale, c_zero, a.type)


@reads("QLinearSigmoid")
def read_sigmoid(g, x, x_scale, x_zero, y_scale, y_zero=None):
    return quantize(g, g.Sigmoid(dequantize(g, x, x_scale, x_zero)), y_scale, y_zero, x.type)


@reads("QLinearLeakyRelu")
def read_leaky_relu(g, x, x_scale, x_zero, y_scale, y_zero=None, *, alpha=0.01):
    y = g.LeakyRelu(dequantize(g, x, x_scale, x_zero), alpha=alpha)
    return quantize(g, y, y_scale, y_zero, x.type)


@reads("QLinearSoftmax")
def read_softmax(g, x, x_scale, x_zero, y_scale, y_zero, *, opset: int, axis=-1):
    real = dequantize(g, x, x_scale, x_zero)
    if opset >= MODERN_SOFTMAX:
        y = g.Softmax(real, axis=axis)
    else:
        rows = g.Softmax(g.Flatten(real, axis=axis % x.rank), axis=-1)
        y = g.Reshape(rows, g.Shape(x))
    return quantize(g, y, read_steps(g, y_scale), y_zero, x.type)


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

    def pool(x: Value):
        y = g.AveragePool(
            dequantize(g, x, x_scale, x_zero), kernel_shape=kernel_shape, auto_pad=auto_pad,
            ceil_mode=ceil_mode, count_include_pad=count_include_pad, pads=pads or None,
            strides=strides or None,
        )  # fmt: skip
        return quantize(g, y, y_scale, y_zero, x.type)

    return apply_in_layout(g, x, channels_last, pool)


@reads("QLinearGlobalAveragePool")
def read_global_average_pool(g, x, x_scale, x_zero, y_scale, y_zero, *, channels_last=0):
    def pool(x: Value):
        y = g.GlobalAveragePool(dequantize(g, x, x_scale, x_zero))
        return quantize(g, y, y_scale, y_zero, x.type)

    return apply_in_layout(g, x, channels_last, pool)


@reads("QLinearReduceMean")
def read_reduce_mean(g, x, x_scale, x_zero, y_scale, y_zero=None, *, axes: Ints, keepdims: int):
    mean = g.ReduceMean(dequantize(g, x, x_scale, x_zero), axes, keepdims=keepdims)
    return quantize(g, mean, y_scale, y_zero, x.type)


@reads("QLinearConcat")
def read_concat(g, y_scale, y_zero, *inputs, axis: int):
    require(len(inputs) % 3 == 0, f"{len(inputs)} inputs, which are no triples")
    triples = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    y = g.Concat(*(dequantize(g, *triple) for triple in triples), axis=axis)
    return quantize(g, y, y_scale, y_zero, y_zero.type)


@reads("QLinearWhere")
def read_where(g, condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero):
    chosen = g.Where(
        condition, dequantize(g, x, x_scale, x_zero), dequantize(g, y, y_scale, y_zero)
    )
    return quantize(g, chosen, z_scale, z_zero, x.type)


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
    if is_one_element(scale):
        return dequantize(g, x, scale, zero)
    return g.DequantizeLinear(x, scale, zero, axis=axis)


@reads("QuantizeLinear")
def read_quantize(g, x, scale, zero=None, *, axis=1):
    if is_one_element(scale):
        return quantize(g, x, scale, zero, DType.UINT8)
    code = ELEMENT_CODES[DType.UINT8] if zero is None else None
    return g.QuantizeLinear(x, scale, zero, axis=axis, output_dtype=code)
