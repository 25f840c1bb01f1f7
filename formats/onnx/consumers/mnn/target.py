"""What MNN accepts; its operators are measured (``support_table.py``), in float32 and int32."""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType, Node
from serde.legalize.target import IllegalForm, Target, TypeConstraints

from ..illegal_forms import check_suppressed, require_constants, require_int32, require_known_shape
from ..narrow_floats import describe_lacking, restores_weight
from ..support_table import EMULATED
from . import legalizations
from .support_table import SUPPORTED

OPSET = 17  # the opset it was measured at
# It computes with these: float16 and float64 become float32, integers and booleans int32.
TYPES = frozenset({DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL})
WRONG = frozenset(  # in some form at least, or lossy
    """
    DequantizeLinear Det Einsum EyeLike GridSample LpNormalization MaxUnpool
    MeanVarianceNormalization NegativeLogLikelihoodLoss QuantizeLinear RoiAlign Round STFT Shrink
    SoftmaxCrossEntropyLoss Unique GRU LSTM RNN OneHot Less Mean Sum GlobalMaxPool
    GlobalAveragePool GlobalLpPool LpPool Erf ReverseSequence BitShift
    """.split()
)
ONLY_FLOATS = frozenset("ArgMax ArgMin Gemm MatMul ReduceProd Sign".split())
UNTESTED: dict[str, TypeConstraints] = {"Pow": {}, "Shape": {}}  # up to a rule; in no test alone
COUNTS = frozenset({DType.FLOAT32, DType.INT32, DType.INT64})
REMAINDERS: dict[str, TypeConstraints] = {"Mod": {"T": COUNTS}}  # of floats up to a rule


def _types(op: str) -> TypeConstraints:
    legal = frozenset({DType.FLOAT32}) if op in ONLY_FLOATS else TYPES
    return {tie: types & legal for tie, types in SUPPORTED[op].items()}


SUPPORTS = {op: _types(op) for op in SUPPORTED if op not in WRONG} | UNTESTED | REMAINDERS


def check_elements(node: Node) -> str | None:
    """Any: MNN reads memory that is not there."""
    values = (v for v in (*node.inputs, *node.outputs) if v is not None and v.shape is not None)
    if any(0 in v.shape for v in values):
        return "MNN has no tensors without elements"
    return None


def check_types(node: Node) -> str | None:
    """Any: MNN has other element types on its way in and out only, and weights of fewer bits."""
    if restores_weight(node):
        return None
    types = [v.dtype for v in (*node.inputs, *node.outputs) if v is not None]
    wrong = (d for d in types if d is not None and d not in TYPES)
    return next((describe_lacking("MNN", d) for d in wrong), None)


FORMS: dict[str, list[IllegalForm]] = {
    "Slice": [require_constants("MNN", 3)],
    "NonMaxSuppression": [check_suppressed("MNN")],
    "Reshape": [require_known_shape("MNN")],
    "Squeeze": [require_constants("MNN", 1)],
    "Unsqueeze": [require_constants("MNN", 1)],
}
WIDE = require_int32("MNN")
MNN = Target(
    name="mnn",
    opset=OPSET,
    opsets=range(13, 18),
    supports=SUPPORTS,
    illegal={op: [*FORMS.get(op, ()), check_types, check_elements, WIDE] for op in SUPPORTS},
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    control_flow=False,
    emulated=EMULATED | {DType.INT8, DType.UINT8, DType.INT16},
    sequences=False,
)
