"""Products of integer matrices, scaled to real numbers or quantized again."""

from __future__ import annotations

from functools import partial

from serde.ir.graph import DType, Value
from serde.passes.regions import Quantization, Quantized, emit_region, is_single

from .table import as_scalar, reads


def apply_scale(g, total: Value, scale: Value, bias: Value | None = None):
    """Sums of products (int32) times their scale, plus a bias."""
    product = g.Mul(g.cast(total, scale.type), scale)
    return product if bias is None else g.Add(product, bias)


def align_columns(g, x: Value):
    """A scale or a zero point of the right operand: one number, or one for each column."""
    return as_scalar(g, x) if is_single(x) else x


@reads("MatMulIntegerToFloat")
def read_matmul_integer_to_float(g, a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
    a_zero = None if a_zero is None else as_scalar(g, a_zero)
    total = g.MatMulInteger(a, b, a_zero, None if b_zero is None else align_columns(g, b_zero))
    return apply_scale(g, total, g.Mul(as_scalar(g, a_scale), align_columns(g, b_scale)), bias)


@reads("DynamicQuantizeMatMul")
def read_dynamic_quantize_matmul(g, a, b, b_scale, b_zero=None, bias=None):
    integers, scale, zero = g.DynamicQuantizeLinear(a, outputs=3)
    return read_matmul_integer_to_float(g, integers, b, scale, b_scale, zero, b_zero, bias)


@reads("MatMulInteger16")
def read_matmul_integer16(g, a, b):
    is_signed = "i" in (a.type.kind, b.type.kind)
    dtype = DType.INT32 if is_signed else DType.UINT32
    return g.MatMul(g.cast(a, dtype), g.cast(b, dtype))


@reads("QGemm")
def read_qgemm(
    g, a, a_scale, a_zero, b, b_scale, b_zero, c=None, y_scale=None, y_zero=None, *, alpha=1.0,
    transA=0, transB=0,
):  # fmt: skip
    a_scale, a_zero = as_scalar(g, a_scale), as_scalar(g, a_zero)
    b_scale, b_zero = align_columns(g, b_scale), align_columns(g, b_zero)
    weights = Quantization(b_scale, b_zero, axis=0 if transB else 1)
    operands = [Quantized(a, Quantization(a_scale, a_zero)), Quantized(b, weights)]
    if c is not None:
        unit = g.Mul(g.Mul(a_scale, alpha), b_scale)
        operands.append(Quantized(c, Quantization(unit, None, axis=-1)))
    multiply = partial(g.Gemm, alpha=alpha, transA=transA, transB=transB)
    if y_scale is None:
        return multiply(*(v.dequantize(g) for v in operands))
    zero = g.const(0, a.type) if y_zero is None else as_scalar(g, y_zero)
    return emit_region(g, multiply, operands, Quantization(as_scalar(g, y_scale), zero))
