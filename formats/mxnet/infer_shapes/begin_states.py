"""Sizes of zeros that only their use tells, as those of the begin states of unrolled RNN cells."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from serde.errors import ConversionError
from serde.ir.geometry import Ints
from serde.ir.graph import Graph, Node, Shape

from ..rules import parse
from .propagate import Propagation

OF_ANY_SIZE = frozenset({"_zeros", "_zeros_without_dtype"})


def infer_zeros_sizes(graph: Graph) -> Graph:
    """``graph`` with a number for each size of zeros that is 0 and that their use determines.

    MXNet infers these sizes; one that has a name, or that nothing determines, stays 0.
    """
    open_ = {node: shape for node in graph.nodes if (shape := _open_shape(node)) is not None}
    if not open_:
        return graph
    known = Propagation(graph.nodes, {node.outputs[0]: shape for node, shape in open_.items()})
    known.run()

    def set_sizes(node: Node) -> Node:
        if node not in open_:
            return node
        shape = known.shape_of(node.outputs[0]) or ()
        text = str(tuple(d if isinstance(d, int) else 0 for d in shape))
        return replace(node, attrs=MappingProxyType({**node.attrs, "shape": text}))

    return replace(graph, nodes=tuple(map(set_sizes, graph.nodes)))


def has_open_zeros(graph: Graph) -> bool:
    """Whether a size of some zeros is still 0: they are of size 1 there, and broadcast."""
    return any(_open_shape(node) is not None for node in graph.nodes)


def _open_shape(node: Node) -> Shape | None:
    """The shape that zeros are given, if a size of it is 0: None for each of those."""
    if node.op not in OF_ANY_SIZE:
        return None
    try:
        shape = parse(Ints, str(node.attrs.get("shape", "()")))
    except ConversionError:
        return None  # the operator's rule will say what is wrong
    return tuple(d or None for d in shape) if 0 in shape else None
