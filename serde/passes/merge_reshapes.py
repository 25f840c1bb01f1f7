"""Nodes that only rearrange axes of static shapes, one after the other, as one Reshape.

``Unsqueeze`` after ``Unsqueeze`` is one of any shape.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.graph import Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_values
from serde.passes.dce import drop_dead
from serde.passes.links import Links, constant

RESHAPING = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
REARRANGING = (*RESHAPING, "Transpose")


def merge_reshapes(graph: Graph) -> Graph:
    """Return ``graph`` with each chain of such nodes as one; subgraphs are left as they are.

    A Transpose that moves axes of size 1 only is such a node. Nodes that others read too stay. What
    comes back to the shape that it was made of is that.
    """
    if not any(node.op in RESHAPING for node in graph.nodes):
        return graph
    makers = {v: node for node in graph.nodes if node.op in REARRANGING for v in node.outputs}
    if not any(v in makers for node in makers.values() for v in node.inputs[:1]):
        return graph
    graph = merge_unsqueezes(graph)
    links = Links(graph)
    nodes, origins, instead = [], dict[Value, Value](), dict[Value, Value]()
    for node in graph.nodes:
        x = node.inputs[0] if _is_reshaping(node) else None
        before = links.sole_maker(node, x, *REARRANGING) if x is not None else None
        if x is None or before is None or not _is_reshaping(before):
            nodes.append(node)
            continue
        origin = origins.get(x, before.inputs[0])
        assert origin is not None
        (result,) = node.outputs
        origins[result] = origin
        if origin.shape == result.shape and result not in graph.outputs:
            instead[result] = instead.get(origin, origin)
        else:
            nodes.append(_reshape(origin, before, node))
    if not origins:
        return graph
    return drop_dead(replace_values(replace(graph, nodes=tuple(nodes)), instead))


def merge_unsqueezes(graph: Graph) -> Graph:
    """Return ``graph`` with each chain of ``Unsqueeze`` as one."""
    links, merged = Links(graph), dict[Value, Node]()
    for node in graph.nodes:
        if node.op != "Unsqueeze" or node.domain:
            continue
        before = links.sole_maker(node, node.inputs[0], "Unsqueeze")
        before = merged.get(before.outputs[0], before) if before is not None else None
        added = _added_axes(before, node) if before is not None else None
        if before is not None and added is not None:
            merged[node.outputs[0]] = _unsqueeze(before, node, added)
    if not merged:
        return graph
    nodes = tuple(merged.get(node.outputs[0], node) for node in graph.nodes)
    return drop_dead(replace(graph, nodes=nodes))


def _added_axes(before: Node, node: Node) -> list[int] | None:
    """The axes that two nodes add together, None where they are not known."""
    (x, inner), outer = before.inputs, node.inputs[1]
    if x is None or x.shape is None or inner is None or outer is None:
        return None
    if inner.tensor is None or outer.tensor is None:
        return None
    count = len(inner.ints()) + len(outer.ints())
    own = {axis % (x.rank + count) for axis in outer.ints()}
    kept = [axis for axis in range(x.rank + count) if axis not in own]
    return sorted(own | {kept[axis % len(kept)] for axis in inner.ints()})


def _unsqueeze(before: Node, node: Node, added: list[int]) -> Node:
    axes = constant(f"{node.outputs[0].name}/axes", Tensor.of(np.array(added, np.int64)))
    sources = tuple(dict.fromkeys((*before.sources, *node.sources)))
    return replace(node, inputs=(before.inputs[0], axes), sources=sources)


def _is_reshaping(node: Node) -> bool:
    """Whether a node gives the elements in the order in which it reads them."""
    x = node.inputs[0] if node.inputs and node.op in REARRANGING else None
    if node.domain or x is None or not x.is_static or not node.outputs[0].is_static:
        return False
    if 0 in x.static_shape:
        return False
    if node.op != "Transpose":
        return True
    perm: Any = node.attrs.get("perm") or tuple(reversed(range(x.rank)))
    kept = [axis for axis in perm if x.static_shape[axis] != 1]
    return kept == sorted(kept)


def _reshape(origin: Value, before: Node, node: Node) -> Node:
    (result,) = node.outputs
    shape = np.array(result.static_shape, np.int64)
    sources = tuple(dict.fromkeys((*before.sources, *node.sources)))
    operands = (origin, constant(f"{result.name}/shape", Tensor.of(shape)))
    return Node("Reshape", operands, (result,), {"allowzero": 0}, "", node.name, sources)
