"""What MNN accepts; its operators are measured (``support_table.py``), in float32 and int32."""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType
from serde.legalize.forms.form import Call, join_forms, require_constants
from serde.legalize.target import Target, TypeConstraints

from ..illegal_forms import BEYOND_INT32, NO_ELEMENTS, OPEN_SHAPE, SUPPRESSED
from ..narrow_floats import find_other_type, restores_weight
from ..support_table import EMULATED, UNMEASURED
from . import legalizations
from .support_table import SUPPORTED
from .windows import WINDOWS

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


def find_type(call: Call) -> bool | str:
    """Another element type than MNN computes with, but for weights in fewer bits."""
    return not restores_weight(call) and find_other_type(call, TYPES)


LACKS = {
    "Slice": require_constants("axes"),
    "NonMaxSuppression": [SUPPRESSED],
    "Reshape": [OPEN_SHAPE],
    "Squeeze": require_constants("axes"),
    "Unsqueeze": require_constants("axes"),
}
OF_ANY = [UNMEASURED._replace(has=find_type), NO_ELEMENTS, BEYOND_INT32]
MNN = Target(
    name="mnn",
    source="measured",
    opset=OPSET,
    opsets=range(13, 18),
    supports=SUPPORTS,
    lacks=join_forms(WINDOWS, legalizations.LACKS, LACKS, dict.fromkeys(SUPPORTS, OF_ANY)),
    title="MNN",
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    control_flow=False,
    emulated=EMULATED | {DType.INT8, DType.UINT8, DType.INT16},
    sequences=False,
)
