"""Who makes and who reads the values of a graph, for passes that merge neighbouring nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from serde.ir.graph import Call, Graph, Node, Tensor, Value


class Links:
    """The nodes of a graph by their results, and how often each value is read.

    Reads from subgraphs and by the outputs count.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.uses = graph, graph.uses()
        self.makers = {v: node for node in graph.nodes for v in node.outputs}

    @cached_property
    def readers(self) -> Mapping[Value, list[Node]]:
        """The nodes that read a value, but for those of subgraphs."""
        readers: dict[Value, list[Node]] = {}
        for node in self.graph.nodes:
            for v in {v for v in node.inputs if v is not None}:
                readers.setdefault(v, []).append(node)
        return readers

    def maker(self, value: Value | None, *ops: str) -> Node | None:
        """The node of the standard that computes ``value``, if it is one of ``ops``."""
        node = self.makers.get(value) if value is not None else None
        return node if node is not None and node.op in ops and not node.domain else None

    def sole_maker(self, reader: Node, value: Value | None, *ops: str) -> Node | None:
        """The same, if only ``reader`` reads the value, once, in the same functions."""
        node = self.maker(value, *ops)
        if node is None or value is None or self.uses[value] != 1:
            return None
        return node if calls_of(node) == calls_of(reader) else None

    def sole_reader(self, node: Node, *ops: str) -> Node | None:
        """The node of the standard that alone reads the first result of ``node``.

        None if it is none of ``ops``, or in a subgraph.
        """
        value = node.outputs[0]
        readers = self.readers.get(value, ())
        if self.uses[value] != 1 or len(readers) != 1 or readers[0].domain:
            return None
        return readers[0] if readers[0].op in ops else None


def calls_of(node: Node) -> set[tuple[Call, ...]]:
    """The functions of the source that a node is part of."""
    return {s.calls for s in node.sources}


def constant(name: str, tensor: Tensor) -> Value:
    """A constant of the contents."""
    return Value(name, tensor.dtype, tensor.shape, tensor)


def is_constant(values: Iterable[Value | None]) -> bool:
    """Whether all values that are there are constants."""
    return all(v is None or v.tensor is not None for v in values)


def find_reduced_axes(node: Node) -> set[int] | None:
    """The axes that a reduction names, from the front; None where they are computed, or all are."""
    x, axes = (*node.inputs, None)[:2]
    if x is None or x.shape is None or axes is None or axes.tensor is None:
        return None
    return {axis % x.rank for axis in axes.ints()} or None
