"""Graphs with their nodes changed one by one, those of subgraphs too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .graph import Graph, Node


def map_nodes(graph: Graph, change: Callable[[Node], Node]) -> Graph:
    """Return ``graph`` with each node changed, those of its subgraphs first."""
    nodes = tuple([change(map_bodies(n, lambda b: map_nodes(b, change))) for n in graph.nodes])
    is_same = all(a is b for a, b in zip(nodes, graph.nodes, strict=True))
    return graph if is_same else replace(graph, nodes=nodes)


def map_bodies(node: Node, change: Callable[[Graph], Graph]) -> Node:
    """Return ``node`` with each of its subgraphs changed."""
    if not node.graphs():
        return node
    bodies = {name: change(a) for name, a in node.attrs.items() if isinstance(a, Graph)}
    is_same = all(body is node.attrs[name] for name, body in bodies.items())
    return node if is_same else replace(node, attrs={**node.attrs, **bodies})
