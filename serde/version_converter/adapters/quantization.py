"""Quantised tensors, and integer products."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from serde.ir.graph import BYTES, DType, Value
from serde.spec.schema import ELEMENT_CODES, ELEMENT_TYPES

from ..element_types import require_elements
from . import decomposition, downgrades
from .cast import FLOAT8
from .common import cast, lay_along, scalar, size


def broadcast_parameter(g, v: Value, x: Value, axis: int, block_size: int):
    """A scale or zero point in a shape that broadcasts with ``x``."""
    if v.rank == 0 or v.shape == (1,):
        return scalar(g, v)
    if not block_size:
        return lay_along(g, v, axis, x.rank)
    each = g.Unsqueeze(v, [axis + 1])
    parts = [size(g, v, a) for a in range(x.rank)]
    expanded = g.Expand(
        each, g.Concat(*parts[: axis + 1], [block_size], *parts[axis + 1 :], axis=0)
    )
    grown = g.Mul(parts[axis], block_size)
    flat = g.Reshape(expanded, g.Concat(*parts[:axis], grown, *parts[axis + 1 :], axis=0))
    return g.Slice(flat, [0], size(g, x, axis), [axis], [1])


def is_all(v: Value, number: int) -> bool:
    """Whether all elements of a constant are a number."""
    return v.tensor is not None and bool((v.array() == number).all())


def emit_quantize(
    g, x: Value, scale: Value, zero, kind: DType, axis: int, block_size: int, saturate: int = 1
):  # fmt: skip
    """``saturate(round(x / scale) + zero)``, decomposed."""
    if kind.kind != "f":
        return cast(g, quantize_in_float(g, x, scale, zero, kind, axis, block_size), kind)
    y = divide_by_scale(g, x, scale, axis, block_size)
    return g.Cast(y, to=ELEMENT_CODES[kind], saturate=saturate)


def quantize_in_float(g, x: Value, scale: Value, zero, kind: DType, axis: int, block_size: int):
    """The integers of ``emit_quantize`` as float32."""
    y = g.Round(divide_by_scale(g, x, scale, axis, block_size))
    if zero is not None and not is_all(zero, 0):
        y = g.Add(y, broadcast_parameter(g, cast(g, zero, DType.FLOAT32), x, axis, block_size))
    bounds = ml_dtypes.iinfo(kind.numpy)
    return g.Clip(y, float(bounds.min), float(bounds.max))


def divide_by_scale(g, x: Value, scale: Value, axis: int, block_size: int):
    """``x / scale`` in float32."""
    if is_all(scale, 1):
        return cast(g, x, DType.FLOAT32)
    scale_float32 = cast(g, scale, DType.FLOAT32)
    return g.Div(
        cast(g, x, DType.FLOAT32), broadcast_parameter(g, scale_float32, x, axis, block_size)
    )


def emit_dequantize(g, x: Value, scale: Value, zero, kind: DType, axis: int, block_size: int):
    """``(x - zero) * scale``, decomposed; of 32-bit integers in float64, which holds them."""
    product_dtype = DType.FLOAT64 if x.dtype is DType.INT32 else DType.FLOAT32
    y = cast(g, x, product_dtype)
    if zero is not None and not is_all(zero, 0):
        y = g.Sub(y, broadcast_parameter(g, cast(g, zero, product_dtype), x, axis, block_size))
    return cast(
        g,
        g.Mul(y, broadcast_parameter(g, cast(g, scale, product_dtype), x, axis, block_size)),
        kind,
    )


@downgrades[23]("QuantizeLinear")
def quantize_in_scales_type(g, x: Value, scale: Value, zero=None, *, precision: int, **rest):
    """Before opset 23 the division was made in the one type of data and scale."""
    kind = ELEMENT_TYPES[precision] if precision else scale.type
    return g.QuantizeLinear(cast(g, x, kind), cast(g, scale, kind), zero, **rest)


@downgrades[21]("QuantizeLinear")
def quantize_to_bytes(
    g, x: Value, scale: Value, zero=None, *, axis: int, block_size: int, output_dtype: int,
    saturate: int,
):  # fmt: skip
    """Before opset 21 there were no blocks, and bytes or 8-bit floats only."""
    kind = DType.UINT8 if zero is None else zero.type
    kind = ELEMENT_TYPES[output_dtype] if output_dtype else kind
    require_elements(kind, g.current_opset)
    if not block_size and kind in (*BYTES, *FLOAT8):
        if zero is None and kind is not DType.UINT8:
            with g.at_opset(19):
                zero = g.Expand(g.const(0, kind), g.Shape(scale))
        saturate = saturate if kind in FLOAT8 else 1  # integers saturate whatever it says
        return g.QuantizeLinear(x, scale, zero, axis=axis, saturate=saturate)
    with g.at_opset(18):
        return emit_quantize(g, x, scale, zero, kind, axis, block_size)


@downgrades[13]("QuantizeLinear")
def quantize_with_one_scale(g, x: Value, scale: Value, zero=None, *, axis: int):
    if scale.rank == 0:
        return g.QuantizeLinear(x, scale, zero)
    with g.at_opset(18):
        return emit_quantize(g, x, scale, zero, zero.type if zero else DType.UINT8, axis, 0)


@decomposition(10, "QuantizeLinear")
def quantize(g, x: Value, scale: Value, zero=None):
    return emit_quantize(g, x, scale, zero, zero.type if zero else DType.UINT8, 0, 0)


@downgrades[23]("DequantizeLinear")
def dequantize_to_scales_type(g, x: Value, scale: Value, zero=None, *, output_dtype: int, **rest):
    """Before opset 23 the result had the scale's type."""
    kind = ELEMENT_TYPES[output_dtype] if output_dtype else scale.type
    return g.DequantizeLinear(x, cast(g, scale, kind), zero, **rest)


@downgrades[21]("DequantizeLinear")
def dequantize_bytes(g, x: Value, scale: Value, zero=None, *, axis: int, block_size: int):
    """Before opset 21 there were no blocks, and no integers but of 8 and 32 bits."""
    if not block_size and x.dtype in (*BYTES, DType.INT32, *FLOAT8):
        return g.DequantizeLinear(x, scale, zero, axis=axis)
    require_elements(x.type, g.current_opset)
    with g.at_opset(18):
        return emit_dequantize(g, x, scale, zero, scale.type, axis, block_size)


@downgrades[19]("DequantizeLinear")
def dequantize_to_float32(g, x: Value, scale: Value, zero=None, *, axis: int):
    y = g.DequantizeLinear(x, cast(g, scale, DType.FLOAT32), zero, axis=axis)
    return cast(g, y, scale.dtype)


@downgrades[13]("DequantizeLinear")
def dequantize_with_one_scale(g, x: Value, scale: Value, zero=None, *, axis: int):
    if scale.rank == 0:
        return g.DequantizeLinear(x, scale, zero)
    with g.at_opset(18):
        return emit_dequantize(g, x, scale, zero, scale.type, axis, 0)


@decomposition(10, "DequantizeLinear")
def dequantize(g, x: Value, scale: Value, zero=None):
    return emit_dequantize(g, x, scale, zero, scale.type, 0, 0)


EXACT = 1 << 24  # integers below it are exact in float32


def as_exact_floats(g, terms, *operands: Value):
    """Operands of an integer product as floats that hold every sum of ``terms`` products."""
    enough = isinstance(terms, int) and terms * 255 * 255 < EXACT
    return [cast(g, v, DType.FLOAT32 if enough else DType.FLOAT64) for v in operands]


def subtract_zero_point(g, x: Value, zero, shape=None, kind: DType = DType.INT32):
    """Bytes less their zero point, in a type that has room for the difference."""
    x_of_kind = cast(g, x, kind)
    if zero is None:
        return x_of_kind
    zero = cast(g, zero, kind)
    return g.Sub(x_of_kind, zero if shape is None else g.Reshape(zero, shape))


def per_row(v):
    """The shape that lets a vector of rows' zero points or scales go with a matrix."""
    return [-1, 1] if v is not None and v.rank == 1 and v.ranked_shape != (1,) else None


@decomposition(10, "MatMulInteger")
def matmul_integer(g, a: Value, b: Value, a_zero=None, b_zero=None):
    a = subtract_zero_point(g, a, a_zero, per_row(a_zero))
    b = subtract_zero_point(g, b, b_zero)
    return cast(g, g.MatMul(*as_exact_floats(g, a.ranked_shape[-1], a, b)), DType.INT32)


@decomposition(10, "ConvInteger")
def conv_integer(g, x: Value, w: Value, x_zero=None, w_zero=None, **rest):
    """The zero point is taken off first, so that padding counts as 0.

    Convolutions of float64 are rare: sums that float32 does not hold are those of parts of the
    weights, of fewer bits each.
    """
    x = subtract_zero_point(g, x, x_zero)
    w = subtract_zero_point(g, w, w_zero, per_filter(w, w_zero))
    is_known = all(isinstance(d, int) for d in w.ranked_shape[1:])
    terms = int(np.prod(w.static_shape[1:])) if is_known else None
    if terms is None or not 2 <= EXACT // (255 * max(terms, 1)) <= 255:
        return cast(g, g.Conv(*as_exact_floats(g, terms, x, w), **rest), DType.INT32)
    x, w = (cast(g, v, DType.FLOAT32) for v in (x, w))
    return multiply_parts(g, w, terms, lambda part: g.Conv(x, part, **rest))


def multiply_parts(g, w: Value, terms: int, multiply):
    """Sums of products of ``w``, integers of 9 bits as float32: those of its parts, of fewer.

    ``multiply`` makes those of a part with other such integers.
    """
    largest = EXACT // (255 * max(terms, 1))  # of a part
    base, factor, total = 1 << (largest.bit_length() - 1), 1, g.const(0, DType.INT32)
    while factor < 256:
        high = g.Floor(g.Div(w, float(base))) if factor * base < 256 else g.const(np.float32(0))
        part = g.Sub(w, g.Mul(high, float(base)))
        y = cast(g, multiply(part), DType.INT32)
        total = g.Add(g.Mul(y, g.const(factor, DType.INT32)), total)
        w, factor = high, factor * base
    return total


def per_filter(w: Value, v):
    """The shape that lets a vector go with the filters of ``w``."""
    return [-1, *[1] * (w.rank - 1)] if v is not None and v.rank == 1 else None


@downgrades[21]("QLinearMatMul")
def qlinear_matmul_of_floats(g, *operands: Value):
    """Before opset 21 bytes only were multiplied."""
    if operands[0].dtype not in FLOAT8:
        return g.QLinearMatMul(*operands)
    a, b = (g.DequantizeLinear(*operands[i : i + 3]) for i in (0, 3))
    return g.QuantizeLinear(g.MatMul(a, b), *operands[6:])


@decomposition(10, "QLinearMatMul")
def qlinear_matmul(
    g, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value,
    y_scale: Value, y_zero: Value,
):  # fmt: skip
    product = g.MatMulInteger(a, b, a_zero, b_zero)
    rows = per_row(a_scale)
    a_scale = g.Reshape(a_scale, rows) if rows else a_scale
    scale = g.Mul(*(cast(g, v, DType.FLOAT32) for v in (a_scale, b_scale)))
    return requantize(g, product, scale, cast(g, y_scale, DType.FLOAT32), y_zero)


def requantize(g, total: Value, scale: Value, y_scale: Value, y_zero: Value):
    """By one factor, as runtimes do it: two would round numbers half way otherwise."""
    total = cast(g, total, DType.FLOAT32)
    if y_scale.shape != ():
        return g.QuantizeLinear(g.Mul(total, scale), y_scale, y_zero)
    return g.QuantizeLinear(g.Mul(total, g.Div(scale, y_scale)), np.float32(1), y_zero)


@decomposition(10, "QLinearConv")
def qlinear_conv(
    g, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
    y_scale: Value, y_zero: Value, b=None, **rest,
):  # fmt: skip
    behind = [-1, *[1] * (x.rank - 2)]
    total = g.ConvInteger(x, w, x_zero, w_zero, **rest)
    total = total if b is None else g.Add(total, g.Reshape(b, behind))
    w_scale = g.Reshape(w_scale, behind) if w_scale.rank == 1 else w_scale
    return requantize(g, total, g.Mul(x_scale, w_scale), y_scale, y_zero)
