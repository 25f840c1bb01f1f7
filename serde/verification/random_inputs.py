"""Seeded inputs for a model."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from serde.errors import UsageError
from serde.io.memory import find_memory_limit
from serde.ir.graph import Dim, DType, Graph, Node, Shape, Value, show_shape
from serde.passes.change_batch import fix_dimensions
from serde.passes.name_dimensions import name_dimensions
from serde.spec.traits import BROADCASTS, COMPARISONS
from serde.verification.count_inputs import find_masks
from serde.verification.fitting_sizes import fitting_sizes
from serde.verification.given_arrays import is_sequence
from serde.verification.input_uses import PASSED_ON, Readers, readers_of, table_size

Array = np.ndarray[Any, Any]
SEED = 0
DIGITS = "0123456789"
NAMED_SIZES = {"N": 2, "batch": 2, "batch_size": 2}
VARIANCE = 4  # place among the operands of BatchNormalization
OTHER_SIZE, IMAGE_SIZE = 8, 64  # for other named dimensions; for those of an image
# Operators with an operand of lengths, its place, and the attribute that says of which axis.
LENGTHS = {"GatherND": (1, "batch_dims"), "ReverseSequence": (1, "time_axis")}
LENGTHS |= dict.fromkeys(("GRU", "LSTM", "RNN"), (4, "layout"))
TEXTS = ("", "a", "B", "two words", "7", "\u00e9t\u00e9")
MOST_SAMPLES = 8  # where all sizes are tried alike
MOST_STEPS = 1 << 16  # of a table of places
BYTES_DRAWN = 8  # of each number, whatever it becomes


def make_random_inputs(
    graph: Graph, seed: int = SEED, ir: Graph | None = None, size: int | None = None
) -> dict[str, Any]:
    """Seeded inputs for a model: normal floats, small integers, valid indices for look-ups.

    A variance is positive, a length one that sequences have, a mask 0 or 1. A
    sequence is a list of two arrays.

    ``ir`` is the graph of the IR that ``graph`` was made from, if it was: it says which inputs are
    indices, and which sizes fit. ``size`` is that of all dimensions without a number, where it is
    not to be found out; a large one is not that of first axes, which are mostly of samples.
    """
    rng = np.random.default_rng(seed)
    ir = graph if ir is None else ir
    readers = readers_of(ir)
    ranges = find_ranges(readers)
    known, masks = {v.name: v for v in ir.inputs}, find_masks(ir, readers)
    choose_size = _default_size if size is None else partial(_choose_alike, size)
    all_named = name_dimensions(ir)
    dims = {v.name: v.shape for v in all_named.inputs}
    named: dict[str, int] = {}
    if size is None:
        ones = {str((dims[n] or ())[axis]): 1 for n, axis in find_broadcast_axes(ir, readers)}
        named = fitting_sizes(fix_dimensions(all_named, ones), _default_size) | ones
    shapes = [_choose_shape(v, dims.get(v.name), named, choose_size) for v in graph.inputs]
    _refuse_large(dict(zip((v.name for v in graph.inputs), shapes, strict=True)))
    feeds: dict[str, Any] = {}
    for value, shape in zip(graph.inputs, shapes, strict=True):
        read = known.get(value.name, value)
        table = table_size(read, readers)
        rows = 2 if value.name in masks else named.get(table) if isinstance(table, str) else table
        steps = find_length(read, readers, ranges)
        if steps is not None and table is None:
            most = steps if isinstance(steps, int) else named.get(steps, 1)
            feeds[value.name] = rng.integers(1, max(most, 1) + 1, shape).astype(value.type.numpy)
            continue
        drawn = [_random(rng, value, shape, rows) for _ in range(1 + is_sequence(value))]
        feeds[value.name] = drawn if is_sequence(value) else drawn[0]
        if is_variance(read, readers):
            feeds[value.name] = np.abs(feeds[value.name])
    return feeds


def _refuse_large(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse inputs that memory does not take: where it is lent, the system ends the process."""
    limit = find_memory_limit() or sys.maxsize >> 20
    for name, shape in shapes.items():
        count = math.prod(size or 1 for size in shape)  # NumPy multiplies what is beside a 0 too
        if count * BYTES_DRAWN >> 20 > limit:
            raise UsageError(
                f"{name!r} of the shape {show_shape(shape)} takes more memory than there is: give "
                "a smaller one (--input)"
            )


def is_variance(value: Value, readers: Readers) -> bool:
    """Whether ``value`` is a variance of BatchNormalization, which is not negative."""
    return any(n.op == "BatchNormalization" and at == VARIANCE for n, at in readers.get(value, ()))


def find_broadcast_axes(graph: Graph, readers: Readers) -> frozenset[tuple[str, int]]:
    """Axes of inputs, by name, whose size nothing tells and that are only broadcast.

    Constants they are broadcast with tell a size.
    """
    return frozenset(
        (v.name, axis)
        for v in graph.inputs
        if v in readers and all(_is_broadcast(node, at) for node, at in readers[v])
        for axis, dim in enumerate(v.shape or ())
        if axis and dim is None
    )


def _is_broadcast(node: Node, at: int) -> bool:
    """Whether an operand is broadcast with one that is no constant."""
    other = node.inputs[1 - at] if node.op in BROADCASTS else None
    return other is not None and other.tensor is None


def _choose_alike(size: int, value: Value, axis: int) -> int:
    """The size that all dimensions get, but first axes a large one."""
    return size if axis or size <= MOST_SAMPLES else _default_size(value, axis)


def _default_size(value: Value, axis: int) -> int:
    dim, rank = value.ranked_shape[axis], len(value.ranked_shape)
    default = 2 if axis == 0 else IMAGE_SIZE if rank >= 4 and axis >= 2 else OTHER_SIZE
    if not isinstance(dim, str):
        return default
    return NAMED_SIZES.get(dim.rstrip(DIGITS), default)  # N2 is the batch of another input


def _choose_shape(
    value: Value, names: Shape | None, named: dict[str, int],
    choose_size: Callable[[Value, int], int],
) -> tuple[int, ...]:  # fmt: skip
    """Sizes for an input; ``names`` are those of dimensions that have none in ``value``."""
    sizes = []
    for axis, dim in enumerate(value.ranked_shape):
        size = (names[axis] if names else f"{value.name}_{axis}") if dim is None else dim
        if not isinstance(size, int):
            size = named.setdefault(str(size), choose_size(value, axis))
        sizes.append(size)
    return tuple(sizes)


def find_ranges(readers: Readers) -> dict[Value, Dim]:
    """The numbers 0, 1, 2, … of places that nodes compute, and how many there are."""
    nodes = {id(node): node for each in readers.values() for node, _ in each}.values()
    waiting = [(n.outputs[0], n.outputs[0].shape) for n in nodes if n.op == "Range"]
    ranges: dict[Value, Dim] = {}
    while waiting:
        value, shape = waiting.pop()
        if shape and value not in ranges:
            ranges[value] = shape[0]
            moved = (n for n, at in readers.get(value, ()) if n.op in PASSED_ON and at == 0)
            waiting += [(n.outputs[0], shape) for n in moved]
    return ranges


def find_length(value: Value, readers: Readers, ranges: Mapping[Value, Dim], depth: int = 8) -> Dim:
    """How long sequences are whose lengths ``value`` has; None if it is no length.

    MXNet reads outside of its data where a length is negative or too large.
    """
    for node, at in readers.get(value, ()) if depth else ():
        x = node.inputs[0]
        place, attribute = LENGTHS.get(node.op, (-1, ""))
        axis = node.attrs.get(attribute, 0)
        if at == place and x is not None and x.shape and isinstance(axis, int):
            return x.shape[min(axis, len(x.shape) - 1)]
        other = node.inputs[1 - at] if node.op in COMPARISONS - {"Equal"} else None
        if other is not None and (steps := _count_steps(other) or ranges.get(other)) is not None:
            return steps
        if (node.op in PASSED_ON or node.op == "Sub") and at == 0:
            steps = find_length(node.outputs[0], readers, ranges, depth - 1)
            if steps is not None:
                return steps
    return None


def _count_steps(value: Value) -> Dim:
    """How many numbers 0, 1, 2, … a constant has; None for others."""
    tensor = value.tensor
    if tensor is None or not 2 <= tensor.size <= MOST_STEPS or tensor.dtype.kind not in "iu":
        return None
    return tensor.size if np.array_equal(tensor.load().ravel(), np.arange(tensor.size)) else None


def _random(
    rng: np.random.Generator, value: Value, shape: tuple[int, ...], rows: int | None
) -> Array:
    dtype = value.type
    if rows is not None or dtype.kind in "iu":
        return rng.integers(0, rows or 8, shape).astype(dtype.numpy)
    if dtype is DType.STRING:
        return rng.choice(np.array(TEXTS, object), shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind != "f":
        raise UsageError(
            f"{value.name!r} is {dtype.value}, which is not drawn at random: give --data in.npz"
        )
    return rng.standard_normal(shape).astype(dtype.numpy)
