"""Sequences of tensors and optional ones: the axes are those of the tensors."""

from __future__ import annotations

from collections.abc import Iterator

from serde.ir.geometry import axis_of
from serde.ir.graph import Node

from .table import (
    SHARED,
    SampleAxis,
    attribute_axis,
    first_operand,
    integer,
    operand,
    other_axes,
    sample_axes,
)


@sample_axes("Optional OptionalGetElement SequenceAt SequenceErase")
def pick(node: Node) -> Iterator[SampleAxis]:
    """All axes."""
    return first_operand(node, range(operand(node, 0).rank))


@sample_axes("OptionalHasElement SequenceLength")
def count(node: Node) -> Iterator[SampleAxis]:
    """How many tensors there are does not depend on their sizes."""
    return (SampleAxis((a,), (SHARED,)) for a in range(operand(node, 0).rank))


@sample_axes("SequenceConstruct")
def construct(node: Node) -> Iterator[SampleAxis]:
    """All axes."""
    for axis in range(operand(node, 0).rank):
        yield SampleAxis((axis,) * len(node.inputs), (axis,))


@sample_axes("SequenceInsert")
def insert(node: Node) -> Iterator[SampleAxis]:
    """All axes."""
    for axis in range(operand(node, 1).rank):
        yield SampleAxis((axis, axis, None)[: len(node.inputs)], (axis,))


@sample_axes("ConcatFromSequence")
def concat_from_sequence(node: Node) -> Iterator[SampleAxis]:
    """All axes but the one along which tensors are joined."""
    rank = operand(node, 0).rank
    if integer(node, "new_axis", 0):
        axis = axis_of(integer(node, "axis", 0), rank + 1)
        return first_operand(node, [(a, a + (a >= axis)) for a in range(rank)])
    return first_operand(node, other_axes(node, [integer(node, "axis", 0)]))


@sample_axes("SplitToSequence")
def split_to_sequence(node: Node) -> Iterator[SampleAxis]:
    """All axes but the split one."""
    axis = attribute_axis(node, 0)
    is_dropped = len(node.inputs) < 2 and not integer(node, "keepdims", 1)
    others = other_axes(node, [axis])
    return first_operand(node, [(a, a - (is_dropped and a > axis)) for a in others])
