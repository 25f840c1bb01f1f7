"""A graph with its nodes and values by number."""

from __future__ import annotations

from serde.ir.graph import Graph, Value
from serde.ir.values_read import values_read

from .costs import count_bytes
from .stages import Dataflow


class Numbered:
    """A graph and the numbers of its nodes and values."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        ids: dict[Value, int] = {}

        def number(value: Value) -> int:
            return ids.setdefault(value, len(ids))

        for value in graph.inputs:
            number(value)
        reads = [list(dict.fromkeys(number(v) for v in values_read(n))) for n in graph.nodes]
        makes = [[number(v) for v in n.outputs if v.name] for n in graph.nodes]
        leaving = set(graph.outputs)
        self.values = list(ids)
        sizes = [count_bytes(v) for v in self.values]
        self.flow = Dataflow(reads, makes, sizes, [v in leaving for v in self.values])
