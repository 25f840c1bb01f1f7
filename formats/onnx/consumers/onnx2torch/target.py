"""What onnx2torch accepts; its operators and element types are measured (``support_table.py``)."""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.ir.graph import BYTES, DType
from serde.legalize.forms.form import Form, join_forms, require_constants
from serde.legalize.forms.pytorch import WINDOWS
from serde.legalize.target import Target, TypeConstraints

from ..illegal_forms import OPEN_PADS
from ..narrow_floats import find_other_type
from ..support_table import EMULATED, UNMEASURED, without_types
from . import legalizations
from .support_table import SUPPORTED

OPSET = 17  # the opset it was measured at, the newest that it has most operators of
LACKING = frozenset({DType(f"uint{bits}") for bits in (16, 32, 64)} | {DType.BFLOAT16})
WRONG = frozenset({"EyeLike"})  # onnx2torch fails where a diagonal lies outside
# Which of their element types are right is up to rules, and what node tests leave out.
UNTESTED: dict[str, TypeConstraints] = {op: {} for op in "Clip PRelu Pow Resize Shape TopK".split()}
# There are no kernels of bytes for some ranks.
MEASURED = without_types(SUPPORTED, ["MaxPool"], BYTES)
MEASURED = without_types(MEASURED, ["ReduceSumSquare"], frozenset({DType.INT32}))  # gives int64
SUPPORTS = {op: types for op, types in MEASURED.items() if op not in WRONG} | UNTESTED


AXES = Form("other than one to three axes of windows", lambda call: not 2 < call.x.rank < 6,
            advice="Reshape the tensor")  # fmt: skip
TYPES = frozenset(DType) - LACKING - EMULATED
# PyTorch has no arithmetic of unsigned integers of 16 bits and more.
CAST = UNMEASURED._replace(has=lambda call: find_other_type(call, TYPES))
REFUSED = {
    "AveragePool": [AXES, OPEN_PADS],
    "Cast": [CAST],
    "Conv": [*require_constants("W", "B"), AXES, OPEN_PADS],
    "ConvTranspose": [*require_constants("W", "B"), AXES, OPEN_PADS],
    "MaxPool": [AXES, OPEN_PADS],
    "Squeeze": require_constants("axes"),
    "Unsqueeze": require_constants("axes"),
}
ONNX2TORCH = Target(
    name="onnx2torch",
    source="measured",
    opset=OPSET,
    opsets=range(13, 18),
    supports=SUPPORTS,
    lacks=join_forms(WINDOWS, legalizations.LACKS, REFUSED),
    legalizations=add_decompositions(legalizations.legalize, SUPPORTED),
    control_flow=False,
    emulated=EMULATED,
    sequences=False,
)
