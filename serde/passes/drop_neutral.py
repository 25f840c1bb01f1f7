"""Sums with zero and products with one."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import replace_inputs

NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
COMMUTATIVE = frozenset({"Add", "Mul"})


def drop_neutral(graph: Graph) -> Graph:
    """Return ``graph`` without such nodes; those that compute an output stay, and subgraphs.

    A sum with zero makes 0 of -0, which ONNX Runtime, dropping the sum itself, does not either.
    """
    instead: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        node = replace_inputs(node, instead) if instead else node
        x = _other(node) if node.op in NEUTRAL and not node.domain else None
        if x is None or node.outputs[0] in graph.outputs:
            nodes.append(node)
        else:
            instead[node.outputs[0]] = x
    return replace(graph, nodes=tuple(nodes)) if instead else graph


def _other(node: Node) -> Value | None:
    """The operand that a node returns as it is."""
    a, b = node.inputs
    pairs = ((a, b), (b, a)) if node.op in COMMUTATIVE else ((a, b),)
    for x, held in pairs:
        if x is None or held is None or held.tensor is None or held.tensor.size != 1:
            continue
        if x.shape is None or x.tensor is not None or len(x.shape) < held.rank:
            continue
        if held.array().ravel()[0] == NEUTRAL[node.op]:
            return x
    return None
