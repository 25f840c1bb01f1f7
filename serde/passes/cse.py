"""Let nodes that compute the same be one."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from serde.ir.graph import Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_inputs
from serde.passes.optional import optional
from serde.spec import schema


@optional("merge_repeats")
def merge_repeats(graph: Graph) -> Graph:
    """Return ``graph`` with one node for all that apply one operator to the same inputs.

    Outputs of the graph keep their own nodes, and so their names. Subgraphs are left as they are
    but for what they read.
    """
    readers: dict[Hashable, Node] = {}  # the first node of an operator that reads these inputs
    first: dict[Hashable, Node] = {}
    instead: dict[Value, Value] = {}
    named = set(graph.outputs)
    kept: list[Node] = []
    for node in graph.nodes:
        node = replace_inputs(node, instead) if instead else node
        if named.isdisjoint(node.outputs):
            alike = readers.setdefault((node.op, node.inputs), node)
            same = node if alike is node else _find_same(first, alike, node)
            if same is not node:
                instead.update(zip(node.outputs, same.outputs, strict=True))
                continue
        kept.append(node)
    return replace(graph, nodes=tuple(kept)) if instead else graph


def _find_same(first: dict[Hashable, Node], alike: Node, node: Node) -> Node:
    """The first node that computes the same as ``node``; ``alike`` may not be entered yet."""
    if (key := _key(alike)) is not None:
        first.setdefault(key, alike)
    return node if (key := _key(node)) is None else first.setdefault(key, node)


def _key(node: Node) -> Hashable | None:
    attrs = node.attrs.values()
    if node.domain or any(isinstance(v, (Graph, Tensor)) for v in attrs):
        return None
    if not all(isinstance(v, Hashable) for v in attrs):  # a protobuf type is not
        return None
    operator = schema.find(node.op)
    if operator is None or not operator.deterministic:
        return None
    return (node.op, node.inputs, tuple(sorted(node.attrs.items())), len(node.outputs))
