"""What ncnn accepts of what pnnx converts; its operators are measured (``support_table.py``)."""

from __future__ import annotations

import numpy as np

from serde.decompositions.table import add_decompositions
from serde.ir.graph import BYTES, DType
from serde.legalize.forms.form import Call, Form, Lacks, join_forms, require_constants
from serde.legalize.target import Target, TypeConstraints

from ..illegal_forms import NO_ELEMENTS
from ..support_table import EMULATED, UNMEASURED
from . import legalizations
from .reductions import MOST_AXES
from .support_table import SUPPORTED
from .windows import WINDOWS

OPSET = 17  # the opset it was measured at
FLOAT = frozenset({DType.FLOAT32})
PARAMETERS = frozenset({DType.INT64})  # of operators: shapes, axes and places, all of them constant
WRONG = frozenset(  # in some form at least
    "Cast Einsum GridSample Pow SpaceToDepth Sum".split()
)
LACKED_FORMS = "Max Min Pow PRelu".split()  # right in some form
# Operators of which there are some over volumes, whose samples are kept apart.
OF_VOLUMES = frozenset(
    "Abs Add AveragePool BatchNormalization Clip Concat Conv ConvTranspose Div Elu Erf Exp "
    "GlobalAveragePool GlobalMaxPool HardSigmoid HardSwish LeakyRelu Log Max MaxPool Min Mul Neg "
    "Pad Relu Reshape Sigmoid Slice Softplus Sqrt Sub Tanh".split()
)


def _types(op: str) -> TypeConstraints:
    return {tie: FLOAT if DType.FLOAT32 in types else PARAMETERS
            for tie, types in SUPPORTED[op].items()}  # fmt: skip


SUPPORTS: dict[str, TypeConstraints] = {op: _types(op) for op in SUPPORTED if op not in WRONG}
SUPPORTS |= {op: {"T": FLOAT} for op in LACKED_FORMS}


def find_type(call: Call) -> bool | str:
    """An element type but float32, and constant parameters of operators in int64."""
    others = (
        v for v in call.values
        if v.dtype not in FLOAT and (v.tensor is None or v.dtype not in PARAMETERS)
    )  # fmt: skip
    return next((v.type.value for v in others), False)


def find_wide(call: Call) -> bool | str:
    """A tensor of more axes than ncnn has, which are four beside the samples."""
    most = MOST_AXES + (call.op in OF_VOLUMES)
    large = (v for v in call.values if v.dtype in FLOAT and len(v.shape or ()) > most)
    return next((f"{v.name!r} has {v.rank}, and {most} is the most" for v in large), False)


def find_infinite(call: Call) -> bool | str:
    """A number that pnnx fails at among its expressions."""
    numbers = (
        v for v in call.inputs
        if v is not None and v.tensor is not None and v.dtype in FLOAT and v.tensor.size == 1
    )  # fmt: skip
    return next((repr(v.name) for v in numbers if not np.isfinite(v.array()).all()), False)


def has_odd_weights(call: Call) -> bool:
    """Whether weights of volumes, or of constants, are computed, or volumes are constants."""
    x, w = call.x, call.inputs[1]
    is_computed = w is not None and w.tensor is None
    is_volume = w is not None and w.rank > MOST_AXES
    is_constant_volume = x.tensor is not None and x.rank > MOST_AXES
    return (is_computed and (is_volume or x.tensor is not None)) or is_constant_volume


def masks_row(call: Call) -> bool:
    """Whether a row is masked wholly, of which ncnn's Softmax makes numbers."""
    masks = (v.array() for v in call.inputs if v is not None and v.tensor is not None and v.rank)
    return any(np.isneginf(a).all(axis=-1).any() for a in masks)


WEIGHTS = Form("weights, or volumes, that are not computed beforehand", has_odd_weights,
               advice="Make the weights constants, and the data an input")  # fmt: skip
LACKS: Lacks = {
    "Add": [Form("a row that is masked wholly", masks_row, advice="Mask by large numbers")],
    "BatchNormalization": require_constants("scale", "B", "input_mean", "input_var"),
    "Clip": require_constants("min", "max"),
    "Conv": [WEIGHTS],
    "ConvTranspose": [WEIGHTS],
    "Expand": require_constants("shape"),
    "InstanceNormalization": require_constants("scale", "B"),
    "LayerNormalization": require_constants("Scale", "B"),
    # pnnx keeps it as an operator that ncnn lacks
    "MatMul": [Form("constants only", lambda call: all(v and v.tensor for v in call.inputs))],
    "PRelu": require_constants("slope"),
    "Pad": require_constants("pads", "constant_value"),
    "ReduceSum": require_constants("axes"),
    "Reshape": require_constants("shape"),
    "Resize": require_constants("roi", "scales", "sizes"),
    "Slice": require_constants("starts", "ends", "axes", "steps"),
    "Squeeze": require_constants("axes"),
    "Unsqueeze": require_constants("axes"),
}
OF_ANY = [
    UNMEASURED._replace(has=find_type), NO_ELEMENTS,
    Form("tensors of more axes", find_wide, advice="Reshape them"),
    Form("infinite numbers", find_infinite, advice="Give large ones"),
]  # fmt: skip
SCALAR = Form("a result without axes", lambda call: any(v.shape == () for v in call.results),
              advice="Reshape the output to one axis")  # fmt: skip
NCNN = Target(
    name="ncnn",
    source="measured",
    opset=OPSET,
    opsets=range(13, 18),
    supports=SUPPORTS,
    title="ncnn",
    lacks=join_forms(WINDOWS, legalizations.LACKS, LACKS, dict.fromkeys(SUPPORTS, OF_ANY)),
    lacks_results=dict.fromkeys(SUPPORTS, (SCALAR,)),
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    control_flow=False,
    emulated=EMULATED | BYTES,
    sequences=False,
    dynamic_shapes=False,
)
