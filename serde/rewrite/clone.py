"""A graph with values of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from serde.ir.graph import Graph, Node, Value


def clone_graph(graph: Graph, clone_value: Callable[[Value], Value]) -> Graph:
    """Return a copy of ``graph`` and its subgraphs, each value of which is ``clone_value(value)``.

    ``clone_value`` is called for every use of a value, and returns the same each time.
    """

    def clone_node(node: Node) -> Node:
        inputs = tuple(v and clone_value(v) for v in node.inputs)
        attrs = {n: clone_body(a) if isinstance(a, Graph) else a for n, a in node.attrs.items()}
        outputs = tuple(map(clone_value, node.outputs))
        return Node(node.op, inputs, outputs, attrs, node.domain, node.name, node.sources)

    def clone_body(body: Graph) -> Graph:
        inputs = tuple(map(clone_value, body.inputs))
        nodes = tuple(map(clone_node, body.nodes))
        return replace(
            body, inputs=inputs, nodes=nodes, outputs=tuple(map(clone_value, body.outputs))
        )

    return clone_body(graph)
