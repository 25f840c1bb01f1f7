"""The interleaved products of GluonNLP's attention, of integers, as oneDNN has them."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value

from ...rules import reads
from ..attention import join_heads, read_selfatt_qk, read_selfatt_valatt, select_heads
from .integer_matmul import to_unsigned
from .layers import Calibration, compute_inverse_scale, has_range, make_range, round_to_type


@reads("_sg_mkldnn_selfatt_qk", ignore=("layers",))
def read_fused_scores(
    g, qkv, low=None, high=None, *, heads: int, quantized=False, enable_float_output=False,
    min_calib_range: Calibration = None, max_calib_range: Calibration = None,
):  # fmt: skip
    if not quantized:
        return read_selfatt_qk(g, qkv, heads=heads)
    x, zero = to_unsigned(g, qkv)
    q, k = (select_heads(g, x, heads, 3, at) for at in (0, 1))
    unit = compute_inverse_scale(g, qkv.type, low, high)
    units = g.cast(g.shape_from([g.size_of(q, 2)]), DType.FLOAT32)
    y = g.MatMulInteger(q, g.Transpose(k, perm=(0, 2, 1)), zero, zero)
    factor = g.Div(g.Div(g.Div(1.0, unit), unit), g.Sqrt(units))
    return rescale_result(g, y, factor, enable_float_output, min_calib_range, max_calib_range)


@reads("_sg_mkldnn_selfatt_valatt", ignore=("layers",))
def read_fused_sums(
    g, qkv, attention, low=None, high=None, least=None, most=None, *, heads: int, quantized=False,
    enable_float_output=False, min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    if not quantized:
        return read_selfatt_valatt(g, qkv, attention, heads=heads)
    (x, x_zero), (v, v_zero) = to_unsigned(g, attention), to_unsigned(g, qkv)
    y = g.MatMulInteger(x, select_heads(g, v, heads, 3, 2), x_zero, v_zero)
    factor = g.Div(1.0, compute_inverse_scale(g, qkv.type, low, high))
    factor = g.Div(factor, compute_inverse_scale(g, attention.type, least, most))
    y = join_heads(g, y, heads)
    return rescale_result(g, y, factor, enable_float_output, min_calib_range, max_calib_range)


def rescale_result(g, y: Value, factor: Value, floats: bool, low: Calibration, high: Calibration):
    """Products as real numbers, or as int8 of a calibrated range."""
    if floats:
        return g.Mul(g.cast(y, DType.FLOAT32), factor)
    require(has_range(low, high), "integer attention without calibration")
    ends = make_range(g, low, high)
    factor = g.Mul(factor, compute_inverse_scale(g, DType.INT8, *ends))
    return round_to_type(g, g.Mul(g.cast(y, DType.FLOAT32), factor), DType.INT8), *ends
