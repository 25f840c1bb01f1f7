"""What TVM's importer of ONNX into Relax accepts.

Its operators and element types are measured (``support_table.py``), and those it computes correctly
with symbolic sizes (``dynamic_shape_support.py``). It has no control flow: loops are unrolled and
both branches of an If are computed.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from serde.decompositions.table import add_decompositions
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import DType, Graph, Node, Value, show_shape
from serde.legalize.forms.form import (
    STATIC,
    Call,
    Form,
    Lacks,
    join_forms,
    refuse_operands,
    require_constants,
)
from serde.legalize.target import Target
from serde.rewrite import custom_ops
from serde.spec import schema
from serde.spec.traits import BROADCASTS, DATA_DEPENDENT

from ..illegal_forms import OPEN_PADS
from ..shared_sizes import DIFFERENT_SIZES
from ..support_table import MEASURED
from . import legalizations
from .dynamic_shape_support import SYMBOLIC
from .support_table import SUPPORTED

OPSET = 17  # the opset the importer was measured at
IMPORTER = "TVM's importer into Relax"


def has_open_sizes(call: Call) -> bool:
    """Whether sizes of the run are expanded to, which are taken as they are, 1 as well."""
    shape = call.operand(1)
    is_one = call.x.shape is not None and set(call.x.shape) <= {1}
    return shape is not None and shape_data_of(shape) is None and not is_one


PADS = OPEN_PADS._replace(what="auto_pad of symbolic sizes")
REFUSED: Lacks = {
    "Expand": [Form("sizes of the run", has_open_sizes, advice=STATIC)],
    # the importer ignores the mean and the inverse deviation
    "LayerNormalization": refuse_operands("Mean", "InvStdDev"),
    "Pad": require_constants("pads"),
    **dict.fromkeys(("BatchNormalization", "Concat", "MatMul"), (DIFFERENT_SIZES,)),
    **dict.fromkeys(("AveragePool", "Conv", "ConvTranspose", "LpPool", "MaxPool"), (PADS,)),
}


@dataclass(frozen=True, eq=False)
class Relax(Target):
    """The importer. ``data_dependent`` are the values whose sizes depend on data."""

    data_dependent: Container[Value] = frozenset()

    def for_graph(self, legal: Graph) -> Relax:
        """The importer, with what depends on data in a graph."""
        return replace(self, data_dependent=data_dependent(legal))

    def illegal_operator(self, node: Node) -> str | None:
        """Why the importer gets no such operator right, None if it does."""
        if node.domain:
            return custom_ops.refuse(node, "Relax").reason
        return None if node.op in SUPPORTED else f"{IMPORTER} gets no {node.op} right"

    def illegal_types(self, node: Node) -> str | None:
        """Why the importer gets the node wrong with such operands or results."""
        if (reason := self._illegal_sizes(node)) is not None:
            return reason
        operator, legal = schema.operator(node.op, OPSET), SUPPORTED[node.op]
        for i, v in enumerate(node.inputs):
            if v is None:
                continue
            if (reason := self._illegal_tensor(v)) is not None:
                return reason
            if v.dtype not in legal.get(operator.input(i).tie, (v.dtype,)):
                return f"{IMPORTER} gets {v.dtype and v.dtype.value} elements wrong"
        return next((r for v in node.outputs if v.name and (r := self._illegal_tensor(v))), None)

    def _illegal_sizes(self, node: Node) -> str | None:
        """Why the importer gets the node wrong with sizes that are not numbers."""
        for v in node.inputs:
            if v is None or v.shape is None or v.is_static:
                continue
            sizes = f"the sizes {show_shape(v.shape)} of {v.name!r}"
            if v in self.data_dependent:
                return f"{sizes} depend on data; the importer wants numbers or names"
            if node.op not in SYMBOLIC:
                wrong = f"which {IMPORTER} gets wrong for {node.op}"
                return f"{sizes} are symbolic, {wrong}: give numbers (--static, --input)"
        return _illegal_broadcast(node) if node.op in BROADCASTS | {"PRelu"} else None

    def illegal_value(self, value: Value) -> str | None:
        """Why there is no such input."""
        reason = self._illegal_tensor(value)
        if reason is None and None in (value.shape or ()):
            sizes = show_shape(value.shape)
            return f"the sizes {sizes} are not all known: give numbers or names (--input)"
        return reason

    def _illegal_tensor(self, value: Value) -> str | None:
        """Why there is no such tensor: of what it is made, or what is not known of it."""
        if value.container:
            return f"{value.name!r} is {' of '.join(value.container)}"
        if value.dtype is None:
            return f"{value.name!r} holds elements of unknown type"
        if value.dtype not in MEASURED:
            content = "strings" if value.dtype is DType.STRING else f"{value.dtype.value} elements"
            return f"{value.name!r} holds {content}"
        if value.shape is None:
            return f"{value.name!r} is of unknown rank: give its shape"
        return f"{value.name!r} holds no elements" if 0 in value.shape else None


def _illegal_broadcast(node: Node) -> str | None:
    """Sizes by name against others: whether one of them is 1 is not known before the model runs."""
    result = node.outputs[0].shape
    for v in node.inputs:
        if v is None or v.shape is None or result is None:
            continue
        for dim, size in zip(reversed(v.shape), reversed(result), strict=False):
            if isinstance(dim, str) and dim != size:
                sizes = f"{show_shape(v.shape)} is broadcast to {show_shape(result)}"
                advice = f"give numbers (--static {dim}=…, --input)"
                return f"{v.name!r} {sizes}, and TVM wants to know whether {dim} is 1: {advice}"
    return None


RELAX = Relax(
    name="relax",
    source="measured",
    title=IMPORTER,
    opset=OPSET,
    supports=SUPPORTED,
    lacks=join_forms(legalizations.LACKS, REFUSED),
    legalizations=add_decompositions(legalizations.legalize, SUPPORTED),
    decomposed=frozenset({"Einsum", "EyeLike", "MeanVarianceNormalization"}),
    control_flow=False,
)


def data_dependent(graph: Graph) -> set[Value]:
    """The values whose sizes depend on data, not on the sizes of the inputs alone."""
    values: set[Value] = set()
    for node in graph.nodes:
        sizes = () if node.domain else schema.list_sizes(node.op, node.inputs)
        computed = any(v is not None and v.tensor is None for v in sizes)
        reads = any(v in values for v in node.inputs if v is not None)
        if computed or reads or node.op in DATA_DEPENDENT:
            values.update(v for v in node.outputs if v.shape is None or None in v.shape)
    return values
