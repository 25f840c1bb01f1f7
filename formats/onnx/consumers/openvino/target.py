"""What OpenVINO's processor plug-in accepts.

Its operators and element types are measured (``support_table.py``). It computes float64 as float32
and int64 as int32.
"""

from __future__ import annotations

from serde.decompositions.table import add_decompositions
from serde.ir.graph import BYTES, DType, Graph
from serde.legalize.forms.form import (
    STATIC,
    Call,
    Form,
    Lacks,
    join_forms,
    require_constants,
    require_sizes,
)
from serde.legalize.target import Target, TypeConstraints
from serde.spec import schema
from serde.spec.traits import REDUCES

from ..illegal_forms import BEYOND_INT32, OPEN_AXES, OPEN_PADS, OPEN_SHAPE, SUPPRESSED
from ..narrow_floats import restores_weight
from ..support_table import EMULATED, UNMEASURED, without_types
from . import legalizations
from .support_table import SUPPORTED
from .windows import WINDOWS

OPSET = 21  # the opset it was measured at
# What the node tests of one operator leave out; networks with named sizes have them.
UNTESTED: dict[str, TypeConstraints] = {op: {} for op in "If Loop Scan Shape Size".split()}

NARROW = frozenset({DType.BFLOAT16, DType.FLOAT16, DType.FLOAT32})

# Right in some forms only: OpenVINO ignores the axis of DFT, and loads losses of two axes only.
WRONG = frozenset("DFT GlobalLpPool NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss".split())
# OpenVINO cuts off bytes that overflow.
MEASURED = without_types(SUPPORTED, ("Add", "Einsum", "Mul", "Sub"), BYTES)
SUPPORTS = {op: types for op, types in MEASURED.items() if op not in WRONG} | UNTESTED


def may_be_infinite(call: Call) -> bool:
    """Whether a Cast makes float64 of what may be infinite."""
    return call.x.dtype in NARROW and any(v.dtype is DType.FLOAT64 for v in call.results)


def nests_scan(call: Call) -> bool:
    """Whether a Scan is within another."""
    bodies = (v for v in call.attrs.values() if isinstance(v, Graph))
    return any(n.op == "Scan" for body in bodies for n in body.all_nodes())


def has_two_ranks(call: Call) -> bool:
    """Whether the rank of a result depends on the branch."""
    bodies = (v for v in call.attrs.values() if isinstance(v, Graph))
    results = zip(*(body.outputs for body in bodies), strict=True)
    return any(len({None if v.shape is None else len(v.shape) for v in each}) > 1
               for each in results)  # fmt: skip


def has_empty_constant(call: Call) -> bool:
    """Whether a constant has no elements, but sizes or axes: OpenVINO takes it for a scalar."""
    sizes = schema.list_sizes(call.op, call.inputs)
    data = (v for v in call.inputs if v not in sizes)
    return call.op != "Concat" and any(
        v is not None and v.tensor is not None and not v.tensor.size for v in data
    )


def has_no_flags(call: Call) -> bool:
    """Whether no element has a flag, or none that is set."""
    flags = call.inputs[1]
    is_unset = flags is not None and flags.tensor is not None and not flags.array().any()
    return is_unset or (flags is not None and flags.shape == (0,))


def takes_none(call: Call) -> bool:
    """Whether a TopK finds no elements: OpenVINO returns other axes."""
    k = call.inputs[1]
    return k is not None and k.tensor is not None and not k.array().all()


def has_more_than_indices(call: Call) -> bool:
    """Whether there is more along the other axes than is looked up."""
    x, indices = call.inputs[:2]
    if x is None or indices is None or x.shape is None or indices.shape is None:
        return False
    axis = int(str(call.attrs.get("axis", 0))) % x.rank
    return any(n != m for at, (n, m) in enumerate(zip(x.shape, indices.shape, strict=True))
               if at != axis)  # fmt: skip


MEASURED_CAST = UNMEASURED._replace(
    has=lambda call: not restores_weight(call) and UNMEASURED.has(call)
)
CHANNELS = require_sizes("W", range(2))
REFUSED: Lacks = {
    "Cast": [MEASURED_CAST],
    "Compress": [Form("no flags, or none that is set", has_no_flags)],
    "Conv": CHANNELS,
    "ConvTranspose": [*CHANNELS, OPEN_PADS],
    "GatherElements": [Form("fewer indices than elements along the other axes",
                            has_more_than_indices, advice="Slice the data before")],
    "Pad": require_constants("constant_value"),
    "Reshape": [OPEN_SHAPE],
    "If": [Form("branches of other ranks", has_two_ranks, advice=STATIC)],
    "Scan": [Form("a Scan within it", nests_scan)],
    "NonMaxSuppression": [SUPPRESSED],
    "Slice": require_constants("axes"),
    "Squeeze": [OPEN_AXES, *require_constants("axes")],
    "TopK": [Form("no elements to find", takes_none)],
    # OpenVINO fails to load it
    "Unique": [Form("a constant", lambda call: call.x.tensor is not None)],
    **{op: require_constants("axes") for op in REDUCES},
    "Unsqueeze": require_constants("axes"),
}  # fmt: skip
OF_ANY = [Form("a constant without elements", has_empty_constant), BEYOND_INT32]
INFINITE = Form("a result of float64, which it computes in float32", may_be_infinite,
                advice="Use float32")  # fmt: skip
OPENVINO = Target(
    name="openvino",
    source="measured",
    opset=OPSET,
    opsets=range(13, 23),
    supports=SUPPORTS,
    title="OpenVINO",
    lacks=join_forms(
        WINDOWS, legalizations.LACKS, REFUSED, dict.fromkeys({*SUPPORTS, *REFUSED}, OF_ANY)
    ),
    lacks_results={"Cast": [INFINITE]},
    legalizations=add_decompositions(legalizations.legalize, SUPPORTS),
    emulated=EMULATED,
    sequences=False,
)
