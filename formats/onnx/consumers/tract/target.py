"""What tract accepts; its operators and element types are measured (``support_table.py``)."""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.ir.graph import Node
from serde.legalize.target import Target, TypeConstraints

from ..support_table import unmeasured_type
from . import legalizations
from .support_table import SUPPORTED

OPSET = 17  # the opset it was measured at
# What the node tests of one operator leave out.
UNTESTED: dict[str, TypeConstraints] = {"Shape": {}}
SUPPORTS = SUPPORTED | UNTESTED


def check_training(node: Node) -> str | None:
    """BatchNormalization and Dropout: tract has them for inference."""
    if node.op == "Dropout" and len(node.inputs) > 2 and node.inputs[2] is not None:
        return "tract has Dropout for inference only"
    return f"tract has {node.op} for inference only" if node.attrs.get("training_mode") else None


TRACT = Target(
    name="tract",
    opset=OPSET,
    supports=SUPPORTS,
    illegal={
        "BatchNormalization": [check_training],
        "Cast": [unmeasured_type],
        "Dropout": [check_training],
    },
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    control_flow=False,
    sequences=False,
)
