"""What tract accepts; its operators and element types are measured (``support_table.py``)."""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType, Node
from serde.legalize.target import IllegalForm, Target, TypeConstraints

from ..illegal_forms import require_constants, require_int32
from ..support_table import EMULATED, unmeasured_type, without_types
from . import legalizations
from .support_table import SUPPORTED

OPSET = 21  # the opset it was measured at
# What the node tests of one operator leave out.
UNTESTED: dict[str, TypeConstraints] = {"Shape": {}}
BYTES = frozenset({DType.INT8, DType.UINT8})  # it cuts off what overflows
SUPPORTS = without_types(SUPPORTED, ["Mul"], BYTES) | UNTESTED


def check_training(node: Node) -> str | None:
    """BatchNormalization and Dropout: tract has them for inference."""
    if node.op == "Dropout" and len(node.inputs) > 2 and node.inputs[2] is not None:
        return "tract has Dropout for inference only"
    return f"tract has {node.op} for inference only" if node.attrs.get("training_mode") else None


def check_square(node: Node) -> str | None:
    """Mul: tract makes a square of a tensor times itself, and has squares of floats only."""
    a, b = node.inputs
    is_square = a is not None and a is b and a.dtype is not None and a.dtype.kind != "f"
    return "tract has no squares of integers" if is_square else None


def check_sizes(node: Node) -> str | None:
    """Expand and Slice: shapes and bounds have to follow from the sizes of tensors."""
    result = node.outputs[0].shape
    follows = result is not None and None not in result
    if follows or all(v is None or v.tensor is not None for v in node.inputs[1:]):
        return None
    return f"tract has no {node.op} to a size that depends on data"


def check_symbols(node: Node) -> str | None:
    """Shape: tract returns a symbol for a size that has no number."""
    return "tract returns symbols for sizes by name: give numbers (--static, --input)"


FORMS: dict[str, list[IllegalForm]] = {
    "BatchNormalization": [check_training],
    "Cast": [unmeasured_type],
    "Dropout": [check_training],
    "Expand": [check_sizes],
    "Mul": [check_square],
    "Pad": [require_constants("tract", 1)],
    "Slice": [check_sizes],
    "Squeeze": [require_constants("tract", 1)],
    "Tile": [check_sizes],
    "Unsqueeze": [require_constants("tract", 1)],
}
ARITHMETIC = frozenset("Add Div Mod Mul Sub Where".split())  # which tract does in sizes
WIDE_CONSTANTS = require_int32("tract")
TRACT = Target(
    name="tract",
    opset=OPSET,
    supports=SUPPORTS,
    illegal={**FORMS, **{op: [*FORMS.get(op, ()), WIDE_CONSTANTS] for op in ARITHMETIC}},
    illegal_results={"Shape": [check_symbols]},
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    control_flow=False,
    emulated=EMULATED,
    sequences=False,
)
