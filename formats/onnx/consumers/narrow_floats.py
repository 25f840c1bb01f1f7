"""float16 and bfloat16 in consumers that compute in float32: weights that become it again."""

from __future__ import annotations

from serde.ir.graph import DType, Node, Value
from serde.passes.single_precision import NARROW, widen_tensor

HINTS = {
    DType.FLOAT16: ": leave out --fp16, or give --fp32 for a model of it",
    DType.BFLOAT16: ": give --fp32",
}


def is_weight_in_fewer_bits(value: Value | None) -> bool:
    """Whether a value is a constant of float16 or bfloat16."""
    return value is not None and value.tensor is not None and value.dtype in NARROW


def restores_weight(node: Node) -> bool:
    """Whether a node makes float32 of a weight in fewer bits."""
    is_cast = node.op == "Cast" and node.outputs[0].dtype is DType.FLOAT32
    return is_cast and is_weight_in_fewer_bits(node.inputs[0])


def widen_weight(g, x: Value) -> Value:
    """A constant in float32, computed when it is written."""
    assert x.tensor is not None
    return g.const(widen_tensor(x.tensor), name="weight")  # type: ignore[no-any-return]


def describe_lacking(who: str, dtype: DType) -> str:
    """That a consumer lacks an element type, and what helps."""
    return f"{who} has no {dtype.value} elements{HINTS.get(dtype, '')}"
