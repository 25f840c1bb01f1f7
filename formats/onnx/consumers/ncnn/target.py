"""What ncnn accepts of what pnnx converts; its operators are measured (``support_table.py``)."""

from __future__ import annotations

import numpy as np

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType, Node
from serde.legalize.target import IllegalForm, Target, TypeConstraints

from ..illegal_forms import require_constants
from ..support_table import EMULATED
from . import legalizations
from .reductions import MOST_AXES
from .support_table import SUPPORTED

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


def check_types(node: Node) -> str | None:
    """Any: ncnn has float32, and parameters of operators in int64."""
    for value in (*node.inputs, *node.outputs):
        if value is None or value.dtype in FLOAT:
            continue
        if value.tensor is None or value.dtype not in PARAMETERS:
            return f"ncnn has no {node.op} of {value.type.value} elements"
    return None


def check_sizes(node: Node) -> str | None:
    """Any: ncnn has four axes beside the samples, and no tensors without elements."""
    for value in (*node.inputs, *node.outputs):
        if value is None or value.shape is None:
            continue
        if 0 in value.shape:
            return "ncnn has no tensors without elements"
        most = MOST_AXES + (node.op in OF_VOLUMES)
        if value.dtype in FLOAT and len(value.shape) > most:
            return f"ncnn has {node.op} of up to {most} axes, and {value.name!r} has {value.rank}"
    return None


def check_finite(node: Node) -> str | None:
    """Any: pnnx fails at infinities among its expressions."""
    held = [v for v in node.inputs if v is not None and v.tensor is not None and v.dtype in FLOAT]
    if all(
        np.isfinite(v.array()).all() for v in held if v.tensor is not None and v.tensor.size == 1
    ):
        return None
    return f"pnnx takes finite numbers for {node.op} only"


def check_operands(node: Node) -> str | None:
    """MatMul: pnnx keeps one of constants as an operator that ncnn lacks."""
    held = [v for v in node.inputs if v is not None]
    is_constant = bool(held) and all(v.tensor is not None for v in held)
    return "ncnn has no MatMul of constants only" if is_constant else None


def check_scalar(node: Node) -> str | None:
    """Any that computes an output: ncnn has no tensors without axes."""
    is_scalar = any(v.shape == () for v in node.outputs)
    return "ncnn returns one axis for none: reshape the output" if is_scalar else None


def check_weights(node: Node) -> str | None:
    """Conv and ConvTranspose: over volumes, and of constants."""
    w = node.inputs[1]
    is_held = w is None or w.tensor is not None or w.rank <= MOST_AXES
    if not is_held:
        return "ncnn takes constant weights of volumes only"
    x = node.inputs[0]
    if x is None or w is None or x.tensor is None:
        return None
    if x.rank > MOST_AXES:
        return f"ncnn has no {node.op} of constant volumes"
    is_held = w.tensor is not None
    return None if is_held else f"ncnn has no {node.op} of constants by computed weights"


def check_masks(node: Node) -> str | None:
    """Add: of what is masked wholly, ncnn's Softmax makes numbers."""
    held = (v.array() for v in node.inputs if v is not None and v.tensor is not None and v.rank)
    if any(np.isneginf(a).all(axis=-1).any() for a in held):
        return "ncnn has no Softmax of a row that is masked wholly"
    return None


FORMS: dict[str, list[IllegalForm]] = {
    "Add": [check_masks],
    "BatchNormalization": [require_constants("ncnn", 1, 2, 3, 4)],
    "Clip": [require_constants("ncnn", 1, 2)],
    "Conv": [check_weights],
    "ConvTranspose": [check_weights],
    "Expand": [require_constants("ncnn", 1)],
    "InstanceNormalization": [require_constants("ncnn", 1, 2)],
    "LayerNormalization": [require_constants("ncnn", 1, 2)],
    "MatMul": [check_operands],
    "PRelu": [require_constants("ncnn", 1)],
    "Pad": [require_constants("ncnn", 1, 2)],
    "ReduceSum": [require_constants("ncnn", 1)],
    "Reshape": [require_constants("ncnn", 1)],
    "Resize": [require_constants("ncnn", 1, 2, 3)],
    "Slice": [require_constants("ncnn", 1, 2, 3, 4)],
    "Squeeze": [require_constants("ncnn", 1)],
    "Unsqueeze": [require_constants("ncnn", 1)],
}
NCNN = Target(
    name="ncnn",
    opset=OPSET,
    opsets=range(13, 18),
    supports=SUPPORTS,
    illegal={op: [*FORMS.get(op, ()), check_types, check_sizes, check_finite] for op in SUPPORTS},
    illegal_results={op: [check_scalar] for op in SUPPORTS},
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    control_flow=False,
    emulated=EMULATED | {DType.INT8, DType.UINT8},
    sequences=False,
    dynamic_shapes=False,
)
