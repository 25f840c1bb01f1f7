"""Values that passes gave a name which another bears."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import replace_values


def name_apart(graph: Graph) -> Graph:
    """Return ``graph`` with a name of its own for each value; inputs and outputs keep theirs."""
    owners: dict[str, Value] = {}
    ends = (*graph.inputs, *graph.outputs)
    values = chain(ends, graph.all_values())
    twice = [v for v in values if v.name and owners.setdefault(v.name, v) is not v]
    if not twice:
        return graph
    names = Names()
    names.used.update(owners)
    instead = {v: replace(v, name=names.fresh(v.name)) for v in dict.fromkeys(twice)}
    return _rename_results(replace_values(graph, instead), instead)


def _rename_results(graph: Graph, instead: Mapping[Value, Value]) -> Graph:
    inputs = tuple(instead.get(v, v) for v in graph.inputs)
    nodes = tuple(_rename_results_of(node, instead) for node in graph.nodes)
    return replace(graph, inputs=inputs, nodes=nodes)


def _rename_results_of(node: Node, instead: Mapping[Value, Value]) -> Node:
    if instead.keys().isdisjoint(node.outputs) and not node.graphs():
        return node
    attrs = {n: _rename_results(a, instead) if isinstance(a, Graph) else a
             for n, a in node.attrs.items()}  # fmt: skip
    return replace(node, outputs=tuple(instead.get(v, v) for v in node.outputs), attrs=attrs)
