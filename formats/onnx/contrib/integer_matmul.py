"""Products of integer matrices, scaled to real numbers or quantized again."""

from __future__ import annotations

from typing import Any

from serde.decompositions.expressions import cast
from serde.ir.graph import DType, Value

from .quantized import quantize
from .table import as_scalar, is_one_element, reads


def apply_scale(g: Any, total: Value, scale: Value, bias: Value | None = None) -> Value:
    """Sums of products (int32) times their scale, plus a bias."""
    found = g.Mul(cast(g, total, scale.type), scale)
    return found if bias is None else g.Add(found, bias)  # type: ignore[no-any-return]


def align_columns(g: Any, x: Value) -> Value:
    """A scale or a zero point of the right operand: one number, or one for each column."""
    return as_scalar(g, x) if is_one_element(x) else x


@reads("MatMulIntegerToFloat")
def read_matmul_integer_to_float(
    g: Any, a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value | None = None,
    b_zero: Value | None = None, bias: Value | None = None,
) -> Value:  # fmt: skip
    a_zero = None if a_zero is None else as_scalar(g, a_zero)
    total = g.MatMulInteger(a, b, a_zero, None if b_zero is None else align_columns(g, b_zero))
    return apply_scale(g, total, g.Mul(as_scalar(g, a_scale), align_columns(g, b_scale)), bias)


@reads("DynamicQuantizeMatMul")
def read_dynamic_quantize_matmul(
    g: Any, a: Value, b: Value, b_scale: Value, b_zero: Value | None = None,
    bias: Value | None = None,
) -> Value:  # fmt: skip
    integers, scale, zero = g.DynamicQuantizeLinear(a, outputs=3)
    return read_matmul_integer_to_float(g, integers, b, scale, b_scale, zero, b_zero, bias)  # type: ignore[no-any-return]


@reads("MatMulInteger16")
def read_matmul_integer16(g: Any, a: Value, b: Value) -> Value:
    is_signed = "i" in (a.type.kind, b.type.kind)
    dtype = DType.INT32 if is_signed else DType.UINT32
    return g.MatMul(cast(g, a, dtype), cast(g, b, dtype))  # type: ignore[no-any-return]


@reads("QGemm")
def read_qgemm(
    g: Any, a: Value, a_scale: Value, a_zero: Value, b: Value, b_scale: Value, b_zero: Value,
    c: Value | None = None, y_scale: Value | None = None, y_zero: Value | None = None,
    *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
) -> Value:  # fmt: skip
    a, b = (g.Transpose(v, perm=(1, 0)) if t else v for v, t in ((a, transA), (b, transB)))
    total = g.MatMulInteger(a, b, as_scalar(g, a_zero), align_columns(g, b_zero))
    total = total if c is None else g.Add(total, c)
    scale = g.Mul(g.Mul(as_scalar(g, a_scale), alpha), align_columns(g, b_scale))
    if y_scale is None:
        return apply_scale(g, total, scale)
    real = apply_scale(g, total, g.Div(scale, as_scalar(g, y_scale)))
    dtype = a.type if y_zero is None else y_zero.type
    return quantize(g, real, g.const(1.0, DType.FLOAT32), y_zero, dtype)
