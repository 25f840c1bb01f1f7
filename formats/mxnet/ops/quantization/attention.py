"""The interleaved products of GluonNLP's attention, of integers, as oneDNN has them."""

from __future__ import annotations

from serde.decompositions.expressions import cast, shape_from, size_of
from serde.errors import require
from serde.ir.graph import DType, Value

from ...rules import reads
from ..attention import heads_of, joined, read_selfatt_qk, read_selfatt_valatt
from .integer_matmul import unsigned
from .layers import Calibration, both, calibrated, rounded, unit_of


@reads("_sg_mkldnn_selfatt_qk", ignore=("layers",))
def read_fused_scores(
    g, qkv, low=None, high=None, *, heads: int, quantized=False, enable_float_output=False,
    min_calib_range: Calibration = None, max_calib_range: Calibration = None,
):  # fmt: skip
    if not quantized:
        return read_selfatt_qk(g, qkv, heads=heads)
    x, zero = unsigned(g, qkv)
    q, k = heads_of(g, x, heads, 3, 0), heads_of(g, qkv, heads, 3, 1)
    unit = unit_of(g, qkv.type, low, high)
    units = cast(g, shape_from(g, [size_of(g, q, 2)]), DType.FLOAT32)
    y = g.MatMulInteger(q, g.Transpose(k, perm=(0, 2, 1)), zero)
    factor = g.Div(g.Div(g.Div(1.0, unit), unit), g.Sqrt(units))
    return result(g, y, factor, enable_float_output, min_calib_range, max_calib_range)


@reads("_sg_mkldnn_selfatt_valatt", ignore=("layers",))
def read_fused_sums(
    g, qkv, attention, low=None, high=None, least=None, most=None, *, heads: int, quantized=False,
    enable_float_output=False, min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    if not quantized:
        return read_selfatt_valatt(g, qkv, attention, heads=heads)
    x, zero = unsigned(g, attention)
    y = g.MatMulInteger(x, heads_of(g, qkv, heads, 3, 2), zero)
    factor = g.Div(1.0, unit_of(g, qkv.type, low, high))
    factor = g.Div(factor, unit_of(g, attention.type, least, most))
    y = joined(g, y, heads)
    return result(g, y, factor, enable_float_output, min_calib_range, max_calib_range)


def result(g, y: Value, factor: Value, floats: bool, low: Calibration, high: Calibration):
    """Products as real numbers, or as int8 of a calibrated range."""
    if floats:
        return g.Mul(cast(g, y, DType.FLOAT32), factor)
    require(both(low, high), "integer attention without calibration")
    ends = calibrated(g, low, high)
    factor = g.Mul(factor, unit_of(g, DType.INT8, *ends))
    return rounded(g, g.Mul(cast(g, y, DType.FLOAT32), factor), DType.INT8), *ends
