"""What OpenVINO's processor plug-in accepts.

Its operators and element types are measured (``support_table.py``). It computes float64 as float32
and int64 as int32.
"""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType, Node
from serde.legalize.target import IllegalForm, Target, TypeConstraints
from serde.spec.traits import REDUCES

from ..illegal_forms import (
    check_suppressed,
    check_transposed_pads,
    require_constants,
    require_int32,
    require_known_axes,
    require_known_shape,
)
from ..narrow_floats import restores_weight
from ..support_table import EMULATED, require_measured_types, without_types
from . import legalizations
from .support_table import SUPPORTED

OPSET = 21  # the opset it was measured at
# What the node tests of one operator leave out; networks with named sizes have them.
UNTESTED: dict[str, TypeConstraints] = {op: {} for op in "If Loop Scan Shape Size".split()}

NARROW = frozenset({DType.BFLOAT16, DType.FLOAT16, DType.FLOAT32})

# Right in some forms only: OpenVINO ignores the axis of DFT, and loads losses of two axes only.
WRONG = frozenset("DFT GlobalLpPool NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss".split())
BYTES = frozenset({DType.INT8, DType.UINT8})  # it cuts off what overflows
MEASURED = without_types(SUPPORTED, ("Add", "Einsum", "Mul", "Sub"), BYTES)
SUPPORTS = {op: types for op, types in MEASURED.items() if op not in WRONG} | UNTESTED


def check_float64(node: Node) -> str | None:
    """Cast: a result of float64 may be infinite."""
    (x,), (y,) = node.inputs, node.outputs
    if x is None or x.dtype not in NARROW or y.dtype is not DType.FLOAT64:
        return None
    return legalizations.AS_FLOAT32


def check_nesting(node: Node) -> str | None:
    """Scan: OpenVINO has none within another."""
    is_nested = any(n.op == "Scan" for body in node.graphs() for n in body.all_nodes())
    return "OpenVINO has no Scan within a Scan" if is_nested else None


def check_branches(node: Node) -> str | None:
    """If: OpenVINO has no tensors whose rank depends on the branch."""
    results = zip(*(body.outputs for body in node.graphs()), strict=True)
    ranks = [{None if v.shape is None else len(v.shape) for v in each} for each in results]
    reason = "OpenVINO has branches of one rank only: give numbers for sizes (--static, --input)"
    return reason if any(len(each) > 1 for each in ranks) else None


def check_elements(node: Node) -> str | None:
    """Any: OpenVINO takes a constant without elements for a scalar; as sizes or axes it is none."""
    if node.op == "Concat":
        return None
    data = (v for at, v in enumerate(node.inputs) if (node.op, at) not in LISTS)
    is_empty = any(v is not None and v.tensor is not None and not v.tensor.size for v in data)
    return "OpenVINO takes a constant without elements for a scalar" if is_empty else None


def check_channels(node: Node) -> str | None:
    """Conv: OpenVINO takes a number of channels only."""
    w = node.inputs[1]
    is_known = w is None or w.shape is None or all(isinstance(n, int) for n in w.shape[:2])
    return None if is_known else "OpenVINO has convolutions of static channels only"


def check_flags(node: Node) -> str | None:
    """Compress: OpenVINO ends where no element has a flag, or none that is set."""
    flags = node.inputs[1]
    is_empty = flags is not None and (
        flags.shape == (0,) or (flags.tensor is not None and not flags.array().any())
    )
    return "OpenVINO has no Compress by no flags" if is_empty else None


def check_unique(node: Node) -> str | None:
    """Unique: OpenVINO fails to load one of constants."""
    x = node.inputs[0]
    return "OpenVINO has no Unique of constants" if x is not None and x.tensor is not None else None


def check_count(node: Node) -> str | None:
    """TopK: OpenVINO returns other axes than those that are not empty."""
    k = node.inputs[1]
    is_none = k is not None and k.tensor is not None and not k.array().all()
    return "OpenVINO has no TopK of no elements" if is_none else None


def check_indices(node: Node) -> str | None:
    """GatherElements: OpenVINO fails where there is more along the other axes than is looked up."""
    x, indices = node.inputs[:2]
    if x is None or indices is None or x.shape is None or indices.shape is None:
        return None
    axis = int(str(node.attrs.get("axis", 0))) % x.rank
    pairs = enumerate(zip(x.shape, indices.shape, strict=True))
    is_equal = all(n == m for at, (n, m) in pairs if at != axis)
    return None if is_equal else "OpenVINO has indices of all elements along the other axes only"


MEASURED_TYPES = require_measured_types("OpenVINO")


def check_cast(node: Node) -> str | None:
    """Cast: between types that are measured, and of weights in bfloat16."""
    return None if restores_weight(node) else MEASURED_TYPES(node)


# Operands that list sizes, axes or bounds, by operator and place.
LISTS = frozenset({
    ("ConstantOfShape", 0), ("Expand", 1), ("Pad", 1), ("Pad", 3), ("Reshape", 1), ("Resize", 1),
    ("Resize", 2), ("Resize", 3), ("Slice", 1), ("Slice", 2), ("Slice", 3), ("Slice", 4),
    ("Squeeze", 1), ("Tile", 1), ("Unsqueeze", 1), *((op, 1) for op in REDUCES),
})  # fmt: skip
FORMS: dict[str, list[IllegalForm]] = {
    "Cast": [check_cast],
    "Compress": [check_flags],
    "Conv": [check_channels],
    "ConvTranspose": [check_channels, check_transposed_pads],
    "GatherElements": [check_indices],
    "Pad": [require_constants("OpenVINO", 2)],
    "Reshape": [require_known_shape("OpenVINO")],
    "If": [check_branches],
    "Scan": [check_nesting],
    "NonMaxSuppression": [check_suppressed("OpenVINO")],
    "Slice": [require_constants("OpenVINO", 3)],
    "Squeeze": [require_known_axes("OpenVINO"), require_constants("OpenVINO", 1)],
    "TopK": [check_count],
    "Unique": [check_unique],
    **{op: [require_constants("OpenVINO", 1)] for op in REDUCES},
    "Unsqueeze": [require_constants("OpenVINO", 1)],
}
OF_ANY = (check_elements, require_int32("OpenVINO"))
OPENVINO = Target(
    name="openvino",
    opset=OPSET,
    opsets=range(13, 23),
    supports=SUPPORTS,
    illegal={op: [*FORMS.get(op, ()), *OF_ANY] for op in {*SUPPORTS, *FORMS}},
    illegal_results={"Cast": [check_float64]},
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    emulated=EMULATED,
    sequences=False,
)
