"""Sums with zero and products with one."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Graph, Node, Shape, Value
from serde.ir.replace_uses import replace_inputs

NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
MOST = 1024  # elements that are looked at
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
        if x is None or held is None or held.tensor is None or held.tensor.size > MOST:
            continue
        if x.shape is None or x.tensor is not None or not _keeps_shape(x.shape, held.static_shape):
            continue
        if (held.array() == NEUTRAL[node.op]).all():
            return x
    return None


def _keeps_shape(shape: Shape, other: Shape) -> bool:
    """Whether what ``shape`` and ``other`` broadcast to is ``shape``."""
    behind = shape[len(shape) - len(other) :]
    return len(other) <= len(shape) and all(
        b == 1 or (a == b and isinstance(a, int)) for a, b in zip(behind, other, strict=True)
    )
