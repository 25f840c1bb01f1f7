"""Some of a graph's nodes as a graph of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from serde.ir.graph import Graph, Node, Value
from serde.ir.values_read import values_read


def extract_subgraph(
    name: str, nodes: Sequence[Node], outputs: Iterable[Value], first: Iterable[Value] = ()
) -> Graph:
    """A graph of nodes in their order, whose inputs are what they read and do not compute.

    ``first`` are inputs to begin with, those of the graph around in their order.
    """
    results = {v for n in nodes for v in n.outputs}
    read = {v: None for n in nodes for v in values_read(n) if v not in results}
    inputs = tuple(dict.fromkeys([*(v for v in first if v in read), *read]))
    return Graph(name, inputs, tuple(outputs), tuple(nodes))
