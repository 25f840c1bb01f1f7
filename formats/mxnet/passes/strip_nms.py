"""A detector without the suppression at its end: the boxes and scores that it would choose from."""

from __future__ import annotations

from dataclasses import replace

from serde.errors import UsageError, require
from serde.ir.graph import Graph, Node, Value

from ..operators import describe

WAYS = ("full", "none")


def apply_nms_option(graph: Graph, nms: str) -> Graph:
    """``graph`` as it is (``full``), or with what its last suppressions read as outputs.

    Suppressions that others depend on (of a region proposal network) stay. Outputs that depend on
    none stay as well; the new ones come first.

    Raises:
        UsageError: where there is nothing to leave out.
    """
    require(nms in WAYS, f"nms={nms!r} is neither of {', '.join(WAYS)}")
    if nms == "full":
        return graph
    below = _find_dependents(graph)
    last = [n for n in graph.nodes if describe(n.op).suppressed and not below[n.outputs[0]]]
    if not last:
        raise UsageError("the model has no non-maximum suppression to leave out")
    places = ((n, at) for n in last for at in describe(n.op).suppressed)
    raw = dict.fromkeys(v for n, at in places if (v := n.inputs[at]) is not None)
    behind = _find_reached(graph, last)
    kept = [v for v in graph.outputs if v not in behind]
    return replace(graph, outputs=(*raw, *(v for v in kept if v not in raw)))


def _find_dependents(graph: Graph) -> dict[Value, bool]:
    """Whether a suppression depends on a value."""
    dependents: dict[Value, bool] = {}
    for node in reversed(graph.nodes):
        depends = any(dependents.get(v, False) for v in node.outputs)
        suppresses = bool(describe(node.op).suppressed)
        for v in node.outputs:
            dependents[v] = depends
        for read in node.inputs:
            if read is not None:
                dependents[read] = dependents.get(read, False) or depends or suppresses
    return dependents


def _find_reached(graph: Graph, nodes: list[Node]) -> set[Value]:
    """The values that depend on nodes."""
    values = {v for n in nodes for v in n.outputs}
    for node in graph.nodes:
        if not values.isdisjoint(v for v in node.inputs if v is not None):
            values.update(node.outputs)
    return values
