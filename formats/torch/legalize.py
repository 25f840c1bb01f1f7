"""Operators PyTorch has not, or not in such a form, as operators of the IR that it has."""

from __future__ import annotations

from functools import cache

from serde.decompositions.table import add_decompositions
from serde.ir.graph import IR_OPSET, Graph, Node
from serde.legalize.convert import scalarize_sequences, without_functions
from serde.legalize.emulate_types import STORAGE_TYPE
from serde.legalize.forms.form import Form, Lacks, join_forms
from serde.legalize.target import Target
from serde.legalize.walk import Legalized, legalize
from serde.passes import tidy
from serde.rewrite.patterns import Neighbours, Patterns, merge, orders
from serde.spec import composites, schema
from serde.spec.traits import RESHAPES

from .ops.recurrent import PACKED
from .ops.windows import WINDOWS
from .passes.find_attention import ATTENTION
from .target import STORED, TYPES, legalizations, writes

# Operators that move elements of types that PyTorch does not compute with.
MOVING = RESHAPES | {"Cast", "Identity", "Slice", "Transpose"}
FLOATS = frozenset("Einsum GlobalAveragePool ReduceLogSumExp ReduceMean".split())

AXES = Form("other than one to three axes of windows",
            lambda call: not 0 < len(call.attrs["kernel_shape"]) < 4,
            advice="Reshape the tensor")  # fmt: skip
LACKS: Lacks = dict.fromkeys(("AveragePool", "Conv", "ConvTranspose", "MaxPool"), (AXES,))


@cache
def torch_target(exportable: bool = False) -> Target:
    """PyTorch, or what ``torch.export`` takes of it, once all families have filled the tables."""
    rules = add_decompositions(legalizations, writes.rules)
    operators = {op: _constrain(op) for op in writes.list_standard()}
    lacks = join_forms(WINDOWS, LACKS, PACKED if exportable else {})
    return Target(
        "torch", title="PyTorch", supports=operators, lacks=lacks,
        legalizations=rules, keeps_weights=True, emulated=frozenset(STORAGE_TYPE) - STORED,
        domains=frozenset({composites.DOMAIN}),
    )  # fmt: skip


def _constrain(op: str) -> dict[str, frozenset]:  # type: ignore[type-arg]
    """The element types of each type variable: those PyTorch computes with, on GPUs too."""
    operator, types = schema.operator(op, IR_OPSET), STORED if op in MOVING else TYPES
    floats = frozenset(d for d in types if d.kind == "f")
    return {
        p.tie: floats if (op in FLOATS or op in LACKS) and p.tie == "T" else types
        for p in (*operator.inputs, *operator.outputs)
    }


LINEAR = Patterns("MatMul")


@LINEAR("Add")
def make_linear(near: Neighbours, node: Node) -> Node | None:
    """A product with a constant matrix and a bias, of any rank, as the ``Gemm`` of one layer."""
    for product, bias in orders(node):
        layer = near.sole_maker(node, product, "MatMul")
        weight = layer.inputs[1] if layer is not None else None
        if weight is None or bias is None or weight.tensor is None or bias.tensor is None:
            continue
        units = weight.static_shape[-1]
        is_row = bias.tensor.size == units and bias.static_shape[-1:] == (units,)
        if layer is not None and weight.rank == 2 and weight.type.kind == "f" and is_row:
            attrs = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
            return merge(layer, node, op="Gemm", inputs=(*layer.inputs, bias), attrs=attrs)
    return None


def legalize_for_torch(graph: Graph, exportable: bool = False) -> Legalized:
    """Rewrite an IR graph into one whose operators, but those without any way, PyTorch has."""
    graph = scalarize_sequences(without_functions(graph, traced=True))
    legal = legalize(graph, torch_target(exportable), tidy)
    return legal._replace(graph=LINEAR.apply(ATTENTION.apply(legal.graph)))
