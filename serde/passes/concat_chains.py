"""A Concat of Concats along one axis, as one."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Graph, Node, Value
from serde.rewrite.patterns import Neighbours

FEW = 4  # operands that any number of Concats take over
MOST = 128  # operands that the Concats reading one of more have in its place, together


def flatten_concats(graph: Graph) -> Graph:
    """Return ``graph`` with Concats that only other Concats read as part of these."""
    concats = {
        n.outputs[0]: n for n in graph.nodes if n.op == "Concat" and not n.domain and n.outputs
    }
    if len(concats) < 2:
        return graph
    near = Neighbours(graph)
    parts: dict[Node, tuple[Value | None, ...]] = {}  # of each Concat, those before it done first

    def is_part(v: Value, axis: object) -> bool:
        """Whether all that read a Concat are Concats along the axis, and may take its operands."""
        readers = [n for n in near.readers[v] if concats.get(n.outputs[0]) is n]
        count = sum(n.inputs.count(v) for n in readers)
        size = len(parts[concats[v]])
        if count > 1 and size > FEW and count * size > MOST:
            return False
        return count == near.uses[v] and all(n.attrs["axis"] == axis for n in readers)

    merged: set[Node] = set()
    for node in concats.values():
        operands: list[Value | None] = []
        for v in node.inputs:
            inner = concats.get(v) if v is not None else None
            if v is None or inner is None or not is_part(v, inner.attrs["axis"]):
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
