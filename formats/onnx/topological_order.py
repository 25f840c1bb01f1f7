"""Nodes in topological order: ONNX asks for it, and ONNX Runtime runs files without it."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence

import onnx

from serde.errors import MalformedFile

from .graph_fields import NodeFields

MAY_HOLD_GRAPH = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.UNDEFINED)
Nodes = Sequence[NodeFields]


def sort_nodes(nodes: Nodes, path: str, inputs: Collection[str]) -> Nodes:
    """``nodes``, each after those that compute what it or its subgraphs read.

    ``inputs`` names inputs and initializers. Nodes that are in order keep it. A name that nothing
    computes is left to whoever reads the nodes.

    Raises:
        MalformedFile: where nodes wait for each other, with their names.
    """
    if _are_sorted(nodes, inputs):
        return nodes
    makers = {
        name: at for at, node in enumerate(nodes) for name in node.outputs if name not in inputs
    }
    makers.pop("", None)
    needs = [_needs(node, makers) for node in nodes]
    if all(max(needed, default=-1) < at for at, needed in enumerate(needs)):
        return nodes
    readers: list[list[int]] = [[] for _ in nodes]
    for at, needed in enumerate(needs):
        for maker in needed:
            readers[maker].append(at)
    left = [len(needed) for needed in needs]
    ready = [at for at, count in enumerate(left) if count == 0]
    order = []
    while ready:
        at = heapq.heappop(ready)
        order.append(at)
        for reader in readers[at]:
            left[reader] -= 1
            if left[reader] == 0:
                heapq.heappush(ready, reader)
    if len(order) < len(nodes):
        cycle = " → ".join(repr(nodes[at].title) for at in _cycle(needs, left))
        raise MalformedFile(path, f"the nodes {cycle} form a cycle: each reads what the next makes")
    return [nodes[at] for at in order]


def _needs(node: NodeFields, makers: dict[str, int]) -> set[int]:
    """The nodes that compute what a node reads."""
    return {makers[name] for name in _names_read(node) if name in makers}


def _are_sorted(nodes: Nodes, inputs: Collection[str]) -> bool:
    """Whether nodes are in order; False also where a name may be computed twice."""
    computed, awaited = {"", *inputs}, set[str]()
    for node in nodes:
        names = node.inputs if isinstance(node.attributes, bytes) else _names_read(node)
        if not computed.issuperset(names):
            awaited.update(name for name in names if name not in computed)
        outputs = node.outputs
        if not (computed.isdisjoint(outputs) and awaited.isdisjoint(outputs)):
            return False
        computed.update(outputs)
    return True


def _names_read(node: NodeFields) -> set[str]:
    """The names that a node and its subgraphs read."""
    names, attributes = set(node.inputs), node.attributes
    if not isinstance(attributes, bytes):
        names.update(_free_names([a for a in attributes if a.type in MAY_HOLD_GRAPH]))
    return names


def _free_names(attributes: Sequence[onnx.AttributeProto]) -> Iterator[str]:
    """The names that subgraphs among attributes read of the graphs around them."""
    stack = [(a.g, frozenset[str]()) for a in attributes if a.HasField("g")]
    while stack:
        graph, around = stack.pop()
        local_names = {v.name for v in (*graph.input, *graph.initializer)}
        local_names.update(t.values.name for t in graph.sparse_initializer)
        local_names.update(name for inner in graph.node for name in inner.output)
        known = around | local_names
        reads = [name for inner in graph.node for name in inner.input]
        reads += [v.name for v in graph.output]
        yield from (name for name in reads if name not in known)
        stack.extend(
            (a.g, known) for inner in graph.node for a in inner.attribute if a.HasField("g")
        )


def _cycle(needs: Sequence[set[int]], left: Sequence[int]) -> list[int]:
    """Nodes of which each waits for the next, and the last for the first."""
    seen: dict[int, int] = {}
    at = next(i for i, count in enumerate(left) if count)
    while at not in seen:
        seen[at] = len(seen)
        at = min(n for n in needs[at] if left[n])
    return [n for n in seen if seen[n] >= seen[at]]
