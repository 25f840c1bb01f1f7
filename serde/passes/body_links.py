"""The nodes of a graph and of the bodies of its ``If``, ``Loop`` and ``Scan``, as one list.

An analysis that follows values need not know bodies then: where a value enters or leaves one, the
list has an Identity. A value may be the result of several of these: of each branch, or of the
state before a loop and after each turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from serde.ir.graph import Graph, Node, Value

Pairs = Iterator[tuple[Value | None, Value]]


def list_nodes(graph: Graph) -> Iterator[Node]:
    """Every node in order of execution, bodies in place of the nodes that have them.

    Nodes with other bodies than those of ``CONTROL_FLOW`` come as they are.
    """
    for node in graph.nodes:
        link = None if node.domain else CONTROL_FLOW.get(node.op)
        if link is None:
            yield node
            continue
        bodies = node.graphs()
        yield from _join(link(node, bodies, True))
        for body in bodies:
            yield from list_nodes(body)
        yield from _join(link(node, bodies, False))


def has_loops(graph: Graph) -> bool:
    """Whether a graph, or a body in it, has a value that comes of itself."""
    return any(n.op in ("Loop", "Scan") and n.graphs() for n in graph.all_nodes())


def _join(pairs: Pairs) -> Iterator[Node]:
    return (Node("Identity", (x,), (y,)) for x, y in pairs if x is not None)


def _link_branches(node: Node, bodies: tuple[Graph, ...], before: bool) -> Pairs:
    for body in () if before else bodies:
        yield from zip(body.outputs, node.outputs, strict=True)


def _link_loop(node: Node, bodies: tuple[Graph, ...], before: bool) -> Pairs:
    (body,) = bodies
    states, starts = body.inputs[2:], node.inputs[2:]
    if before:
        yield from zip(starts, states, strict=True)
        return
    yield from zip(body.outputs[1:], states, strict=False)
    yield from zip(body.outputs[1:], node.outputs, strict=True)
    yield from zip(starts, node.outputs, strict=False)


def _link_scan(node: Node, bodies: tuple[Graph, ...], before: bool) -> Pairs:
    (body,) = bodies
    scanned = node.attrs.get("num_scan_inputs", 0)
    count = len(node.inputs) - (scanned if isinstance(scanned, int) else 0)
    if before:
        yield from zip(node.inputs, body.inputs, strict=True)
        return
    yield from zip(body.outputs, body.inputs[:count], strict=False)
    yield from zip(body.outputs, node.outputs, strict=True)


CONTROL_FLOW: Mapping[str, Callable[[Node, tuple[Graph, ...], bool], Pairs]] = {
    "If": _link_branches, "Loop": _link_loop, "Scan": _link_scan,
}  # fmt: skip
