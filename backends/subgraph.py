"""Some of a graph's nodes as a graph of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from serde.ir.graph import Graph, Node, Value


def values_read(node: Node) -> Iterator[Value]:
    """The operands of a node and what its subgraphs read around them, constants left out."""
    for value in node.inputs:
        if value is not None and value.tensor is None:
            yield value
    for body in node.graphs():
        yield from captured_values(body)


def captured_values(body: Graph) -> Iterator[Value]:
    """What a subgraph reads of the graphs around it, constants left out."""
    own = set(body.inputs)
    for node in body.nodes:
        for value in values_read(node):
            if value not in own:
                yield value
        own.update(node.outputs)
    for value in body.outputs:
        if value.tensor is None and value not in own:
            yield value


def extract_subgraph(
    name: str, nodes: Sequence[Node], outputs: Iterable[Value], first: Iterable[Value] = ()
) -> Graph:
    """A graph of nodes in their order, whose inputs are what they read and do not compute.

    ``first`` are inputs to begin with, those of the graph around in their order.
    """
    results = {v for n in nodes for v in n.outputs}
    read = {v: None for n in nodes for v in values_read(n) if v not in results}
    ordered = [v for v in first if v in read]
    inputs = (*ordered, *(v for v in read if v not in set(ordered)))
    return Graph(name, inputs, tuple(outputs), tuple(nodes))
