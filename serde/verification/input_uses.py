"""What the inputs of a model are used for."""

from __future__ import annotations

from collections.abc import Mapping

from serde.ir.graph import Graph, Node, Value
from serde.spec.traits import ARRANGES

Readers = Mapping[Value, list[tuple[Node, int]]]
# Operators that pass an index on as it is.
PASSED_ON = ARRANGES | {"Cast", "Clip", "Max", "Min"}


def readers_of(graph: Graph) -> dict[Value, list[tuple[Node, int]]]:
    """The nodes that read each value, and as which operand, those of subgraphs included."""
    readers: dict[Value, list[tuple[Node, int]]] = {}
    for node in graph.all_nodes():
        for at, value in enumerate(node.inputs):
            if value is not None:
                readers.setdefault(value, []).append((node, at))
    return readers


def table_size(value: Value, readers: Readers, depth: int = 8) -> int | None:
    """The size of the table that ``value`` indexes, None if it is no index."""
    for node, at in readers.get(value, ()) if depth else ():
        if node.op == "Gather" and at == 1 and node.inputs[0] is not None:
            axis = node.attrs.get("axis", 0)
            shape = node.inputs[0].shape
            rows = shape[axis] if shape is not None and isinstance(axis, int) else None
            return rows if isinstance(rows, int) else None
        if node.op in PASSED_ON and at == 0:
            size = table_size(node.outputs[0], readers, depth - 1)
            if size is not None:
                return size
    return None
