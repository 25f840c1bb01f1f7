"""The last look at every node, at the opset it is written in: what the importer takes stays."""

from __future__ import annotations

from collections.abc import Container

from serde.errors import ConversionError, UnsupportedOp
from serde.ir.builder import Builder
from serde.ir.graph import Graph, Node, Value, show_shape
from serde.legalize.recasting import refusal as recast_refusal
from serde.rewrite import custom_ops
from serde.rewrite.rules import RuleTable
from serde.spec import schema

from .dynamic_shape_support import SYMBOLIC
from .support_table import TAKEN
from .target import OPSET, STAGE, UNTOLD, misfit, misfits


class _Taking(RuleTable):
    """Takes over what the importer takes, and tells why of what it does not.

    ``dynamic`` are the values whose sizes depend on data.
    """

    def __init__(self, dynamic: Container[Value]) -> None:
        super().__init__(STAGE)
        self.dynamic = dynamic

    def apply(
        self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        error = self.refusal(node)
        sized = error is None and self._sizes(node)
        if error is None and (reason := sized or _operands(node, inputs) or _form(node)):
            error = ConversionError(reason)
        if error is not None:
            raise error
        return builder.keep(node, inputs)

    def _sizes(self, node: Node) -> str | None:
        """Why the importer gets the node wrong with sizes that are not numbers."""
        for v in node.inputs:
            if v is None or v.shape is None or v.is_static:
                continue
            said = f"{UNTOLD}{show_shape(v.shape)} of {v.name!r}"
            if v in self.dynamic:
                return f"{said} depend on data; the importer wants numbers or names"
            if node.op not in SYMBOLIC:
                return (
                    f"{said} are symbolic, which TVM's importer into Relax gets wrong for "
                    f"{node.op}: give numbers (--static, --input)"
                )
        return None

    def refusal(self, node: Node) -> ConversionError | None:
        """Why a node is refused for itself."""
        if node.domain:
            return recast_refusal(node) or custom_ops.refuse(node, "Relax")
        if node.op not in TAKEN:
            return UnsupportedOp(f"TVM's importer into Relax gets no {node.op} right")
        return None


def _form(node: Node) -> str | None:
    return next((said for find in misfits.get(node.op, ()) if (said := find(node))), None)


def _operands(node: Node, inputs: tuple[Value | None, ...]) -> str | None:
    """Why the importer gets the node wrong with such operands."""
    operator, right = schema.operator(node.op, OPSET), TAKEN[node.op]
    for i, v in enumerate(inputs):
        if v is None:
            continue
        if (reason := misfit(v)) is not None:
            return reason
        if v.dtype not in right.get(operator.input(i).tie, (v.dtype,)):
            return f"TVM's importer into Relax gets {v.dtype and v.dtype.value} elements wrong"
    return next((said for v in node.outputs if v.name and (said := misfit(v))), None)


DATA_DEPENDENT = frozenset("Compress NonMaxSuppression NonZero Range Unique".split())
SIZED = frozenset("ConstantOfShape Expand Pad Reshape Resize Slice Tile TopK".split())


def dynamic_values(graph: Graph) -> set[Value]:
    """The values whose sizes depend on data, not on the sizes of the inputs alone."""
    found: set[Value] = set()
    for node in graph.nodes:
        sizes = node.inputs if node.op == "ConstantOfShape" else node.inputs[1:]
        computed = node.op in SIZED and any(v is not None and v.tensor is None for v in sizes)
        reads = any(v in found for v in node.inputs if v is not None)
        if computed or reads or node.op in DATA_DEPENDENT:
            found.update(v for v in node.outputs if v.shape is None or None in v.shape)
    return found


def take(graph: Graph, builder: Builder) -> Graph:
    """The graph as it is, if the importer takes every node of it."""
    return _Taking(dynamic_values(graph)).rewrite(graph, builder)


__all__ = ["take"]
