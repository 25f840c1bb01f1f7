"""Operators PyTorch has not, or not in such a form, as operators of the IR that it has."""

from __future__ import annotations

from functools import cache

from serde.decompositions.table import add_decompositions
from serde.ir.graph import IR_OPSET, Graph
from serde.legalize.convert import scalarize_sequences, without_functions
from serde.legalize.target import Target
from serde.legalize.walk import Legalized, legalize
from serde.passes import tidy
from serde.spec import schema

from .target import STORED, TYPES, legalizations, writes

# Operators that move elements of types that PyTorch does not compute with.
MOVING = frozenset(
    "Cast Concat Expand Flatten Gather Identity Reshape Slice Split Squeeze Tile Transpose "
    "Unsqueeze".split()
)
FLOATS = frozenset("Einsum GlobalAveragePool ReduceLogSumExp ReduceMean".split())


@cache
def torch_target() -> Target:
    """PyTorch, once all families have filled the tables."""
    rules = add_decompositions(legalizations, writes.rules)
    operators = {op: _constrain(op) for op in writes.rules}
    return Target("torch", supports=operators, legalizations=rules, control_flow=False)


def _constrain(op: str) -> dict[str, frozenset]:  # type: ignore[type-arg]
    """The element types of each type variable: those PyTorch computes with."""
    operator, types = schema.operator(op, IR_OPSET), STORED if op in MOVING else TYPES
    floats = frozenset(d for d in types if d.kind == "f")
    return {
        p.tie: floats if op in FLOATS and p.tie == "T" else types
        for p in (*operator.inputs, *operator.outputs)
    }


def legalize_for_torch(graph: Graph) -> Legalized:
    """Rewrite an IR graph into one whose operators, but those without any way, PyTorch has."""
    graph = scalarize_sequences(without_functions(graph, traced=True))
    return legalize(graph, torch_target(), tidy)
