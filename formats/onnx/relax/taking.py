"""The last look at every node, at the opset it is written in: what the importer takes stays."""

from __future__ import annotations

from serde import foreign, schema
from serde.builder import Builder
from serde.errors import ConversionError, UnsupportedOp
from serde.graph import Node, Value, show_shape
from serde.recasts.recasting import refusal as recast_refusal
from serde.rules import RuleTable

from .table import OPSET, STAGE, UNTOLD, misfit, misfits
from .taken import TAKEN


class _Taking(RuleTable):
    """Takes over what the importer takes, and tells why of what it does not."""

    def apply(
        self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        error = self.refusal(node)
        if error is None and (reason := _operands(node, inputs) or _form(node)) is not None:
            error = ConversionError(reason)
        if error is not None:
            raise error
        return builder.keep(node, inputs)

    def refusal(self, node: Node) -> ConversionError | None:
        """Why a node is refused for itself."""
        if node.domain:
            return recast_refusal(node) or foreign.refuse(node, "Relax")
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
        if not v.is_static:
            return f"{UNTOLD}{show_shape(v.shape)} of {v.name!r} are not all numbers"
        if v.dtype not in right.get(operator.input(i).tie, (v.dtype,)):
            return f"TVM's importer into Relax gets {v.dtype and v.dtype.value} elements wrong"
    return next((said for v in node.outputs if v.name and (said := misfit(v))), None)


taking = _Taking(STAGE)
__all__ = ["taking"]
