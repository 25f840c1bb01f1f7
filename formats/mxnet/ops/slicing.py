"""Slice and Split: parts of a tensor along its axes."""

from __future__ import annotations

from itertools import accumulate

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import axis_of
from serde.ir.graph import Dim, Value
from serde.rewrite.rules import Hint

from ..rules import Bounds, reads
from ..target import legalizations, writes
from .dynamic_shapes import Sizes, align_to_axis, emit_arange

FAR = 2**31 - 1  # an end beyond any axis


def flatten_without_axis(g, x: Value, axis: int | None) -> tuple[Value, int]:
    """``x`` and the axis meant; without one, ``x`` flattened."""
    if axis is None:
        return g.Reshape(x, [-1]), 0
    return x, axis_of(axis, x.rank)


@reads("slice")
def read_slice(g, x, *, begin: Bounds, end: Bounds, step: Bounds = ()):
    """Axes beyond ``begin`` are left whole; those beyond ``step`` have a step of 1."""
    count = len(begin)
    require(len(end) == count, f"begin={begin} and end={end} differ in length")
    require(len(step) <= count, f"step={step} is longer than begin={begin}")
    require(count <= x.rank, f"begin={begin} of {x.rank} axes")
    require(0 not in step, f"step={step}, and no step is 0")
    steps = [s or 1 for s in step] + [1] * (count - len(step))
    starts = [(0 if s > 0 else FAR) if b is None else b for b, s in zip(begin, steps, strict=True)]
    ends = [(FAR if s > 0 else -FAR) if e is None else e for e, s in zip(end, steps, strict=True)]
    return g.Slice(x, starts, ends, list(range(count)), steps)


@reads("slice_axis")
def read_slice_axis(g, x, *, axis: int, begin: int, end: int | None):
    return g.slice_axis(x, axis_of(axis, x.rank), begin, FAR if end is None else end)


@reads("slice_like")
def read_slice_like(g, x, like, *, axes=()):
    """An axis may be named more than once."""
    return g.slice_like(x, like, axes=tuple(dict.fromkeys(axis_of(a, x.rank) for a in axes)))


@reads("SliceChannel")
def read_split(g, x, *, num_outputs: int, axis=1, squeeze_axis=False):
    axis = axis_of(axis, x.rank)
    parts = split_equally(g, x, axis, num_outputs)
    return tuple(g.Squeeze(p, [axis]) for p in parts) if squeeze_axis else tuple(parts)


def split_equally(g, x: Value, axis: int, count: int):
    """``count`` parts of one size."""
    require(count > 0, f"a split into {count} parts")
    size = x.ranked_shape[axis]
    if count == 1:
        return (x,)
    if not isinstance(size, int):
        return g.Split(x, num_outputs=count, axis=axis, outputs=count)
    require(size % count == 0, f"{size} does not split into {count} equal parts")
    return g.Split(x, [size // count] * count, axis=axis, outputs=count)


@writes("Slice")
def write_slice(s, x, starts, ends, axes, steps, *, sizes: Hint[Sizes | None] = None):
    """Ends may be named: they are sizes of tensors, to which the operand is cut."""
    bounds = [v if v is None else v.ints() for v in (starts, ends, axes, steps)]
    bounds[1] = sizes if sizes is not None else bounds[1]
    begin: list[int | None] = [None] * x.rank
    end, step, cut = [*begin], [*begin], x
    for first, last, axis, by in zip(*bounds, strict=True):
        step[axis] = by
        if not isinstance(last, str):
            begin[axis], end[axis] = bounds_of(x.ranked_shape[axis], first, last, by)
            continue
        require(by > 0 and first >= 0, "a slice from its end up to a dynamic size")
        begin[axis] = first
        if last != x.ranked_shape[axis]:
            like = align_to_axis(s, emit_arange(s, last), axis, x.rank)
            cut = s.slice_like(cut, like, axes=(axis,))
    return s.slice(cut, begin=tuple(begin), end=tuple(end), step=tuple(step))


def bounds_of(size: Dim, first: int, last: int, by: int) -> tuple[int | None, int | None]:
    """Where a slice begins and ends: within an axis of known size, as 1.5 asks for."""
    if isinstance(size, int):
        first = max(first, -size)  # a step back from before the front begins at the front
        first, last, _ = slice(first, last, by).indices(size)
        require(len(range(first, last, by)), "a slice without elements")
        return first, None if last < 0 else last
    open_end = last >= FAR or (by < 0 and last <= -FAR)
    return None if by < 0 and first >= FAR else first, None if open_end else last


@writes("Split", ignore=("num_outputs",))
def write_split(s, x, sizes=None, *, axis, outputs: int = 1):
    counts = sizes.ints() if sizes is not None else None
    require(counts is not None, "a split into parts of unknown sizes")
    require(min(counts, default=1) > 0, "a split with a part without elements")
    starts = [0, *accumulate(counts[:-1])]
    return tuple(
        s.slice_axis(x, axis=axis, begin=b, end=b + n) for b, n in zip(starts, counts, strict=True)
    )


@legalizations("Split")
def legalize_split(g, x, sizes=None, *, axis, num_outputs: int | None = None, outputs: int = 1):
    """Parts without elements are constants; the sizes of equal parts follow from the whole."""
    counts = None if sizes is None else sizes.ints()
    if counts is None:
        size = x.ranked_shape[axis]
        require(isinstance(size, int), "a split of dynamic size")
        part = -(-size // outputs)
        counts = [max(0, min(part, size - i * part)) for i in range(outputs)]
    starts = [0, *accumulate(counts[:-1])]
    return tuple(
        g.slice_axis(x, axis, b, b + n) if n else make_empty_part(g, x, axis)
        for b, n in zip(starts, counts, strict=True)
    )


def make_empty_part(g, x: Value, axis: int):
    """A part of ``x`` without elements."""
    sizes = [1 if not isinstance(d, int) else d for d in x.ranked_shape]
    sizes[axis] = 0
    return g.const(arrays.zeros(sizes, x.type.numpy))
