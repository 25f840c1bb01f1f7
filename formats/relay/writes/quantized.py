"""Quantised tensors: ``qnn`` operators where they compute what ONNX means, to the last digit.

Products of bytes are sums of integers in both. ``qnn.quantize`` rounds halves away from zero
and ``qnn.requantize`` multiplies in fixed point, where ONNX rounds a float's halves to even: what
becomes of QuantizeLinear, and of what QLinearConv and QLinearMatMul do after the product, is
therefore spelled out.
"""

from __future__ import annotations

from serde.decompositions.expressions import number
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_TYPES
from serde.version_converter.adapters.quantization import BYTES, dequantized

from ..target import scalar, typed, writes
from .convolution import FIXED_PADS, LAYOUTS, spelled
from .linear import product_of
from .recast import recasts

WHOLE = {"out_dtype": "int32"}


@recasts("DequantizeLinear")
def recast_dequantize(g, x, scale, zero=None, *, axis: int, block_size: int, output_dtype: int):
    """Bytes become floats by one scale, or one for each element of an axis."""
    kind = ELEMENT_TYPES[output_dtype] if output_dtype else scale.type
    single = kind is scale.type is DType.FLOAT32
    if single and x.type in BYTES and not block_size and scale.rank < 2:
        return None
    return dequantized(g, x, scale, zero, kind, axis, block_size)


@writes("DequantizeLinear", ignore=("block_size", "output_dtype"))
def write_dequantize(r, x, scale, zero=None, *, axis: int):
    scale, zero = numbers(r, scale, DType.FLOAT32), zero_point(r, zero)
    return r.qnn.dequantize(x, scale, zero, axis=axis, out_dtype="float32")


def numbers(r, v: Value, dtype: DType) -> Value:
    """One number without axes, or one for each element of an axis."""
    if (held := number(v)) is not None:
        return scalar(r, held, dtype)
    if v.tensor is not None:
        return r.const(v.array().astype(dtype.numpy))
    v = v if v.rank == 0 or v.known != (1,) else typed(r.reshape(v, newshape=()), v.dtype, ())
    return v if v.dtype is dtype else r.cast(v, dtype=dtype.value)


def zero_point(r, zero: Value | None) -> Value:
    return scalar(r, 0, DType.INT32) if zero is None else numbers(r, zero, DType.INT32)


def one(r) -> Value:
    """A scale, of which a product of integers takes no notice."""
    return scalar(r, 1, DType.FLOAT32)


def is_one_number(v: Value | None) -> bool:
    return v is None or v.known in ((), (1,))


@recasts("ConvInteger")
def recast_conv_integer(
    g, x, w, x_zero=None, w_zero=None, *, kernel_shape, strides, dilations, pads, group,
    auto_pad=None,
):  # fmt: skip
    """Images of known sizes; a signal is an image one high, and others are spelled out."""
    whole = x.is_static and w.is_static and min(pads) >= 0 and is_one_number(x_zero)
    if whole and len(kernel_shape) == 2:
        return None
    if whole and len(kernel_shape) == 1:
        flat = g.ConvInteger(
            g.Unsqueeze(x, [2]), g.Unsqueeze(w, [2]), x_zero, w_zero,
            kernel_shape=(1, *kernel_shape), strides=(1, *strides), dilations=(1, *dilations),
            pads=(0, pads[0], 0, pads[1]), group=group,
        )  # fmt: skip
        return g.Squeeze(flat, [2])
    return g.decompose(
        "ConvInteger", 10, x, w, x_zero, w_zero, kernel_shape=kernel_shape, strides=strides,
        dilations=dilations, pads=pads, group=group,
    )  # fmt: skip


@writes("ConvInteger", only=FIXED_PADS)
def write_conv_integer(
    r, x, w, x_zero=None, w_zero=None, *, kernel_shape, strides, dilations, pads, group
):
    data, kernel, _ = LAYOUTS[2]
    zeros = zero_point(r, x_zero), zero_point(r, w_zero)
    return r.qnn.conv2d(
        x, w, *zeros, one(r), one(r), strides=strides, padding=spelled(pads), dilation=dilations,
        groups=group, channels=w.known[0], kernel_size=kernel_shape, data_layout=data,
        kernel_layout=kernel, **WHOLE,
    )  # fmt: skip


@recasts("MatMulInteger")
def recast_mat_mul_integer(g, a, b, a_zero=None, b_zero=None):
    """One zero point for each operand; those of rows and columns are taken away before."""
    known = a.is_static and b.is_static and is_one_number(a_zero) and is_one_number(b_zero)
    if not known:
        return g.decompose("MatMulInteger", 10, a, b, a_zero, b_zero)
    return product_of(g, "MatMulInteger", a, b, a_zero, b_zero)


@writes("MatMulInteger")
def write_mat_mul_integer(r, a, b, a_zero=None, b_zero=None):
    quantities = zero_point(r, a_zero), zero_point(r, b_zero), one(r), one(r)
    if a.rank == 2:
        turned = r.transpose(b, axes=(1, 0))
        return r.qnn.dense(a, turned, *quantities, units=b.known[1], **WHOLE)
    turned = r.transpose(b, axes=(0, 2, 1))
    return r.qnn.batch_matmul(a, turned, *quantities, transpose_b=True, **WHOLE)
