"""Samples that pnnx is told of before a Reshape changes how many there are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Value

from ..used_names import used_names

WINDOWS = range(3, 6)  # ranks of what pools take


def anchor_samples(graph: Graph, sampled: Collection[str]) -> Graph:
    """Return a graph with a pool of one element before a Reshape of the samples.

    pnnx follows the samples of an operator of ``sampled`` back through the Reshape, to another axis
    than the first, where no such operator tells otherwise.
    """
    names = used_names(graph)
    nodes, known = list[Node](), set[Value | None]()
    for node in graph.nodes:
        is_known = node.op in sampled or not known.isdisjoint(node.inputs)
        if not is_known and is_other_count(node):
            pool, node = pool_before(node, names)
            nodes.append(pool)
            is_known = True
        known.update(node.outputs if is_known else ())
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def is_other_count(node: Node) -> bool:
    """Whether a node is a Reshape to another number of samples."""
    x = node.inputs[0] if node.op == "Reshape" else None
    if x is None or x.tensor is not None or x.rank not in WINDOWS:
        return False
    y = node.outputs[0]
    return y.rank in WINDOWS and x.ranked_shape[0] != y.ranked_shape[0]


def pool_before(node: Node, names: Names) -> tuple[Node, Node]:
    """A pool of one element, and the node that reads it."""
    x = node.inputs[0]
    assert x is not None
    pooled = replace(x, name=names.fresh(f"{x.name}/samples"))
    one = (1,) * (x.rank - 2)
    attrs = {"kernel_shape": one, "strides": one}
    pool = Node("MaxPool", (x,), (pooled,), attrs, "", pooled.name)
    return pool, replace(node, inputs=(pooled, *node.inputs[1:]))
