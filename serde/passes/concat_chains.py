"""A Concat of Concats along one axis, as one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from serde.ir.graph import Graph, Node, Value


def flatten_concats(graph: Graph) -> Graph:
    """Return ``graph`` with Concats that only another Concat reads as part of it."""
    concats = {
        n.outputs[0]: n for n in graph.nodes if n.op == "Concat" and not n.domain and n.outputs
    }
    if len(concats) < 2:
        return graph
    uses = Counter(v for node in graph.all_nodes() for v in node.inputs if v is not None)
    uses.update(graph.outputs)

    parts: dict[Node, tuple[Value | None, ...]] = {}  # of each Concat, those before it done first
    merged: set[Node] = set()
    for node in concats.values():
        operands: list[Value | None] = []
        for v in node.inputs:
            inner = concats.get(v) if v is not None and uses[v] == 1 else None
            if inner is None or inner.attrs["axis"] != node.attrs["axis"]:
                operands.append(v)
            else:
                operands += parts[inner]
                merged.add(inner)
        parts[node] = tuple(operands)
    if not merged:
        return graph
    kept = (n for n in graph.nodes if n not in merged)
    nodes = (replace(n, inputs=parts[n]) if n in parts else n for n in kept)
    return replace(graph, nodes=tuple(nodes))
