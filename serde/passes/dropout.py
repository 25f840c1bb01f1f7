"""Drop Dropout at inference whose mask nothing reads."""

from __future__ import annotations

from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import replace_values
from serde.passes.dce import drop_dead


def drop_dropout(graph: Graph) -> Graph:
    """Return ``graph`` without; one output alone goes while the graph is built (simplify.py)."""
    if not any(n.op == "Dropout" and not n.domain for n in graph.nodes):
        return graph
    read = {v for n in graph.all_nodes() for v in n.inputs if v is not None}
    read |= {v for n in graph.all_nodes() for body in n.graphs() for v in body.outputs}
    read.update(graph.outputs)
    instead: dict[Value, Value] = {}
    for node in graph.nodes:
        x = node.inputs[0] if _drops_nothing(node) else None
        if x is not None and read.isdisjoint(node.outputs[1:]):
            instead[node.outputs[0]] = instead.get(x, x)
    kept = set(graph.outputs)
    return drop_dead(replace_values(graph, {y: x for y, x in instead.items() if y not in kept}))


def _drops_nothing(node: Node) -> bool:
    if node.op != "Dropout" or node.domain:
        return False
    training = node.inputs[2] if len(node.inputs) > 2 else None
    return training is None or (training.tensor is not None and not training.array().any())
