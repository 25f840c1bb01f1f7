"""Nodes in topological order: ONNX asks for it, and ONNX Runtime runs files without it."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence

import onnx

from serde.errors import MalformedFile

MAY_HOLD_GRAPH = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.UNDEFINED)
Nodes = Sequence[onnx.NodeProto]


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
        name: at for at, node in enumerate(nodes) for name in node.output if name not in inputs
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
        cycle = " → ".join(repr(_name(nodes[at])) for at in _cycle(needs, left))
        raise MalformedFile(path, f"the nodes {cycle} form a cycle: each reads what the next makes")
    return [nodes[at] for at in order]


def _needs(node: onnx.NodeProto, makers: dict[str, int]) -> set[int]:
    """The nodes that compute what a node reads."""
    return {makers[name] for name in _names_read(node) if name in makers}


def _are_sorted(nodes: Nodes, inputs: Collection[str]) -> bool:
    """Whether nodes are in order; False also where a name may be computed twice."""
    made, awaited = {"", *inputs}, set[str]()
    for node in nodes:
        awaited |= _names_read(node) - made
        outputs = node.output
        if not (made.isdisjoint(outputs) and awaited.isdisjoint(outputs)):
            return False
        made.update(outputs)
    return True


def _names_read(node: onnx.NodeProto) -> set[str]:
    """The names that a node and its subgraphs read."""
    names = set(node.input)
    if any(a.type in MAY_HOLD_GRAPH and a.HasField("g") for a in node.attribute):
        names.update(_free_names(node))
    return names


def _free_names(node: onnx.NodeProto) -> Iterator[str]:
    """The names that subgraphs of a node read of the graphs around them."""
    stack = [(a.g, frozenset[str]()) for a in node.attribute if a.HasField("g")]
    while stack:
        graph, around = stack.pop()
        own = {v.name for v in (*graph.input, *graph.initializer)}
        own.update(t.values.name for t in graph.sparse_initializer)
        own.update(name for inner in graph.node for name in inner.output)
        known = around | own
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


def _name(node: onnx.NodeProto) -> str:
    return node.name or next((n for n in node.output if n), node.op_type)
