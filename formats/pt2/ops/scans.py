"""Running extremes and sums along an axis, by steps that double.

After a step of 2ᵏ each element stands for the 2ᵏ⁺¹ elements up to it.
"""

from __future__ import annotations

import math

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType
from serde.spec.expressions import END

from ..promotion import as_type, promote_to_float
from ..rules import reads
from .binary import add_exponents


def accumulate(g, combine, states, axis):
    """States in which each element is combined with all before it."""
    size = states[0].ranked_shape[axis]
    require(isinstance(size, int), "a running value along an axis of unknown size: fix the size")
    step = 1
    while step < size:
        heads = [g.slice_axis(x, axis, 0, step) for x in states]
        before = [g.slice_axis(x, axis, 0, -step) for x in states]
        after = [g.slice_axis(x, axis, step, END) for x in states]
        combined = combine(before, after)
        pairs = zip(heads, combined, strict=True)
        states = [g.Concat(head, rest, axis=axis) for head, rest in pairs]
        step *= 2
    return states


@reads.for_each({"cummax": "GreaterOrEqual", "cummin": "LessOrEqual"})
def read_running_extreme(op, g, x, dim):
    """The last of equal elements counts; NaN stays."""
    if x.rank == 0:
        return g.Identity(x), g.const(0, DType.INT64)
    axis = axis_of(dim, x.rank)

    def choose(before, after):
        is_later = g[op](after[0], before[0])
        if x.type.kind == "f":
            is_later = g.Or(is_later, g.IsNaN(after[0]))
        pairs = zip(after, before, strict=True)
        return [g.Where(is_later, late, early) for late, early in pairs]

    lines = g.Reshape(
        g.index_range(g.size_of(x, axis)), [-1 if k == axis else 1 for k in range(x.rank)]
    )
    values = g.cast(x, DType.INT32) if x.type is DType.BOOL else x
    places = g.Expand(lines, g.Shape(x))
    values, places = accumulate(g, choose, [values, places], axis)
    return g.cast(values, x.type), places


@reads("logcumsumexp")
def read_log_cumulative_sum(g, x, dim):
    (x,) = promote_to_float(g, x)
    if x.rank == 0:
        return g.Identity(x)
    axis = axis_of(dim, x.rank)

    def combine(before, after):
        return [add_exponents(g, before[0], after[0])]

    return accumulate(g, combine, [x], axis)[0]


@reads.for_each({"trapezoid.dx": 0.0, "trapz.dx": 0.0})
def read_trapezoid(_, g, x, dx, dim):
    """The area below a line."""
    return g.ReduceSum(areas(g, x, dx, dim), [axis_of(dim, x.rank)], keepdims=0)


@reads("trapezoid.x", "trapz.x")
def read_trapezoid_at(g, y, x, dim):
    """The area below a line through points."""
    return g.ReduceSum(areas_between(g, y, x, dim), [axis_of(dim, y.rank)], keepdims=0)


@reads("cumulative_trapezoid.dx")
def read_cumulative_trapezoid(g, x, dx, dim):
    return g.CumSum(areas(g, x, dx, dim), g.const(axis_of(dim, x.rank), DType.INT64))


@reads("cumulative_trapezoid.x")
def read_cumulative_trapezoid_at(g, y, x, dim):
    axis = g.const(axis_of(dim, y.rank), DType.INT64)
    return g.CumSum(areas_between(g, y, x, dim), axis)


def areas(g, x, dx, dim):
    (x,) = promote_to_float(g, x)
    require(math.isfinite(dx), f"dx={dx}: give a number")
    return g.Mul(add_neighbors(g, x, axis_of(dim, x.rank)), as_type(g, dx / 2, x.type))


def areas_between(g, y, x, dim):
    """Below a line, where its points are; these may be given once for all lines."""
    axis = axis_of(dim, y.rank)
    y, x = promote_to_float(g, y, x)
    if x.rank == 1:
        x = g.Unsqueeze(x, [a for a in range(y.rank) if a != axis])
    at = axis - y.rank + x.rank
    steps = g.Sub(g.slice_axis(x, at, 1, END), g.slice_axis(x, at, 0, -1))
    return g.Div(g.Mul(add_neighbors(g, y, axis), steps), as_type(g, 2.0, y.type))


def add_neighbors(g, x, axis):
    return g.Add(g.slice_axis(x, axis, 1, END), g.slice_axis(x, axis, 0, -1))
