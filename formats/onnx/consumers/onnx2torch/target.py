"""What onnx2torch accepts; its operators and element types are measured (``support_table.py``)."""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType, Node
from serde.legalize.target import IllegalForm, Target, TypeConstraints

from ..illegal_forms import require_constants
from ..narrow_floats import describe_lacking
from ..support_table import EMULATED, without_types
from . import legalizations
from .support_table import SUPPORTED

OPSET = 17  # the opset it was measured at, the newest that it has most operators of
BYTES = frozenset({DType.INT8, DType.UINT8})  # with no kernels for some ranks
LACKING = frozenset({DType(f"uint{bits}") for bits in (16, 32, 64)} | {DType.BFLOAT16})
WRONG = frozenset({"EyeLike"})  # onnx2torch fails where a diagonal lies outside
# Which of their element types are right is up to rules, and what node tests leave out.
UNTESTED: dict[str, TypeConstraints] = {op: {} for op in "Clip PRelu Pow Resize Shape TopK".split()}
MEASURED = without_types(SUPPORTED, ["MaxPool"], BYTES)
MEASURED = without_types(MEASURED, ["ReduceSumSquare"], frozenset({DType.INT32}))  # gives int64
SUPPORTS = {op: types for op, types in MEASURED.items() if op not in WRONG} | UNTESTED


def check_types(node: Node) -> str | None:
    """Cast: PyTorch has no arithmetic of unsigned integers of 16 bits and more."""
    types = [v.dtype for v in (*node.inputs, *node.outputs) if v is not None]
    wrong = (d for d in types if d is not None and d in LACKING | EMULATED)
    return next((describe_lacking("onnx2torch", d) for d in wrong), None)


def check_window(node: Node) -> str | None:
    """Conv and pools: one to three axes, whose pads are numbers."""
    x = node.inputs[0]
    if x is not None and x.shape is not None and not 2 < len(x.shape) < 6:
        return f"onnx2torch has no {node.op} over {len(x.shape) - 2} axes"
    pads = str(node.attrs.get("auto_pad", "NOTSET"))
    if pads.startswith("SAME") or "output_shape" in node.attrs:
        return "pads that depend on sizes by name: give numbers (--static, --input)"
    return None


FORMS: dict[str, list[IllegalForm]] = {
    "AveragePool": [check_window],
    "Cast": [check_types],
    "Conv": [require_constants("onnx2torch", 1, 2), check_window],
    "ConvTranspose": [require_constants("onnx2torch", 1, 2), check_window],
    "MaxPool": [check_window],
    "Squeeze": [require_constants("onnx2torch", 1)],
    "Unsqueeze": [require_constants("onnx2torch", 1)],
}
ONNX2TORCH = Target(
    name="onnx2torch",
    opset=OPSET,
    opsets=range(13, 18),
    supports=SUPPORTS,
    illegal=FORMS,
    legalizations=add_decompositions(legalizations.legalize, SUPPORTED),
    control_flow=False,
    emulated=EMULATED,
    sequences=False,
)
