"""Let nodes that compute the same be one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from serde.ir.graph import Graph, Node, Tensor, Value
from serde.spec import schema


def merge_repeats(graph: Graph) -> Graph:
    """Return ``graph`` with one node for all that apply one operator to the same inputs.

    Outputs of the graph keep their own nodes, and so their names. Subgraphs are left as they are
    but for what they read.
    """
    from serde.ir.replace_uses import _node as add_read_options

    first: dict[Hashable, Node] = {}
    instead: dict[Value, Value] = {}
    named = set(graph.outputs)
    kept: list[Node] = []
    for node in graph.nodes:
        node = add_read_options(node, instead) if instead else node
        key = None if not named.isdisjoint(node.outputs) else _key(node)
        same = first.get(key) if key is not None else None
        if same is not None:
            instead.update(zip(node.outputs, same.outputs, strict=True))
            continue
        if key is not None:
            first[key] = node
        kept.append(node)
    return replace(graph, nodes=tuple(kept)) if instead else graph


def _key(node: Node) -> Hashable | None:
    attrs = node.attrs.values()
    if node.domain or any(isinstance(v, (Graph, Tensor)) for v in attrs):
        return None
    if not all(isinstance(v, Hashable) for v in attrs):  # a protobuf type is not
        return None
    found = schema.find(node.op)
    if found is None or not found.deterministic:
        return None
    return (node.op, node.inputs, tuple(sorted(node.attrs.items())), len(node.outputs))
