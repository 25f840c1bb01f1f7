"""Operators Relay has not, or not in such a form, as operators of the IR that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serde.decompositions.expressions import cast
from serde.ir.builder import Operand
from serde.ir.graph import DType, Graph, Node, Value
from serde.legalize.convert import scalarize_sequences, without_functions
from serde.legalize.recasting import Recasting, recasting_table
from serde.legalize.recasting import recast as recast_by
from serde.spec import schema

from ..target import writes

recasts = recasting_table("ir → relay")
# TVM accumulates float16 in float16, ONNX Runtime in float32. Products have an ``out_dtype``.
SUMS = frozenset(
    "AveragePool ConvTranspose CumProd CumSum Einsum GlobalAveragePool GlobalLpPool "
    "InstanceNormalization LRN LogSoftmax LpNormalization LpPool MeanVarianceNormalization "
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum "
    "ReduceSumSquare Softmax".split()
)


class RelayRecasting(Recasting):
    """Emits operators of the IR as those Relay has a call for."""

    table = recasts
    loops = True

    def _settle(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        """Sums of float16 are computed in float32."""
        if op not in SUMS:
            return super()._settle(op, inputs, attrs, outputs)
        operator = schema.operator(op)
        operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
        if not _sums_halves(op, operands):
            return super()._settle(op, operands, attrs, outputs)
        wide = [
            cast(self, v, DType.FLOAT32) if v is not None and v.dtype is DType.FLOAT16 else v
            for v in operands
        ]
        return cast(self, self.emit(op, wide, attrs, outputs), DType.FLOAT16)

    def stays(self, node: Node, inputs: Sequence[Value | None]) -> bool:
        """Whether Relay computes a node of an operator without a rule as it is."""
        return not _sums_halves(node.op, inputs)


def _sums_halves(op: str, operands: Sequence[Value | None]) -> bool:
    first = operands[0] if operands else None
    return op in SUMS and first is not None and first.dtype is DType.FLOAT16


def recast(graph: Graph) -> Graph:
    """Rewrite an IR graph into one whose operators, but those without any way, Relay has."""
    graph = scalarize_sequences(without_functions(graph, traced=True))
    return recast_by(graph, RelayRecasting, writes.rules)


__all__ = ["RelayRecasting", "recast", "recasts"]
