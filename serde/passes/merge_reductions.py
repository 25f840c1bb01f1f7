"""A reduction of what the same one reduced along other axes, as one."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np

from serde.ir.graph import DType, Graph, Node, Tensor
from serde.passes.dce import drop_dead
from serde.passes.links import Links, constant, find_reduced_axes

EXTREMES = frozenset({"ReduceMax", "ReduceMin"})
REDUCTIONS = EXTREMES | {"ReduceL1", "ReduceMean", "ReduceProd", "ReduceSum"}
PRECISE = frozenset({DType.FLOAT32, DType.FLOAT64})  # elements of which sums are merged


def merge_reductions(graph: Graph) -> Graph:
    """Return ``graph`` with such reductions merged; subgraphs are left as they are.

    One that others read too stays. A mean of means is that of all elements: each is of as many.
    """
    if sum(node.op in REDUCTIONS for node in graph.nodes) < 2:
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
    """The axes that such a reduction reduces; None of other nodes, and where they are not known."""
    if node.domain or node.op not in REDUCTIONS:
        return None
    x = node.inputs[0]
    is_rounded = node.op not in EXTREMES and (x is None or x.dtype not in PRECISE)
    return None if is_rounded else find_reduced_axes(node)
