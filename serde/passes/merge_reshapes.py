"""Nodes that only rearrange axes, one after the other, as one Reshape.

Its shape is a constant: sizes that are no numbers are one that is left to -1, or all of them those
in the same place. ``Unsqueeze`` after ``Unsqueeze`` is one of any shape.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.constants import make_constant
from serde.ir.graph import Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_values
from serde.passes.dce import drop_dead
from serde.rewrite.patterns import Neighbours

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
    near = Neighbours(graph)
    nodes, origins, instead = [], dict[Value, Value](), dict[Value, Value]()
    for node in graph.nodes:
        x = node.inputs[0] if _is_reshaping(node) else None
        before = near.sole_maker(node, x, *REARRANGING) if x is not None else None
        if x is None or before is None or not _is_reshaping(before):
            nodes.append(node)
            continue
        origin = origins.get(x, before.inputs[0])
        assert origin is not None
        (result,) = node.outputs
        shape = _find_target(origin, result)
        if shape is None:
            nodes.append(node)
            continue
        origins[result] = origin
        if origin.shape == result.shape and result not in graph.outputs:
            instead[result] = instead.get(origin, origin)
        else:
            nodes.append(_reshape(origin, before, node, shape))
    if not origins:
        return graph
    return drop_dead(replace_values(replace(graph, nodes=tuple(nodes)), instead))


def merge_unsqueezes(graph: Graph) -> Graph:
    """Return ``graph`` with each chain of ``Unsqueeze`` as one."""
    near, merged = Neighbours(graph), dict[Value, Node]()
    for node in graph.nodes:
        if node.op != "Unsqueeze" or node.domain:
            continue
        before = near.sole_maker(node, node.inputs[0], "Unsqueeze")
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
    axes = make_constant(f"{node.outputs[0].name}/axes", Tensor.of(np.array(added, np.int64)))
    sources = tuple(dict.fromkeys((*before.sources, *node.sources)))
    return replace(node, inputs=(before.inputs[0], axes), sources=sources)


def _is_reshaping(node: Node) -> bool:
    """Whether a node gives the elements in the order in which it reads them."""
    x = node.inputs[0] if node.inputs and node.op in REARRANGING else None
    if node.domain or x is None or x.shape is None or node.outputs[0].shape is None:
        return False
    if node.op != "Transpose":
        return True
    perm: Any = node.attrs.get("perm") or tuple(reversed(range(x.rank)))
    kept = [axis for axis in perm if x.shape[axis] != 1]
    return kept == sorted(kept)


def _find_target(x: Value, y: Value) -> list[int] | None:
    """The shape that a Reshape of ``x`` to ``y`` is given, None where no constant is that."""
    before, after = x.ranked_shape, y.ranked_shape
    if 0 in before or 0 in after:
        return None
    shape = [d if isinstance(d, int) else -1 for d in after]
    if shape.count(-1) > 1:
        places = enumerate(zip(before, after, strict=False))
        for at in (i for i, (a, b) in places if isinstance(a, str) and a == b):
            shape[at] = 0  # as it is there; beside it none is left to -1, as it may be 0
    return shape if shape.count(-1) + (0 in shape) <= 1 else None


def _reshape(origin: Value, before: Node, node: Node, shape: list[int]) -> Node:
    (result,) = node.outputs
    sources = tuple(dict.fromkeys((*before.sources, *node.sources)))
    operands = (origin, make_constant(f"{result.name}/shape", Tensor.of(np.array(shape, np.int64))))
    return Node("Reshape", operands, (result,), {"allowzero": 0}, "", node.name, sources)
