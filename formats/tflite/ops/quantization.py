"""Quantization and its inverse, as ``passes/quantize.py`` finds them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from serde.ir.graph import DType, Value
from serde.legalize.forms.form import Call
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
    """Whether numbers are quantized or dequantized by one scale; a single number is a constant."""
    zero = call.operand(2)
    dtype = call.x.dtype
    if call.op == "QuantizeLinear":
        dtype = DType.UINT8 if zero is None else zero.dtype
        if call.x.dtype is not DType.FLOAT32:
            return False
    is_single = call.inputs[1].static_shape in ((), (1,))
    is_number = call.x.tensor is not None and call.x.rank == 0
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
