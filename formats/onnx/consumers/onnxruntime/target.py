"""What ONNX Runtime's CPU provider accepts: the kernels it lists (``support_table.py``).

It casts around kernels that it has of float32 and not of float16. Operators of its own domain and
of ``ai.onnx.ml`` are left to it.
"""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.legalize.target import Target

from . import legalizations
from .support_table import SUPPORTED

OPSET = 21  # the opset of the table
ONNXRUNTIME = Target(
    name="onnxruntime",
    opset=OPSET,
    supports=SUPPORTED,
    legalizations=add_decompositions(legalizations.legalize, SUPPORTED),
    domains=frozenset({"ai.onnx.ml", "com.microsoft"}),
)
