"""A reduction of what the same one reduced along other axes, as one."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np

from serde.ir.graph import DType, Graph, Node, Tensor
from serde.passes.dce import drop_dead
from serde.passes.links import Links, constant

EXTREMES = frozenset({"ReduceMax", "ReduceMin"})
SUMS = frozenset({"ReduceL1", "ReduceMean", "ReduceProd", "ReduceSum"})  # of these elements:
PRECISE = frozenset({DType.FLOAT32, DType.FLOAT64})


def merge_reductions(graph: Graph) -> Graph:
    """Return ``graph`` with such reductions merged; subgraphs are left as they are.

    One that others read too stays. A mean of means is that of all elements: each is of as many.
    """
    if sum(node.op in EXTREMES or node.op in SUMS for node in graph.nodes) < 2:
        return graph
    links, nodes = Links(graph), []
    for node in graph.nodes:
        merged = _merge(node, links)
        nodes.append(merged)
        if merged is not node:
            links.makers[node.outputs[0]] = merged
    if all(map(operator.is_, nodes, graph.nodes)):
        return graph
    return drop_dead(replace(graph, nodes=tuple(nodes)))


def _merge(node: Node, links: Links) -> Node:
    axes = _axes_of(node)
    before = links.sole_maker(node, node.inputs[0], node.op) if axes is not None else None
    first = _axes_of(before) if before is not None else None
    if axes is None or before is None or first is None:
        return node
    keepdims = node.attrs.get("keepdims", 1)
    x = before.inputs[0]
    if x is None or before.attrs.get("keepdims", 1) != keepdims:
        return node
    left = [a for a in range(x.rank) if keepdims or a not in first]
    every = np.array(sorted({*first, *(left[a] for a in axes)}), np.int64)
    operand = constant(f"{node.outputs[0].name}/axes", Tensor.of(every))
    sources = tuple(dict.fromkeys((*before.sources, *node.sources)))
    return replace(node, inputs=(x, operand), sources=sources)


def _axes_of(node: Node) -> set[int] | None:
    """The axes that a reduction reduces; None of other nodes, and where they are not known."""
    if node.domain or (node.op not in EXTREMES and node.op not in SUMS):
        return None
    x, axes = (*node.inputs, None)[:2]
    if x is None or x.shape is None or (node.op in SUMS and x.dtype not in PRECISE):
        return None
    if axes is None or axes.tensor is None or not axes.tensor.size:
        return None
    return {axis % x.rank for axis in axes.ints()}
