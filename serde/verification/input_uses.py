"""What the inputs of a model are used for."""

from __future__ import annotations

from collections.abc import Mapping

from serde.ir.graph import Dim, Graph, Node, Shape, Value
from serde.spec.traits import ARRANGES, INDEXES

Readers = Mapping[Value, list[tuple[Node, int]]]
# Operators that pass an index on as it is.
PASSED_ON = ARRANGES | {"Cast", "Clip", "Max", "Min"}
WITH_AXES = frozenset({"GatherND", "ScatterND"})  # whose index is one for several axes


def readers_of(graph: Graph) -> dict[Value, list[tuple[Node, int]]]:
    """The nodes that read each value, and as which operand, those of subgraphs included."""
    readers: dict[Value, list[tuple[Node, int]]] = {}
    for node in graph.all_nodes():
        for at, value in enumerate(node.inputs):
            if value is not None:
                readers.setdefault(value, []).append((node, at))
    return readers


def table_size(value: Value, readers: Readers, depth: int = 8) -> Dim:
    """The size of the table that ``value`` indexes, the least of its axes; None if it is no index.

    A size has a name where only the inputs tell it.
    """
    for node, at in readers.get(value, ()) if depth else ():
        if at == 1 and node.op in INDEXES and node.inputs[0] is not None:
            return _least(_list_indexed(node, node.inputs[0].shape))
        if node.op in PASSED_ON and at == 0:
            size = table_size(node.outputs[0], readers, depth - 1)
            if size is not None:
                return size
    return None


def _list_indexed(node: Node, shape: Shape | None) -> Shape:
    """The sizes of the axes of an operand of this shape that a node's indices are of."""
    if shape is None:
        return ()
    if node.op not in WITH_AXES:
        axis = node.attrs.get("axis", 0)
        is_there = isinstance(axis, int) and -len(shape) <= axis < len(shape)
        return (shape[axis],) if is_there and isinstance(axis, int) else ()
    indices, first = node.inputs[1], node.attrs.get("batch_dims", 0)
    count = indices.shape[-1] if indices is not None and indices.shape else None
    if not isinstance(first, int):
        return ()
    return shape[first : first + count] if isinstance(count, int) else shape[first:]


def _least(sizes: Shape) -> Dim:
    """The least of some sizes; 1 where a name may be less, None where one is unknown."""
    if not sizes or None in sizes:
        return None
    numbers = [d for d in sizes if isinstance(d, int)]
    return min(numbers) if len(numbers) == len(sizes) else sizes[0] if len({*sizes}) == 1 else 1
