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


def infer_zeros_sizes(graph: Graph, unknown: int = 0) -> Graph:
    """``graph`` with a number for each ``unknown`` size of zeros that their use determines.

    MXNet infers these sizes; one that has a name, or that nothing determines, stays unknown: 0, or
    -1 where shapes are NumPy's.
    """
    shapes = ((node, _open_shape(node, unknown)) for node in graph.nodes)
    open_ = {node: shape for node, shape in shapes if shape is not None}
    if not open_:
        return graph
    known = Propagation(graph.nodes, {node.outputs[0]: shape for node, shape in open_.items()})
    known.run()

    def set_sizes(node: Node) -> Node:
        if node not in open_:
            return node
        shape = known.shape_of(node.outputs[0]) or ()
        text = str(tuple(d if isinstance(d, int) else unknown for d in shape))
        return replace(node, attrs=MappingProxyType({**node.attrs, "shape": text}))

    return replace(graph, nodes=tuple(map(set_sizes, graph.nodes)))


def has_open_zeros(graph: Graph) -> bool:
    """Whether a size of some zeros is still 0: they are of size 1 there, and broadcast."""
    return any(_open_shape(node, 0) is not None for node in graph.nodes)


def _open_shape(node: Node, unknown: int) -> Shape | None:
    """The shape that zeros are given, if a size of it is unknown: None for each of those."""
    if node.op not in OF_ANY_SIZE:
        return None
    try:
        shape = parse(Ints, str(node.attrs.get("shape", "()")))
    except ConversionError:
        return None  # the operator's rule will say what is wrong
    return tuple(None if d == unknown else d for d in shape) if unknown in shape else None
