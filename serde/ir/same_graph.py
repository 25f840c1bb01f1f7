"""Whether two graphs are the same but for the names of inner values."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from serde.ir.graph import Graph, Node, Value


def is_same_graph(a: Graph, b: Graph) -> bool:
    """Whether two graphs have the same nodes, of values of the same types and shapes, in order.

    Inputs and outputs have to be called the same. Constants are compared by type and shape.
    """
    return a is b or _Comparison().compare_graphs(a, b)


class _Comparison:
    def __init__(self) -> None:
        self.pairs: dict[Value, Value] = {}  # a value of the first graph: that of the second

    def compare_graphs(self, a: Graph, b: Graph) -> bool:
        ends = ((a.inputs, b.inputs), (a.outputs, b.outputs))
        is_named = all([v.name for v in x] == [v.name for v in y] for x, y in ends)
        return is_named and len(a.functions) == len(b.functions) and self.compare_bodies(a, b)

    def compare_bodies(self, a: Graph, b: Graph) -> bool:
        return (
            self.compare_values(a.inputs, b.inputs)
            and len(a.nodes) == len(b.nodes)
            and all(map(self.compare_nodes, a.nodes, b.nodes))
            and self.compare_values(a.outputs, b.outputs)
        )

    def compare_nodes(self, a: Node, b: Node) -> bool:
        return (
            (a.op, a.domain) == (b.op, b.domain)
            and self.compare_values(a.inputs, b.inputs)
            and a.attrs.keys() == b.attrs.keys()
            and all(self.compare_attributes(v, b.attrs[n]) for n, v in a.attrs.items())
            and self.compare_values(a.outputs, b.outputs)
        )

    def compare_attributes(self, a: Any, b: Any) -> bool:
        if isinstance(a, Graph) and isinstance(b, Graph):
            return self.compare_bodies(a, b)
        return a is b or bool(a == b)

    def compare_values(self, a: Iterable[Value | None], b: Iterable[Value | None]) -> bool:
        return all(self.compare_value(x, y) for x, y in zip_longest(a, b))

    def compare_value(self, a: Value | None, b: Value | None) -> bool:
        if a is None or b is None:
            return a is b
        if self.pairs.setdefault(a, b) is not b:
            return a.tensor is not None and b.tensor is not None and _kind(a) == _kind(b)
        return _kind(a) == _kind(b)


def _kind(value: Value) -> tuple[Any, ...]:
    return value.dtype, value.shape, value.container, value.tensor is None
