"""Axes along which a value that does not depend on the batch has the same numbers everywhere.

Such are the zeros and the repeated tokens of a model that was made for several samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from serde.ir.graph import Node, Shape, Value
from serde.spec.sample_axes import ANY, SHARED, find_sample_axes
from serde.spec.traits import RESHAPES

Axes = Mapping[Value, frozenset[int]]


def find_uniform_axes(node: Node, known: Axes) -> frozenset[int]:
    """The axes along which the first output of a node is uniform, by those of its operands."""
    shape = node.outputs[0].shape
    if node.domain or shape is None:
        return frozenset()
    if node.op == "ConstantOfShape":
        return frozenset(range(len(shape)))
    operands = [v for v in node.inputs if v is not None]
    if node.op == "Expand" and operands[0].shape is not None:
        before = (None,) * (len(shape) - len(operands[0].shape)) + operands[0].shape
        lead = len(shape) - len(operands[0].shape)
        return frozenset(
            i
            for i in range(len(shape))
            if i < lead or before[i] == 1 or is_uniform(operands[0], i - lead, known)
        )
    if any(v.shape is None for v in operands):
        return frozenset()
    if node.op in RESHAPES:
        return _reshape_axes(operands[0], shape, find_uniform_axes_of(operands[0], known))
    if node.op == "Tile":
        return frozenset(i for i in range(len(shape)) if is_uniform(operands[0], i, known))
    return frozenset(
        axis.outputs[0]
        for axis in find_sample_axes(node)
        if axis.outputs[0] not in (None, SHARED) and _are_uniform(node, axis.inputs, known)
    )


def _reshape_axes(x: Value, shape: Shape, axes: frozenset[int]) -> frozenset[int]:
    """The uniform axes of ``x`` in another shape of the same elements."""
    assert x.shape is not None
    if len(axes) == len(x.shape):  # all are one number
        return frozenset(range(len(shape)))
    old, new = ([d for d in sizes if isinstance(d, int)] for sizes in (x.shape, shape))
    if (len(old), len(new)) != (len(x.shape), len(shape)):
        return frozenset()
    inner = {(math.prod(old[a:]), old[a]) for a in axes}
    return frozenset(a for a in range(len(new)) if (math.prod(new[a:]), new[a]) in inner)


def _are_uniform(node: Node, axes: Iterable[int | None], known: Axes) -> bool:
    pairs = zip(node.inputs, axes, strict=False)
    return all(v is None or a is None or a == ANY or is_uniform(v, a, known) for v, a in pairs)


def is_uniform(value: Value, axis: int, known: Axes) -> bool:
    """Whether a value has the same numbers at all indices along an axis."""
    if value.shape is None or value.shape[axis] in (0, 1) or axis in known.get(value, ()):
        return value.shape is not None
    if value.tensor is None:
        return False
    array = value.array()
    return bool(np.array_equal(array, np.broadcast_to(array.take([0], axis), array.shape)))


def find_uniform_axes_of(value: Value | None, known: Axes) -> frozenset[int]:
    """The axes along which a value that does not depend on the batch has equal numbers."""
    if value is None or value.shape is None or value.container:
        return frozenset()
    return frozenset(a for a in range(len(value.shape)) if is_uniform(value, a, known))
