"""float16 and bfloat16 in consumers that compute in float32: weights that become it again."""

from __future__ import annotations

from collections.abc import Container

from serde.ir.graph import DType, Value
from serde.legalize.forms.form import Call
from serde.passes.single_precision import NARROW, make_float32

HINTS = {
    DType.FLOAT16: ". Leave out --fp16, or give --fp32 for a model of it",
    DType.BFLOAT16: ". Give --fp32",
    DType.FLOAT64: ". Give --fp32",
}


def is_weight_in_fewer_bits(value: Value | None) -> bool:
    """Whether a value is a constant of float16 or bfloat16."""
    return value is not None and value.tensor is not None and value.dtype in NARROW


def restores_weight(call: Call) -> bool:
    """Whether it makes float32 of a weight in fewer bits."""
    is_cast = call.op == "Cast" and any(v.dtype is DType.FLOAT32 for v in call.results)
    return is_cast and is_weight_in_fewer_bits(call.inputs[0])


def find_other_type(call: Call, types: Container[DType]) -> bool | str:
    """An element type that is not among some; none where a weight becomes float32."""
    others = (v.dtype for v in call.values if v.dtype is not None and v.dtype not in types)
    return next((f"{d.value}{HINTS.get(d, '')}" for d in others), False)


def widen_weight(g, x: Value) -> Value:
    """A constant in float32, computed when it is written."""
    assert x.tensor is not None
    return g.const(make_float32(x.tensor), name="weight")  # type: ignore[no-any-return]


def describe_lacking(who: str, dtype: DType) -> str:
    """That a consumer lacks an element type, and what helps."""
    return f"{who} has no {dtype.value} elements{HINTS.get(dtype, '')}"
