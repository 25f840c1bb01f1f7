"""Quantization and its inverse, as ``passes/quantize.py`` finds them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.legalize.forms.form import Call
from serde.passes.regions import Quantization, Quantized, emit_qlinear_conv, emit_region, is_single
from serde.spec.schema import ELEMENT_TYPES
from serde.version_converter.adapters.quantization import (
    emit_dequantize,
    emit_quantize,
    multiply_parts,
    per_row,
    subtract_zero_point,
)

from ..target import TfliteBuilder, derive, legalizations, writes

STEPS = frozenset({DType.INT8, DType.UINT8, DType.INT16})  # what real numbers are quantized to
WEIGHTS = STEPS | {DType.INT32, DType.INT4, DType.INT2}
LONGEST = 1 << 14  # products in a sum, of which float32 holds those by 2 bits
SIGNED = {DType.UINT4: DType.INT4, DType.UINT2: DType.INT2}  # types that kernels have instead


@writes("DequantizeLinear", ignore=("block_size", "output_dtype"))
def write_dequantize(t: TfliteBuilder, x: Value, scale: Value, zero=None, *, axis: int):
    return t.make("DEQUANTIZE", [x, scale, zero], DType.FLOAT32, x.shape, axis=axis)


@writes("QuantizeLinear", ignore=("axis", "block_size", "output_dtype", "precision", "saturate"))
def write_quantize(t: TfliteBuilder, x: Value, scale: Value, zero: Value | None = None):
    dtype = DType.UINT8 if zero is None else zero.type
    return t.make("QUANTIZE", [x, scale, zero], dtype, x.shape)


def has_plain_scales(call: Call) -> bool:
    """Whether scales are constants of float32 without blocks, and results of their type.

    Kernels of int16 have no zero point.
    """
    scale, zero = (*call.inputs, None)[1:3]
    if scale.tensor is None or (zero is not None and zero.tensor is None):
        return False
    others = ("block_size", "output_dtype", "precision")
    is_plain = not any(call.attrs.get(name) for name in others)
    is_shifted = zero is not None and zero.dtype is DType.INT16 and bool(zero.array().any())
    if not is_plain or is_shifted or scale.dtype is not DType.FLOAT32:
        return False
    scales = scale.array()
    return bool((np.isfinite(scales) & (scales > 0)).all())


def is_quantized_weight(call: Call) -> bool:
    """Whether a constant is dequantized, by one scale or one for each slice along an axis."""
    return (
        call.x.tensor is not None and call.x.dtype in WEIGHTS and has_plain_scales(call)
        and call.inputs[1].rank < 2 and call.x.rank > 0
    )  # fmt: skip


def is_quantized(call: Call) -> bool:
    """Whether numbers are quantized or dequantized by one scale.

    Constants are computed where they are quantized, as weights of PyTorch's are, or single numbers.
    """
    zero = call.operand(2)
    dtype, is_constant = call.x.dtype, call.x.tensor is not None
    if call.op == "QuantizeLinear":
        dtype = DType.UINT8 if zero is None else zero.dtype
        if call.x.dtype is not DType.FLOAT32 or is_constant:
            return False
    is_single = call.inputs[1].static_shape in ((), (1,))
    is_number = is_constant and call.x.rank == 0
    return has_plain_scales(call) and is_single and dtype in STEPS and not is_number


def dequantize(g, call: Call):  # type: ignore[no-untyped-def]
    """The real numbers: of constants in the form that kernels have, others computed."""
    x, scale, zero = (*call.inputs, None)[:3]
    axis, block_size = call.attrs["axis"], call.attrs["block_size"]
    if _is_constant(x, scale, zero) and x.rank > 0 and x.dtype in WEIGHTS | SIGNED.keys():
        if x.dtype in SIGNED:
            operands = [make_signed(g, v) for v in (x, zero or g.full_like(scale, 0, x.dtype))]
            return call.emit(g, operands[0], scale, operands[1])
        if block_size and x.ranked_shape[axis] % block_size == 0:
            return dequantize_blocks(g, x, scale, zero, axis % x.rank, block_size)
        if not block_size and not (scale.array() > 0).all():
            return call.emit(g, *make_positive(g, x, scale, zero, axis % x.rank))
    return emit_dequantize(g, x, scale, zero, scale.type, axis % max(x.rank, 1), block_size)


def _is_constant(x: Value, scale: Value, zero: Value | None) -> bool:
    has_tensors = all(v is None or v.tensor is not None for v in (x, scale, zero))
    return has_tensors and scale.dtype is DType.FLOAT32


def make_signed(g, constant: Value) -> Value:  # type: ignore[no-untyped-def]
    """Unsigned integers less the middle of their range, for the same numbers of another zero."""
    dtype = SIGNED[constant.type]
    middle = 1 << (dtype.bits - 1)
    return derive(
        g, constant, lambda a: (a.astype(np.int16) - middle).astype(dtype.numpy),
        constant.static_shape, dtype,
    )  # fmt: skip


def make_positive(g, x: Value, scale: Value, zero: Value | None, axis: int):  # type: ignore[no-untyped-def]
    """Integers of int8 and positive scales for the same numbers.

    ONNX Runtime's weights of 4 bits have negative scales, and 0 for slices of zeros.
    """
    along = [-1 if a == axis and scale.rank else 1 for a in range(x.rank)]
    factors = scale.array()
    zeros = np.zeros_like(factors) if zero is None else zero.array()
    signs, offsets = (v.astype(np.int16).reshape(along) for v in (np.sign(factors), zeros))
    steps = (x.array().astype(np.int16) - offsets) * signs
    bounds = np.iinfo(np.int8)
    require(bounds.min <= steps.min() and steps.max() <= bounds.max, "negative scales of int8 that "
            "are as many as they can be. Quantize with positive scales")  # fmt: skip
    positive = np.where(factors == 0, np.float32(1), np.abs(factors))
    return g.const(steps.astype(np.int8)), g.const(positive), None


def arrange(g, constant: Value, order: Sequence[int], shape: tuple[int, ...]) -> Value:  # type: ignore[no-untyped-def]
    """A constant with its axes in another order, and then of another shape."""
    return derive(g, constant, lambda a: a.transpose(order).reshape(shape), shape)


def dequantize_blocks(g, x: Value, scale: Value, zero: Value | None, axis: int, block_size: int):  # type: ignore[no-untyped-def]
    """Blocks as rows, each of which has a scale."""
    order = [*(a for a in range(x.rank) if a != axis), axis]
    shape = tuple([x.static_shape[a] for a in order])
    rows = math.prod(shape) // block_size
    matrix = arrange(g, x, order, (rows, block_size))
    factors, zeros = (v and arrange(g, v, order, (rows,)) for v in (scale, zero))
    real = g.DequantizeLinear(matrix, factors, zeros, axis=0)
    return g.Transpose(g.Reshape(real, list(shape)), perm=[order.index(a) for a in range(x.rank)])


def compute_quantized(g, call: Call):  # type: ignore[no-untyped-def]
    """The integers, computed and rounded as the standard has it."""
    x, scale, zero = (*call.inputs, None)[:3]
    named = call.attrs.get("output_dtype")
    dtype = ELEMENT_TYPES[named] if named else DType.UINT8 if zero is None else zero.type
    axis, block_size = call.attrs["axis"] % max(x.rank, 1), call.attrs["block_size"]
    return emit_quantize(g, x, scale, zero, dtype, axis, block_size)


@legalizations("MatMulInteger")
def legalize_matmul_integer(g, a: Value, b: Value, a_zero=None, b_zero=None):
    """Products of floats, those of long sums by parts of ``a``; constant integers stay so."""
    terms = a.ranked_shape[-1]
    if not isinstance(terms, int) or terms > LONGEST:
        return g.decompose("MatMulInteger", 10, a, b, a_zero, b_zero)
    is_weight = b.tensor is not None and (b_zero is None or b_zero.tensor is not None)
    if is_weight and (b_zero is None or b_zero.rank == 0):
        weight = g.DequantizeLinear(b, np.float32(1), b_zero)
    else:
        weight = g.cast(subtract_zero_point(g, b, b_zero), DType.FLOAT32)
    x = g.cast(subtract_zero_point(g, a, a_zero, per_row(a_zero)), DType.FLOAT32)
    return multiply_parts(g, x, terms, lambda part: g.MatMul(part, weight))


@legalizations("QLinearConv")
def legalize_qlinear_conv(g, *operands: Value, **frame):  # type: ignore[no-untyped-def]
    """A Conv between dequantizations and a quantization, which is one operator on integers."""
    if not has_constant_scales(operands):
        return g.decompose("QLinearConv", 10, *operands, **frame)
    return emit_qlinear_conv(Quantized.dequantize, g, *operands, **frame)


@legalizations("QLinearMatMul")
def legalize_qlinear_matmul(g, *operands: Value):  # type: ignore[no-untyped-def]
    """A MatMul between dequantizations and a quantization, which is one operator on integers."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = operands
    if not has_constant_scales(operands) or not is_single(a_scale) or not is_single(y_scale):
        return g.decompose("QLinearMatMul", 10, *operands)
    parts = [
        Quantized(v, Quantization(scale, zero, axis=-1))
        for v, scale, zero in ((a, a_scale, a_zero), (b, b_scale, b_zero))
    ]
    return emit_region(g, g.MatMul, parts, Quantization(y_scale, y_zero))


def has_constant_scales(operands: Sequence[Value | None]) -> bool:
    """Whether the scales and zero points of a QLinearConv or QLinearMatMul are constants."""
    scales = [v for at in (1, 2, 4, 5, 6, 7) if (v := operands[at]) is not None]
    return all(v.tensor is not None and v.rank < 2 for v in scales)
