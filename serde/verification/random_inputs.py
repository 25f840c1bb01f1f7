"""Seeded inputs for a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from serde.errors import UsageError
from serde.graph import Graph, Node, Value

Array = np.ndarray[Any, Any]
SEED = 0
NAMED_SIZES = {"N": 2, "batch": 2, "batch_size": 2}
OTHER_SIZE, IMAGE_SIZE = 8, 64  # for other named dimensions; for those of an image
PASSED_ON = frozenset(
    {"Cast", "Clip", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Max", "Min"}
)


def random_inputs(graph: Graph, seed: int = SEED) -> dict[str, Array]:
    """Seeded inputs for a model: normal floats, small integers, valid indices for look-ups."""
    rng = np.random.default_rng(seed)
    readers: dict[Value, list[tuple[Node, int]]] = {}
    for node in graph.nodes:
        for at, value in enumerate(node.inputs):
            if value is not None:
                readers.setdefault(value, []).append((node, at))
    named: dict[str, int] = {}
    feeds = {}
    for value in graph.inputs:
        shape = tuple(_size(d, i, len(value.known), named) for i, d in enumerate(value.known))
        rows = _rows(value, readers, 8)
        feeds[value.name] = _random(rng, value, shape, rows)
    return feeds


def _size(dim: Any, axis: int, rank: int, named: dict[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    default = 2 if axis == 0 else IMAGE_SIZE if rank >= 4 and axis >= 2 else OTHER_SIZE
    if dim is None:
        return default
    return named.setdefault(dim, NAMED_SIZES.get(dim, default))


def _rows(value: Value, readers: Mapping[Value, list[tuple[Node, int]]], depth: int) -> int | None:
    """The size of the table that ``value`` indexes, None if it is no index."""
    for node, at in readers.get(value, ()) if depth else ():
        if node.op == "Gather" and at == 1 and node.inputs[0] is not None:
            axis = node.attrs.get("axis", 0)
            shape = node.inputs[0].shape
            rows = shape[axis] if shape is not None and isinstance(axis, int) else None
            return rows if isinstance(rows, int) else None
        if node.op in PASSED_ON and at == 0:
            found = _rows(node.outputs[0], readers, depth - 1)
            if found is not None:
                return found
    return None


def _random(
    rng: np.random.Generator, value: Value, shape: tuple[int, ...], rows: int | None
) -> Array:
    dtype = value.type
    if rows is not None or dtype.kind in "iu":
        return rng.integers(0, rows or 8, shape).astype(dtype.numpy)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind != "f":
        raise UsageError(f"no random inputs of type {dtype.value}: give data")
    return rng.standard_normal(shape).astype(dtype.numpy)
