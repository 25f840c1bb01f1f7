"""What OpenVINO's processor plug-in accepts.

Its operators and element types are measured (``support_table.py``). It computes float64 as float32
and int64 as int32.
"""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.legalize.target import Target, TypeConstraints

from ..support_table import unmeasured_type
from . import legalizations
from .support_table import SUPPORTED

OPSET = 17  # the opset it was measured at
# What the node tests of one operator leave out; networks with named sizes have them.
UNTESTED: dict[str, TypeConstraints] = {op: {} for op in "If Loop Scan Shape Size".split()}

# Right in some forms only: OpenVINO ignores the axes of reductions and the axis of DFT, and cannot
# load losses of more than two axes.
WRONG = frozenset(
    "DFT NegativeLogLikelihoodLoss ReduceL1 ReduceLogSum ReduceLogSumExp SoftmaxCrossEntropyLoss"
    .split()
)  # fmt: skip
SUPPORTS = {op: types for op, types in SUPPORTED.items() if op not in WRONG} | UNTESTED
OPENVINO = Target(
    name="openvino",
    opset=OPSET,
    supports=SUPPORTS,
    illegal={"Cast": [unmeasured_type]},
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    sequences=False,
)
