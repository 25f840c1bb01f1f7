"""A Pad of zeros as the pads of the convolutions that read it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from serde.ir.graph import Graph, Node, Value
from serde.passes.dce import drop_dead


def fold_pads(graph: Graph) -> Graph:
    """Return ``graph`` with Pads of constants folded; subgraphs are left as they are."""
    makers = {v: n for n in graph.nodes if n.op == "Pad" and not n.domain for v in n.outputs}
    if not makers:
        return graph
    nodes = tuple(_with_pads(node, makers) for node in graph.nodes)
    is_same = all(a is b for a, b in zip(nodes, graph.nodes, strict=True))
    return graph if is_same else drop_dead(replace(graph, nodes=nodes))


def _with_pads(node: Node, makers: dict[Value, Node]) -> Node:
    x = node.inputs[0] if node.op == "Conv" and not node.domain else None
    pad = makers.get(x) if x is not None else None
    added = None if pad is None else _spatial_pads(pad)
    if pad is None or added is None or node.attrs.get("auto_pad", "NOTSET") != "NOTSET":
        return node
    own: Any = node.attrs.get("pads") or (0,) * len(added)
    pads = tuple(a + b for a, b in zip(own, added, strict=True))
    sources = tuple(dict.fromkeys((*pad.sources, *node.sources)))
    attrs = {**node.attrs, "pads": pads}
    return replace(node, inputs=(pad.inputs[0], *node.inputs[1:]), attrs=attrs, sources=sources)


def _spatial_pads(pad: Node) -> tuple[int, ...] | None:
    """The zeros that a Pad adds around images; None where it is another."""
    (x, pads, fill, axes) = (*pad.inputs, None, None)[:4]
    if pad.attrs.get("mode", "constant") != "constant" or axes is not None or x is None:
        return None
    if pads is None or pads.tensor is None or (fill is not None and not _is_zero(fill)):
        return None
    listed = pads.ints()
    half = len(listed) // 2
    begin, end = listed[:half], listed[half:]
    if half < 3 or any((*begin[:2], *end[:2])) or min(listed) < 0:
        return None
    return (*begin[2:], *end[2:])


def _is_zero(fill: Value) -> bool:
    return fill.tensor is not None and not fill.array().any()
