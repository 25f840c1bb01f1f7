"""Read other values in place of some, all through a graph and its subgraphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from serde.ir.graph import Graph, Node, Value
from serde.ir.map_nodes import map_bodies


def replace_values(graph: Graph, instead: Mapping[Value, Value]) -> Graph:
    """Return ``graph`` with every read of a key of ``instead`` reading its value."""
    if not instead:
        return graph
    is_unread = instead.keys().isdisjoint  # by most nodes
    nodes = tuple([
        n if is_unread(n.inputs) and not n.graphs() else replace_inputs(n, instead)
        for n in graph.nodes
    ])  # fmt: skip
    outputs = tuple([instead.get(v, v) for v in graph.outputs])
    return replace(graph, nodes=nodes, outputs=outputs)


def replace_inputs(node: Node, instead: Mapping[Value, Value]) -> Node:
    """Return ``node``, its subgraphs too, with every read of a key of ``instead`` so replaced."""
    if instead.keys().isdisjoint(node.inputs) and not node.graphs():
        return node
    inputs = tuple([v and instead.get(v, v) for v in node.inputs])
    attrs = map_bodies(node, lambda body: replace_values(body, instead)).attrs
    return Node(node.op, inputs, node.outputs, attrs, node.domain, node.name, node.sources)


def exchange_values(graph: Graph, instead: Mapping[Value, Value]) -> Graph:
    """Return ``graph`` with every key of ``instead`` exchanged, where it is read and made."""
    if not instead:
        return graph
    return _exchange_results(replace_values(graph, instead), instead)


def _exchange_results(graph: Graph, instead: Mapping[Value, Value]) -> Graph:
    inputs = tuple(instead.get(v, v) for v in graph.inputs)
    nodes = tuple(_exchange_results_of(node, instead) for node in graph.nodes)
    return replace(graph, inputs=inputs, nodes=nodes)


def _exchange_results_of(node: Node, instead: Mapping[Value, Value]) -> Node:
    if instead.keys().isdisjoint(node.outputs) and not node.graphs():
        return node
    node = map_bodies(node, lambda body: _exchange_results(body, instead))
    return replace(node, outputs=tuple(instead.get(v, v) for v in node.outputs))
