"""Legalizations for TensorRT: quantization by int8 with zero point 0 and constant scales."""

from __future__ import annotations

from functools import partial

from serde.backends.description import read_description
from serde.errors import require
from serde.ir.graph import EMPTY, DType, Value
from serde.legalize.target import legalization_table
from serde.passes.regions import Quantization, Quantized, emit_region
from serde.passes.signed_integers import MOVING
from serde.version_converter.adapters.quantization import emit_dequantize

legalize = legalization_table("ir → tensorrt")
DOCUMENTED = read_description("tensorrt").target

CONSTANT = "a {} that is not constant: TensorRT takes calibrated models only"


def check_scale(scale: Value, zero: Value | None, dtype: DType) -> None:
    """Refuse what is no quantization by int8 with zero point 0 and a constant scale."""
    require(scale.tensor is not None, CONSTANT.format("scale"))
    require(dtype is DType.INT8, f"quantized as {dtype.value}. Quantize by int8")
    is_zero = zero is None or (zero.tensor is not None and not zero.array().any())
    require(is_zero, "TensorRT has zero point 0 only. Quantize by int8 with zero point 0")


@legalize("QuantizeLinear")
def legalize_quantize(g, x, scale, zero=None, **form):
    """The node as it is, where TensorRT takes it."""
    check_scale(scale, zero, DType.UINT8 if zero is None else zero.type)


@legalize("DequantizeLinear")
def legalize_dequantize(g, x, scale, zero=None, *, axis: int, block_size: int, **form):
    """Constants of other types than int8 as floats."""
    if x.tensor is None or x.type is DType.INT8:
        check_scale(scale, zero, x.type)
        return None
    return emit_dequantize(g, x, scale, zero, scale.type, axis, block_size)


@legalize.for_each(MOVING & (DOCUMENTED.supports or EMPTY).keys())
def move_floats(op, g, *operands, outputs=1, **attrs):
    """Elements moved as floats between the quantization that they came from and another."""
    nodes = [g.producer(v) for v in operands if v is not None and v.dtype is DType.INT8]
    if not nodes or outputs > 1 or any(n is None or n.op != "QuantizeLinear" for n in nodes):
        return None
    scale, zero = nodes[0].inputs[1:3]
    if any(n.inputs[1] is not scale for n in nodes) or scale.rank:
        return None
    form = Quantization(scale, zero)
    parts = [v if v is None or v.dtype is not DType.INT8 else Quantized(v, form) for v in operands]
    return emit_region(g, partial(g[op], **attrs), parts, form)
