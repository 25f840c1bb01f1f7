"""Sparse weights, made dense: levels of axes, each whole or with the indices that are not zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .read_flatbuffer import Bytes, Span

Array = np.ndarray[Any, Any]
WHOLE = 0  # of the enumeration DimensionType


def make_dense(table: Mapping[str, Any], values: Array, shape: Sequence[int], data: Bytes) -> Array:
    """The weight whose elements other than zero are ``values``, by its ``SparsityParameters``.

    Raises:
        ValueError: where they do not fit each other.
    """
    order, blocks = table.get("traversal_order", ()), table.get("block_map", ())
    levels: Sequence[Mapping[str, Any]] = table.get("dim_metadata", ())
    rank = len(shape)
    if sorted(order) != [*range(rank + len(blocks))] or len(levels) != len(order):
        raise ValueError("its axes are not those of its levels")
    if any(not 0 <= axis < rank for axis in blocks):
        raise ValueError("a block of an axis that it lacks")
    places = _follow(levels, len(values), data)
    sizes = {dim: level["dense_size"] for dim, level in zip(order, levels, strict=True)}
    index = {dim: places[at] for at, dim in enumerate(order)}
    axes = [index[axis] for axis in range(rank)]
    for at, axis in enumerate(blocks):
        axes[axis] = axes[axis] * sizes[rank + at] + index[rank + at]
    dense = np.zeros(shape, values.dtype)
    dense.reshape(-1)[np.ravel_multi_index(axes, tuple(shape))] = values  # refuses other indices
    return dense


def _follow(levels: Sequence[Mapping[str, Any]], count: int, data: Bytes) -> list[Array]:
    """The index of each value along each level."""
    segments = [_numbers(level, "array_segments", data) for level in levels]
    most = max([count, *(len(s) - 1 for s in segments)])  # prefixes that a level may have
    places: list[Array] = []
    prefixes = 1
    for level, bounds in zip(levels, segments, strict=True):
        if level["format"] == WHOLE:
            size = level["dense_size"]
            if not 0 <= size <= most or prefixes * size > most:
                raise ValueError(f"it has {count} elements, and a level of {size}")
            parents, indices = (
                np.repeat(np.arange(prefixes), size),
                np.tile(np.arange(size), prefixes),
            )
        else:
            indices = _numbers(level, "array_indices", data)
            lengths = np.diff(bounds)
            if len(lengths) != prefixes or (lengths < 0).any() or lengths.sum() != len(indices):
                raise ValueError("segments of a level that do not fit it")
            parents = np.repeat(np.arange(prefixes), lengths)
        places = [*(p[parents] for p in places), indices]
        prefixes = len(indices)
    if prefixes != count:
        raise ValueError(f"its levels have {prefixes} elements, and {count} are there")
    return places


def _numbers(level: Mapping[str, Any], name: str, data: Bytes) -> Array:
    """A vector of a level, of numbers of one of three widths."""
    _, table = level.get(name, ("", {}))
    values = table.get("values", ())
    if isinstance(values, Span):
        values = np.frombuffer(data[values.start : values.start + values.size], np.uint8)
    return np.asarray(values, np.int64)
