"""Indices that count from the front, for runtimes that take no others."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import Value
from serde.legalize.forms.form import STATIC
from serde.version_converter.adapters.common import size

EVERY, FIRST, RESULTS, NONE = slice(None), slice(1), slice(1, None), slice(0)
# Operators that make no negative number of these of their operands, where none of these is.
UP = {
    **dict.fromkeys(("Add", "Concat", "Mul"), EVERY),
    **dict.fromkeys(("Cast", "Expand", "Identity", "Reshape", "Squeeze", "Tile"), FIRST),
    **dict.fromkeys(("Gather", "GatherElements", "GatherND", "Slice", "Split"), FIRST),
    **dict.fromkeys(("Transpose", "Unsqueeze"), FIRST),
    **dict.fromkeys(("ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Shape", "Size"), NONE),
    "Where": RESULTS,
    "Range": slice(0, None, 2),  # where it starts, and the step
}
PLACED = frozenset({"MaxPool", "TopK", "Unique"})  # whose results are places, but for the first


def count_from_front(g, x: Value, indices: Value, axis: int):
    """The indices of an axis of ``x``, itself where none is negative."""
    if is_from_front(g, indices):
        return indices
    behind = g.Where(g.Less(indices, 0), g.cast_like(size(g, x, axis), indices), 0)
    return g.Add(indices, behind)


def count_rows_from_front(g, x: Value, indices: Value):
    """Rows of indices of the first axes of ``x``, as ``GatherND`` and ``ScatterND`` have them."""
    if is_from_front(g, indices):
        return indices
    depth = indices.ranked_shape[-1]
    require(isinstance(depth, int), f"indices of a dynamic number of axes. {STATIC}")
    dims = g.cast_like(g.Shape(x, start=0, end=depth), indices)
    return g.Where(g.Less(indices, 0), g.Add(indices, dims), indices)


def is_from_front(g, indices: Value) -> bool:
    """Whether none of the indices is negative: constants, and places in what counts up from 0."""
    values, seen = [indices], set()
    while values:
        value = values.pop()
        if value in seen:
            continue
        seen.add(value)
        node = g.producer(value)
        if value.tensor is not None:
            if (value.array() < 0).any():
                return False
        elif node is None:
            return False
        elif node.op in PLACED and value is not node.outputs[0]:
            continue
        elif node.op not in UP:
            return False
        else:
            values += node.inputs[UP[node.op]]
    return True
