"""What nodes and subgraphs read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .graph import Graph, Node, Value


def values_read(node: Node) -> Iterator[Value]:
    """The operands of a node and what its subgraphs read around them, constants left out."""
    for value in node.inputs:
        if value is not None and value.tensor is None:
            yield value
    for body in node.graphs():
        yield from captured_values(body)


def captured_values(body: Graph) -> Iterator[Value]:
    """What a subgraph reads of the graphs around it, constants left out."""
    local_values = set(body.inputs)
    for node in body.nodes:
        for value in values_read(node):
            if value not in local_values:
                yield value
        local_values.update(node.outputs)
    for value in body.outputs:
        if value.tensor is None and value not in local_values:
            yield value


def nodes_behind(graph: Graph, values: Iterable[Value]) -> Iterator[Node]:
    """The nodes that compute of some values, directly or by way of others, in subgraphs too."""
    behind = set(values)
    for node in graph.ordered_nodes():
        if behind.isdisjoint(node.inputs) and behind.isdisjoint(values_read(node)):
            continue
        behind.update(node.outputs)
        for body in node.graphs():
            behind.update(body.inputs)
        yield node
