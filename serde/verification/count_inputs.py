"""Inputs that are counts, masks and angles: how large numbers they take."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

import numpy as np

from serde.ir.graph import Graph, Node, Value
from serde.passes.number_sizes import measure
from serde.spec.number_traits import MATRIX_PRODUCTS, PERIODIC, is_elementwise
from serde.spec.traits import COMPARISONS, MOVES, list_moved
from serde.verification.input_uses import Readers, table_size

Array = np.ndarray[Any, Any]
MOST_COUNT = 1 << 18  # of large integers: beyond what float16 has, and exact in float32
MOST_ANGLE = 1e3  # what floats that become angles are multiplied by
# Operands that are sizes, by operator: the first of them.
SIZES = {"Range": 0, "Resize": 1, "RoiAlign": 1, "Upsample": 1, "Loop": 0, "Scan": 0}
INTEGERS = frozenset("iu")
DEPTH = 16


def find_masks(graph: Graph, readers: Readers) -> Set[str]:
    """The inputs of integers that are 0 or 1, as a mask is made of them."""
    integers = _list_integers(graph, readers)
    return {v.name for v in integers if _makes_mask(v, readers)}


def find_counts(graph: Graph, readers: Readers) -> Set[str]:
    """The inputs whose integers may be of any size: they only become floats to compute with.

    Indices, sizes and lengths may not, nor what a mask is made of.
    """
    masks = find_masks(graph, readers)
    return {v.name for v in _list_integers(graph, readers)
            if v.name not in masks and v.type.bits > 8 and _is_count(v, readers)}  # fmt: skip


def find_angles(graph: Graph, readers: Readers) -> Set[str]:
    """The inputs of floats that become arguments of Sin, Cos or Tan."""
    return {v.name for v in graph.inputs
            if v.dtype is not None and v.type.kind == "f" and not v.container
            and _is_angle(v, readers)}  # fmt: skip


def draw_counts(x: Array, rng: np.random.Generator) -> Array:
    """Integers of all magnitudes up to ``MOST_COUNT``, as far as the type has them.

    Floats become angles of up to some thousands.
    """
    if x.dtype.kind == "f":
        return np.asarray(np.abs(x) * MOST_ANGLE, x.dtype)
    most = min(MOST_COUNT, np.iinfo(x.dtype).max)
    return np.asarray(2 ** rng.uniform(0, np.log2(most), x.shape), x.dtype)


def _list_integers(graph: Graph, readers: Readers) -> Iterator[Value]:
    for value in graph.inputs:
        is_integer = value.dtype is not None and value.type.kind in INTEGERS
        if is_integer and not value.container and table_size(value, readers) is None:
            yield value


def _makes_mask(value: Value, readers: Readers, depth: int = DEPTH) -> bool:
    """Whether elementwise operators make a mask of a value: its product with a large constant."""
    for node, at in readers.get(value, ()) if depth else ():
        if not _passes(node, at):
            continue
        constants = (v for v in node.inputs if v is not None and v.tensor is not None)
        if node.op == "Mul" and any(measure(v).is_mask for v in constants):
            return True
        if any(_makes_mask(y, readers, depth - 1) for y in node.outputs):
            return True
    return False


def _is_angle(value: Value, readers: Readers, depth: int = DEPTH) -> bool:
    return depth > 0 and any(
        node.op in PERIODIC
        or (
            (_passes(node, at) or node.op in MATRIX_PRODUCTS)
            and _is_angle(node.outputs[0], readers, depth - 1)
        )
        for node, at in readers.get(value, ())
    )


def _passes(node: Node, at: int) -> bool:
    """Whether an operator moves elements of an operand, or computes with them one by one."""
    if node.domain or not (is_elementwise(node.op) or node.op in ("Cast", "CumSum")):
        return False
    return node.op not in MOVES or node.inputs[at] in list(list_moved(node))


def _is_count(value: Value, readers: Readers, depth: int = DEPTH) -> bool:
    """Whether integers, or floats made of them, are no index, size, length or mask."""
    return depth > 0 and bool(readers.get(value)) and all(
        _takes_count(node, at, readers, depth) for node, at in readers[value]
    )  # fmt: skip


def _takes_count(node: Node, at: int, readers: Readers, depth: int) -> bool:
    value, y = node.inputs[at], node.outputs[0]
    if node.domain or at >= SIZES.get(node.op, 1 << 16) or is_class(node, at):
        return False
    if value is None or value.dtype is None or y.dtype is None:
        return False
    if not _passes(node, at):
        return value.type.kind == "f" or node.op in COMPARISONS
    return y.type.kind in "fiub" and (y not in readers or _is_count(y, readers, depth - 1))


def is_class(node: Node, at: int) -> bool:
    """Whether an operand is compared with 0, 1, 2, …: one-hot, of floats."""
    other = node.inputs[1 - at] if node.op == "Equal" else None
    if other is None or other.tensor is None or other.tensor.size < 2:
        return False
    return bool(np.array_equal(other.tensor.load().ravel(), np.arange(other.tensor.size)))
