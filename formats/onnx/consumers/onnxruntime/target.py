"""What ONNX Runtime's CPU provider accepts: the kernels it lists (``support_table.py``).

It casts around kernels that it has of float32 and not of float16. Operators of its own domain and
of ``ai.onnx.ml`` are left to it.
"""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType
from serde.legalize.target import Target

from ..support_table import without_types
from . import legalizations
from .support_table import SUPPORTED

OPSET = 21  # the opset of the table
# Below opset 18 there is no kernel for Pad of bfloat16.
SUPPORTS = without_types(SUPPORTED, ["Pad"], frozenset({DType.BFLOAT16}))
ONNXRUNTIME = Target(
    name="onnxruntime",
    source="measured",
    opset=OPSET,
    opsets=range(16, 22),
    supports=SUPPORTS,
    lacks=legalizations.LACKS,
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    domains=frozenset({"ai.onnx.ml", "com.microsoft"}),
)
