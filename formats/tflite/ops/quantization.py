"""Quantization and its inverse, as ``passes/quantize.py`` finds them."""

from __future__ import annotations

from serde.ir.graph import DType, Value
from serde.legalize.forms.form import Call
from serde.spec.schema import ELEMENT_TYPES
from serde.version_converter.adapters.quantization import emit_dequantize, emit_quantize

from ..target import TfliteBuilder, writes

STEPS = frozenset({DType.INT8, DType.UINT8, DType.INT16})  # what real numbers are quantized to
WEIGHTS = STEPS | {DType.INT32}


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
    return is_plain and not is_shifted and scale.dtype is DType.FLOAT32


def is_quantized_weight(call: Call) -> bool:
    """Whether a constant is dequantized, by one scale or one for each slice along an axis."""
    return (
        call.x.tensor is not None and call.x.dtype in WEIGHTS and has_plain_scales(call)
        and call.inputs[1].rank < 2
    )  # fmt: skip


def is_quantized(call: Call) -> bool:
    """Whether numbers are quantized or dequantized by one scale."""
    zero = call.operand(2)
    dtype = call.x.dtype
    if call.op == "QuantizeLinear":
        dtype = DType.UINT8 if zero is None else zero.dtype
        if call.x.dtype is not DType.FLOAT32:
            return False
    is_single = call.inputs[1].static_shape in ((), (1,))
    return has_plain_scales(call) and is_single and dtype in STEPS


def compute_dequantized(g, call: Call):  # type: ignore[no-untyped-def]
    """The real numbers, computed."""
    x, scale, zero = (*call.inputs, None)[:3]
    axis, block_size = call.attrs["axis"], call.attrs["block_size"]
    return emit_dequantize(g, x, scale, zero, scale.type, axis % max(x.rank, 1), block_size)


def compute_quantized(g, call: Call):  # type: ignore[no-untyped-def]
    """The integers, computed and rounded as the standard has it."""
    x, scale, zero = (*call.inputs, None)[:3]
    named = call.attrs.get("output_dtype")
    dtype = ELEMENT_TYPES[named] if named else DType.UINT8 if zero is None else zero.type
    axis, block_size = call.attrs["axis"] % max(x.rank, 1), call.attrs["block_size"]
    return emit_quantize(g, x, scale, zero, dtype, axis, block_size)
