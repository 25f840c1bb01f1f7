"""Some of a graph's nodes as a graph of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType

from serde.ir.graph import Graph, Node, Value
from serde.ir.values_read import values_read


def extract_subgraph(
    name: str, nodes: Sequence[Node], outputs: Iterable[Value], around: Graph | None = None
) -> Graph:
    """A graph of nodes in their order, whose inputs are what they read and do not compute.

    Inputs of the graph ``around`` come first, in their order; the versions of domains are its own.
    """
    results = {v for n in nodes for v in n.outputs}
    read = {v: None for n in nodes for v in values_read(n) if v not in results}
    first = () if around is None else around.inputs
    inputs = tuple(dict.fromkeys([*(v for v in first if v in read), *read]))
    part = Graph(name, inputs, tuple(outputs), tuple(nodes))
    domains = {n.domain for n in part.all_nodes()}
    imports = {} if around is None else {d: n for d, n in around.imports.items() if d in domains}
    return replace(part, imports=MappingProxyType(imports)) if imports else part
