"""Slice and Split: bounds, axes and sizes that were attributes."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from . import downgrades, upgrades
from .common import END, cast, count_range, make_full, require_constant_ints, scalar, size
from .dynamic_axes import known_ints, scatter_by_axis


def clamp_integers(g, x: Value, low, high):
    """Integers held between two others."""
    return g.Min(g.Max(x, low), high)


def gather_slice(g, x: Value, axis: int, start: Value, end: Value, step: Value):
    """A slice of one axis, by gathering the indices it goes through."""
    n = size(g, x, axis)
    start, end = (g.Where(g.Less(v, 0), g.Add(v, n), v) for v in (start, end))
    back = cast(g, g.Less(step, 0), DType.INT64)
    first, last = (
        clamp_integers(g, start, 0, g.Sub(n, back)),
        clamp_integers(g, end, g.Neg(back), g.Sub(n, back)),
    )
    return g.Gather(x, g.Range(*(scalar(g, v) for v in (first, last, step))), axis=axis)


@downgrades[10]("Slice")
def slice_bounds_as_attributes(g, x: Value, starts: Value, ends: Value, axes=None, steps=None):
    """Bounds computed at run time, and steps, become indices to gather."""
    count = starts.ranked_shape[0]
    some = range(count) if isinstance(count, int) else ()
    at = list(some) if axes is None else known_ints(axes)
    by = [1] * len(some) if steps is None else known_ints(steps)
    constant = starts.tensor is not None and ends.tensor is not None
    if constant and at is not None and by is not None and all(s == 1 for s in by):
        return g.Slice(x, starts=starts.ints(), ends=ends.ints(), axes=at)
    with g.at_opset(20):
        if at is None or not isinstance(count, int):
            return slice_computed_axes(g, x, starts, ends, axes, steps)
        steps = g.const([1] * count, DType.INT64) if steps is None else steps
        bounds = [cast(g, v, DType.INT64) for v in (starts, ends, steps)]
        for i, axis in enumerate(at):
            parts = (g.Slice(v, [i], [i + 1], [0], [1]) for v in bounds)
            x = gather_slice(g, x, axis % x.rank, *parts)
        return x


def slice_computed_axes(g, x: Value, starts: Value, ends: Value, axes, steps):
    """Slice every axis: the whole of those not listed."""
    axes = count_range(g, g.Shape(starts)) if axes is None else axes
    steps = make_full(g, 1, g.Shape(starts), DType.INT64) if steps is None else steps
    pairs = ((starts, 0), (ends, END), (steps, 1))
    bounds = [scatter_by_axis(g, axes, v, x.rank, otherwise) for v, otherwise in pairs]
    for axis in range(x.rank):
        x = gather_slice(g, x, axis, *(g.Slice(v, [axis], [axis + 1], [0], [1]) for v in bounds))
    return x


@upgrades[10]("Slice")
def slice_bounds_as_operands(g, x: Value, *, starts: Ints, ends: Ints, axes: Ints | None = None):
    at = list(range(len(starts))) if axes is None else list(axes)
    require(len(starts) == len(ends) == len(at), "as many starts as ends and axes")
    return g.Slice(x, list(starts), list(ends), at)


@downgrades[18]("Split")
def complete_split_sizes(g, x: Value, split=None, *, axis: int, num_outputs=None, outputs=1):
    """Before opset 18 equal parts had to be equal; the last one may be smaller since."""
    n = x.ranked_shape[axis] if x.shape is not None else None
    if split is None and not (isinstance(n, int) and n % outputs == 0):
        split = part_sizes(g, size(g, x, axis), outputs)
    return g.Split(x, split, axis=axis, outputs=outputs)


def part_sizes(g, total: Value, count: int):
    """How many elements each of ``count`` parts has; the last one may be smaller, or empty."""
    each = g.Div(g.Add(total, count - 1), count)
    before = g.Mul(each, list(range(count)))
    return g.Max(g.Min(g.Sub(total, before), each), 0)


@upgrades[18]("Split")
def split_into_equal_parts(g, x: Value, split=None, *, axis: int, outputs=1):
    return g.Split(
        x, split, axis=axis, num_outputs=outputs if split is None else None, outputs=outputs
    )


@downgrades[13]("Split")
def split_sizes_as_attribute(g, x: Value, split=None, *, axis: int, outputs=1):
    """Sizes computed at run time become bounds of slices."""
    if split is None or split.tensor is not None:
        sizes = None if split is None else split.ints()
        return g.Split(x, split=sizes, axis=axis, outputs=outputs)
    start, parts = g.const([0], DType.INT64), []
    for i in range(outputs):
        end = g.Add(start, g.Gather(split, [i]))
        with g.at_opset(13):
            parts.append(g.Slice(x, start, end, [axis], [1]))
        start = end
    return tuple(parts)


@upgrades[13]("Split")
def split_sizes_as_operand(g, x: Value, *, axis: int, split: Ints | None = None, outputs=1):
    return g.Split(x, None if split is None else list(split), axis=axis, outputs=outputs)


@upgrades[2]("Split")
def complete_split_axis(g, x: Value, sizes=None, *, axis=0, split: Ints | None = None, outputs=1):
    """At opset 1 the sizes could be an attribute or an operand."""
    if split is None and sizes is not None:
        split = require_constant_ints(sizes, "sizes of the parts", 13)
    return g.Split(x, axis=axis, split=split, outputs=outputs)
