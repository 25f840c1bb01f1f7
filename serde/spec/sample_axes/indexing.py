"""Operators that move elements, or pick them by place."""

from __future__ import annotations

from collections.abc import Iterator

from serde.ir.dim_expr import product
from serde.ir.geometry import axis_of
from serde.ir.graph import Node

from .table import (
    SHARED,
    SampleAxis,
    attribute_axis,
    first_operand,
    has_operand,
    integer,
    known_integers,
    operand,
    other_axes,
    sample_axes,
)


@sample_axes("Transpose")
def transpose(node: Node) -> Iterator[SampleAxis]:
    """All axes."""
    rank = operand(node, 0).rank
    perm = node.attrs.get("perm") or tuple(reversed(range(rank)))
    return first_operand(node, [(a, at) for at, a in enumerate(perm)])  # type: ignore[arg-type]


@sample_axes("Concat")
def concat(node: Node) -> Iterator[SampleAxis]:
    """All axes but the one along which operands are joined."""
    along = attribute_axis(node, 0)
    for axis in range(operand(node, 0).rank):
        if axis != along:
            yield SampleAxis((axis,) * len(node.inputs), (axis,))


@sample_axes("Split")
def split(node: Node) -> Iterator[SampleAxis]:
    """All axes but the split one."""
    return first_operand(node, other_axes(node, [integer(node, "axis", 0)]))


@sample_axes("Compress")
def compress(node: Node) -> Iterator[SampleAxis]:
    """All axes but the one along which elements are left out."""
    along = node.attrs.get("axis")
    return first_operand(node, other_axes(node, [along]) if isinstance(along, int) else ())


@sample_axes("Slice")
def slice_(node: Node) -> Iterator[SampleAxis]:
    """The axes that are not sliced, or kept in full."""
    shape = operand(node, 0).ranked_shape
    starts, ends = known_integers(node, 1), known_integers(node, 2)
    rank = len(shape)
    count = operand(node, 1).shape
    length = count[0] if count and isinstance(count[0], int) else None
    axes = known_integers(node, 3) if has_operand(node, 3) else tuple(range(length or rank))
    if axes is None or None in axes:
        return iter(())
    steps = known_integers(node, 4) if has_operand(node, 4) else (1,) * len(axes)
    sliced = set()
    for at, axis in enumerate(axes):
        axis, size = axis_of(int(axis or 0), rank), shape[axis_of(int(axis or 0), rank)]
        start, end, step = (None if p is None else p[at] for p in (starts, ends, steps))
        if step != 1 or start is None or end is None or not _is_full(start, end, size):
            sliced.add(axis)
    return first_operand(node, other_axes(node, sliced))


def _is_full(start: int, end: int, size: object) -> bool:
    """Whether a slice has all elements of an axis."""
    if not isinstance(size, int):
        return start == 0 and end >= (1 << 31) - 1
    return (start == 0 or start <= -size) and end >= size


@sample_axes("Pad")
def pad(node: Node) -> Iterator[SampleAxis]:
    """The axes that are not padded."""
    rank, pads = operand(node, 0).rank, known_integers(node, 1)
    axes = known_integers(node, 3) if has_operand(node, 3) else tuple(range(rank))
    if pads is None or axes is None or None in axes or len(pads) != 2 * len(axes):
        return iter(())
    padded = (a for at, a in enumerate(axes) if pads[at] != 0 or pads[at + len(axes)] != 0)
    return first_operand(node, other_axes(node, (int(a or 0) for a in padded)))


@sample_axes("CenterCropPad")
def center_crop_pad(node: Node) -> Iterator[SampleAxis]:
    """The axes it does not name."""
    axes = node.attrs.get("axes")
    return first_operand(node, other_axes(node, axes) if isinstance(axes, tuple) else ())


@sample_axes("Tile")
def tile(node: Node) -> Iterator[SampleAxis]:
    """The axes that are repeated once."""
    repeats = known_integers(node, 1)
    return first_operand(node, [i for i, count in enumerate(repeats or ()) if count == 1])


@sample_axes("Expand")
def expand(node: Node) -> Iterator[SampleAxis]:
    """The axes whose sizes stay."""
    before, after = operand(node, 0).ranked_shape, node.outputs[0].shape
    if after is None:
        return iter(())
    lead = len(after) - len(before)
    same = ((i, i + lead) for i, d in enumerate(before) if d is not None and d == after[i + lead])
    return first_operand(node, same)


@sample_axes("ReverseSequence")
def reverse_sequence(node: Node) -> Iterator[SampleAxis]:
    """The axis of sequences, with their lengths, and all others but that of time."""
    batch, time = integer(node, "batch_axis", 1), integer(node, "time_axis", 0)
    for axis in other_axes(node, [time]):
        yield SampleAxis((axis, 0 if axis == batch else None), (axis,))


@sample_axes("Gather")
def gather(node: Node) -> Iterator[SampleAxis]:
    """The axes of data that are not gathered from, or those of indices."""
    axis, count = attribute_axis(node, 0), operand(node, 1).rank
    for at in range(operand(node, 0).rank):
        if at != axis:
            yield SampleAxis((at, None), (at if at < axis else at + count - 1,))
    for at in range(count):
        yield SampleAxis((None, at), (axis + at,))


@sample_axes("GatherElements ScatterElements")
def on_elements(node: Node) -> Iterator[SampleAxis]:
    """All axes but the one that indices are for."""
    along = attribute_axis(node, 0)
    for axis in range(operand(node, 0).rank):
        if axis != along:
            yield SampleAxis((axis,) * len(node.inputs), (axis,))


@sample_axes("GatherND")
def gather_nd(node: Node) -> Iterator[SampleAxis]:
    """Axes of a batch, those of indices, and those of data that indices do not reach."""
    batches, rank = integer(node, "batch_dims", 0), operand(node, 1).rank
    for at in range(batches):
        yield SampleAxis((at, at), (at,))
    for at in range(batches, rank - 1):
        yield SampleAxis((None, at), (at,))
    length = operand(node, 1).ranked_shape[-1]
    if isinstance(length, int):
        for at in range(batches + length, operand(node, 0).rank):
            yield SampleAxis((at, None), (at - batches - length + rank - 1,))


@sample_axes("ScatterND")
def scatter_nd(node: Node) -> Iterator[SampleAxis]:
    """The axes of data that indices do not reach."""
    length, rank = operand(node, 1).ranked_shape[-1], operand(node, 1).rank
    if isinstance(length, int):
        for at in range(length, operand(node, 0).rank):
            yield SampleAxis((at, None, at - length + rank - 1), (at,))


@sample_axes("OneHot")
def one_hot(node: Node) -> Iterator[SampleAxis]:
    """All axes of the indices."""
    rank = operand(node, 0).rank
    axis = axis_of(integer(node, "axis", -1), rank + 1)
    return first_operand(node, [(a, a + (a >= axis)) for a in range(rank)])


@sample_axes("Shape Size")
def measure(node: Node) -> Iterator[SampleAxis]:
    """Sizes are the same for all samples."""
    shape = operand(node, 0).ranked_shape
    known = node.op == "Shape" or product(shape) is not None
    return (SampleAxis((a,), (SHARED,)) for a in range(len(shape)) if known)
