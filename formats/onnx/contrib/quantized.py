"""Operators on quantized tensors: dequantized, computed, and quantized again (QDQ).

ONNX Runtime fuses that form to the operator it was read from, so that the integers are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES

from .table import apply_in_layout, as_scalar, ints_or_none, is_one_element, reads

MODERN_SOFTMAX = 13  # the opset whose Softmax normalizes along one axis


def dequantize(g: Any, x: Value, scale: Value, zero: Value | None) -> Value:
    """``x`` in real numbers, by one scale for the whole tensor."""
    zero = None if zero is None else as_scalar(g, zero)
    return g.DequantizeLinear(x, as_scalar(g, scale), zero)  # type: ignore[no-any-return]


def quantize(g: Any, x: Value, scale: Value, zero: Value | None, dtype: DType) -> Value:
    """``x`` as integers of ``dtype``, by one scale for the whole tensor."""
    zero = g.const(np.zeros((), dtype.numpy)) if zero is None else as_scalar(g, zero)
    return g.QuantizeLinear(x, as_scalar(g, scale), zero)  # type: ignore[no-any-return]


def _binary(op: str) -> Any:
    def read(
        g: Any, a: Value, a_scale: Value, a_zero: Value | None, b: Value, b_scale: Value,
        b_zero: Value | None, c_scale: Value, c_zero: Value | None = None,
    ) -> Value:  # fmt: skip
        found = g[op](dequantize(g, a, a_scale, a_zero), dequantize(g, b, b_scale, b_zero))
        return quantize(g, found, c_scale, c_zero, a.type)

    return read


for _op in ("Add", "Mul"):
    reads(f"QLinear{_op}")(_binary(_op))


@reads("QLinearSigmoid")
def read_sigmoid(
    g: Any, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value,
    y_zero: Value | None = None,
) -> Value:  # fmt: skip
    return quantize(g, g.Sigmoid(dequantize(g, x, x_scale, x_zero)), y_scale, y_zero, x.type)


@reads("QLinearLeakyRelu")
def read_leaky_relu(
    g: Any, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value,
    y_zero: Value | None = None, *, alpha: float = 0.01,
) -> Value:  # fmt: skip
    found = g.LeakyRelu(dequantize(g, x, x_scale, x_zero), alpha=alpha)
    return quantize(g, found, y_scale, y_zero, x.type)


@reads("QLinearSoftmax")
def read_softmax(
    g: Any, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value, y_zero: Value,
    *, opset: int, axis: int = -1,
) -> Value:  # fmt: skip
    real = dequantize(g, x, x_scale, x_zero)
    if opset >= MODERN_SOFTMAX:
        found = g.Softmax(real, axis=axis)
    else:
        rows = g.Softmax(g.Flatten(real, axis=axis % x.rank), axis=-1)
        found = g.Reshape(rows, g.Shape(x))
    return quantize(g, found, y_scale, y_zero, x.type)


@reads("QLinearAveragePool")
def read_average_pool(
    g: Any, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value,
    y_zero: Value | None = None, *, kernel_shape: Ints, auto_pad: str = "NOTSET",
    ceil_mode: int = 0, channels_last: int = 0, count_include_pad: int = 0, pads: Ints = (),
    strides: Ints = (),
) -> Value:  # fmt: skip
    require(not (ceil_mode and count_include_pad), "no support for ceil_mode=1 with "
            "count_include_pad=1: it divides by more elements than AveragePool does")  # fmt: skip

    def pool(x: Value) -> Value:
        found = g.AveragePool(
            dequantize(g, x, x_scale, x_zero), kernel_shape=kernel_shape, auto_pad=auto_pad,
            ceil_mode=ceil_mode, count_include_pad=count_include_pad, pads=ints_or_none(pads),
            strides=ints_or_none(strides),
        )  # fmt: skip
        return quantize(g, found, y_scale, y_zero, x.type)

    return apply_in_layout(g, x, channels_last, pool)


@reads("QLinearGlobalAveragePool")
def read_global_average_pool(
    g: Any, x: Value, x_scale: Value, x_zero: Value, y_scale: Value, y_zero: Value,
    *, channels_last: int = 0,
) -> Value:  # fmt: skip
    def pool(x: Value) -> Value:
        found = g.GlobalAveragePool(dequantize(g, x, x_scale, x_zero))
        return quantize(g, found, y_scale, y_zero, x.type)

    return apply_in_layout(g, x, channels_last, pool)


@reads("QLinearReduceMean")
def read_reduce_mean(
    g: Any, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value,
    y_zero: Value | None = None, *, axes: Ints, keepdims: int,
) -> Value:  # fmt: skip
    mean = g.ReduceMean(dequantize(g, x, x_scale, x_zero), axes, keepdims=keepdims)
    return quantize(g, mean, y_scale, y_zero, x.type)


@reads("QLinearConcat")
def read_concat(
    g: Any, y_scale: Value, y_zero: Value, *inputs: Value, axis: int
) -> Value:  # fmt: skip
    require(len(inputs) % 3 == 0, f"{len(inputs)} inputs, which are no triples")
    triples = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    found = g.Concat(*(dequantize(g, *triple) for triple in triples), axis=axis)
    return quantize(g, found, y_scale, y_zero, y_zero.type)


@reads("QLinearWhere")
def read_where(
    g: Any, condition: Value, x: Value, x_scale: Value, x_zero: Value, y: Value, y_scale: Value,
    y_zero: Value, z_scale: Value, z_zero: Value,
) -> Value:  # fmt: skip
    chosen = g.Where(
        condition, dequantize(g, x, x_scale, x_zero), dequantize(g, y, y_scale, y_zero)
    )
    return quantize(g, chosen, z_scale, z_zero, x.type)


@reads("QLinearConv")
def read_conv(
    g: Any, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
    y_scale: Value, y_zero: Value, b: Value | None = None, *, auto_pad: str = "NOTSET",
    channels_last: int = 0, dilations: Ints = (), group: int = 1, kernel_shape: Ints = (),
    pads: Ints = (), strides: Ints = (),
) -> Value:  # fmt: skip
    def convolve(x: Value) -> Value:
        return g.QLinearConv(  # type: ignore[no-any-return]
            x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b, auto_pad=auto_pad,
            dilations=ints_or_none(dilations), group=group, kernel_shape=ints_or_none(kernel_shape),
            pads=ints_or_none(pads), strides=ints_or_none(strides),
        )  # fmt: skip

    return apply_in_layout(g, x, channels_last, convolve)


@reads("NhwcMaxPool")
def read_max_pool(
    g: Any, x: Value, *, kernel_shape: Ints, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Ints = (), pads: Ints = (), strides: Ints = (),
) -> Value:  # fmt: skip
    def pool(x: Value) -> Value:
        return g.MaxPool(  # type: ignore[no-any-return]
            x, kernel_shape=kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode,
            dilations=ints_or_none(dilations), pads=ints_or_none(pads),
            strides=ints_or_none(strides),
        )  # fmt: skip

    return apply_in_layout(g, x, 1, pool)


@reads("DequantizeLinear")
def read_dequantize(
    g: Any, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1
) -> Value:  # fmt: skip
    if is_one_element(scale):
        return dequantize(g, x, scale, zero)
    return g.DequantizeLinear(x, scale, zero, axis=axis)  # type: ignore[no-any-return]


@reads("QuantizeLinear")
def read_quantize(
    g: Any, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1
) -> Value:  # fmt: skip
    if is_one_element(scale):
        return quantize(g, x, scale, zero, DType.UINT8)
    code = ELEMENT_CODES[DType.UINT8] if zero is None else None
    return g.QuantizeLinear(x, scale, zero, axis=axis, output_dtype=code)  # type: ignore[no-any-return]
