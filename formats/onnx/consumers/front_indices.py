"""Indices that count from the front, for runtimes that take no others."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import Value
from serde.version_converter.adapters.common import size


def count_from_front(g, x: Value, indices: Value, axis: int):
    """The indices of an axis of ``x``, itself where none is negative."""
    if is_from_front(indices):
        return indices
    behind = g.Where(g.Less(indices, 0), g.cast_like(size(g, x, axis), indices), 0)
    return g.Add(indices, behind)


def count_rows_from_front(g, x: Value, indices: Value):
    """Rows of indices of the first axes of ``x``, as ``GatherND`` and ``ScatterND`` have them."""
    if is_from_front(indices):
        return indices
    depth = indices.ranked_shape[-1]
    require(isinstance(depth, int), "indices of a dynamic number of axes")
    dims = g.cast_like(g.Shape(x, start=0, end=depth), indices)
    return g.Where(g.Less(indices, 0), g.Add(indices, dims), indices)


def is_from_front(indices: Value) -> bool:
    """Whether indices are constants of which none is negative."""
    return indices.tensor is not None and bool((indices.array() >= 0).all())
