"""What TensorRT accepts, by its documentation: it cannot be measured without a GPU.

``serde/backends/descriptions/tensorrt.toml`` says it. TensorRT casts float64 to float32, and has
int8 for quantized tensors with zero point 0 only.
"""

from __future__ import annotations

from dataclasses import replace

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType
from serde.legalize.forms.form import Call, Form, join_forms
from serde.legalize.target import TypeConstraints
from serde.passes.signed_integers import MOVING
from serde.spec import schema

from . import legalizations
from .legalizations import DOCUMENTED

OPSET = 17
MOST_CHOSEN = 3840  # elements that TopK can find


def widen(op: str, types: TypeConstraints) -> TypeConstraints:
    """The element types with float64 beside float32, and int8 where elements are moved."""
    more = {t: of | {DType.FLOAT64} if DType.FLOAT32 in of else of for t, of in types.items()}
    if op in MOVING:
        tie = schema.operator(op).inputs[0].tie
        more[tie] = more.get(tie, frozenset()) | {DType.INT8}
    return more


def finds_many(call: Call) -> bool:
    """Whether a TopK finds too many elements."""
    k = call.operand(1)
    return k is not None and k.tensor is not None and k.array().item() >= MOST_CHOSEN


MOVED = Form(
    "int8 elements", lambda call: any(v is not None and v.dtype is DType.INT8 for v in call.inputs),
    advice="Quantize its operands and its result by one scale",
)  # fmt: skip
MANY = Form(f"{MOST_CHOSEN} elements or more", finds_many, advice="Find fewer elements")
SUPPORTS = {op: widen(op, types) for op, types in (DOCUMENTED.supports or {}).items()}
SUPPORTS["QuantizeLinear"] = {**SUPPORTS["QuantizeLinear"], "T2": frozenset({DType.INT8})}
TENSORRT = replace(
    DOCUMENTED,
    title="TensorRT",
    opset=OPSET,
    supports=SUPPORTS,
    lacks=join_forms(
        DOCUMENTED.lacks, dict.fromkeys(MOVING & SUPPORTS.keys(), (MOVED,)), {"TopK": (MANY,)}
    ),
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
)
