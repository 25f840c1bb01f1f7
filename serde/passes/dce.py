"""Drop nodes whose results nothing reads."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Graph, Node, Value
from serde.ir.printer import list_first

SHOWN = 3  # names in a note


def drop_dead(graph: Graph) -> Graph:
    """Return ``graph`` without nodes, in it or its subgraphs, that no output depends on."""
    return _drop(graph, set(graph.outputs))


def note_unused_weights(graph: Graph) -> Graph:
    """Return ``graph`` with a note of the weights that no output depends on."""
    live = {*drop_dead(graph).constants()}
    unused = (v for v in graph.constants() if v not in live and v.dtype and v.dtype.kind == "f")
    names = [repr(v.name) for v in unused if v.name]
    if not names:
        return graph
    note = f"left out: weights that no output depends on: {list_first(names, SHOWN)}"
    return replace(graph, notes=(*graph.notes, note))


def _drop(graph: Graph, live: set[Value | None]) -> Graph:
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if live.isdisjoint(node.outputs):
            continue
        if node.graphs():
            node = _drop_in_bodies(node, live)
        live.update(node.inputs)
        kept.append(node)
    nodes = tuple(reversed(kept))
    return graph if nodes == graph.nodes else replace(graph, nodes=nodes)


def _drop_in_bodies(node: Node, live: set[Value | None]) -> Node:
    """Clean the bodies of a node; what they read of the graphs around them is live there."""
    bodies = {}
    for name, attr in node.attrs.items():
        if isinstance(attr, Graph):
            live.update(attr.outputs)
            bodies[name] = _drop(attr, live)
    return replace(node, attrs={**node.attrs, **bodies})
