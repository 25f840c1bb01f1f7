"""Axes, parts and dynamic pads: a choice for each axis, or arithmetic of shapes."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value


def mark_axes(g, axes: Value, rank: int) -> Value:
    """1 for each of ``rank`` axes that ``axes`` lists, 0 for the others."""
    count = axes.ranked_shape[0]
    require(isinstance(count, int), "a dynamic number of axes")
    wide = g.cast(axes, DType.INT64)
    wide = g.Where(g.Less(wide, 0), g.Add(wide, rank), wide)
    ones = g.const([1] * count, DType.INT64)
    return g.ScatterElements(g.const([0] * rank, DType.INT64), wide, ones, axis=0)


def select_unmarked(g, listed: Value, marks: Value, count: int) -> Value:
    """Those of the elements of ``listed`` that are not marked, ``count`` of them, in order."""
    rank = marks.ranked_shape[0]
    order = g.Add(g.Mul(marks, rank), g.Range(0, rank, 1))
    _, first = g.TopK(order, [count], axis=0, largest=0, outputs=2)
    return g.Gather(listed, first, axis=0)


def squeeze_shape(g, x: Value, axes: Value) -> Value:
    marks = mark_axes(g, axes, x.rank)
    return g.Reshape(
        x, select_unmarked(g, g.Shape(x), marks, x.rank - axes.ranked_shape[0]), allowzero=1
    )


def unsqueeze_shape(g, x: Value, axes: Value) -> Value:
    """Sizes of 1 in the places listed, those of ``x`` in the others."""
    axes = g.Reshape(axes, [-1]) if axes.rank == 0 else axes
    rank = x.rank + axes.ranked_shape[0]
    marks = mark_axes(g, axes, rank)
    at = g.Sub(g.CumSum(g.Sub(1, marks), 0), 1)
    own = g.Gather(g.Concat(g.Shape(x), [1], axis=0), g.Max(at, 0), axis=0)
    return g.Reshape(x, g.Where(g.Equal(marks, 1), 1, own), allowzero=1)


def cumulate_axis(op: str, g, x: Value, axis: Value, exclusive: int, reverse: int) -> Value:
    """A running sum along each axis, of which one is taken."""
    at = g.Reshape(g.cast(axis, DType.INT64), [])
    at = g.Where(g.Less(at, 0), g.Add(at, x.rank), at)
    y = x
    for along in range(x.rank):
        made = g[op](x, g.const(along, DType.INT64), exclusive=exclusive, reverse=reverse)
        y = g.Where(g.Equal(at, along), made, y)
    return y


def split_by_counts(g, x: Value, counts: Value, axis: int, outputs: int) -> tuple[Value, ...]:
    """Slices, each from where the one before ended."""
    ends = g.CumSum(counts, g.const(0, DType.INT64))
    starts = g.Sub(ends, counts)
    return tuple(
        g.Slice(x, *(g.Slice(v, [i], [i + 1], [0], [1]) for v in (starts, ends)), [axis], [1])
        for i in range(outputs)
    )


def part_sizes(g, x: Value, axis: int, count: int) -> Value:
    """How many elements each of ``count`` parts of an axis has, the last maybe fewer."""
    size = g.Shape(x, start=axis, end=axis + 1)
    each = g.Div(g.Add(size, count - 1), count)
    before = g.Mul(g.Range(0, count, 1), each)
    return g.Max(0, g.Min(each, g.Sub(size, before)))  # type: ignore[no-any-return]


def expand_pads(g, x: Value, pads: Value, axes: Value | None) -> Value:
    """Pads of all axes, from those of some."""
    if axes is None:
        return pads
    wide = g.cast(axes, DType.INT64)
    wide = g.Where(g.Less(wide, 0), g.Add(wide, x.rank), wide)
    there = g.Concat(wide, g.Add(wide, x.rank), axis=0)
    return g.ScatterElements(g.const([0] * 2 * x.rank, DType.INT64), there, pads, axis=0)
