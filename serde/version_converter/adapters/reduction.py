"""Reductions, whose axes were an attribute before opset 18 (ReduceSum: before 13)."""

from __future__ import annotations

from functools import partial

from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.spec.traits import REDUCES

from . import downgrades, upgrades
from .common import cast
from .dynamic_axes import drop_marked, known_ints, mark_axes, select_sizes, static_length

# What is left of an operator that reduces over no axes.
UNREDUCED = {
    "ReduceL1": lambda g, x: g.Abs(x),
    "ReduceL2": lambda g, x: g.Abs(x),
    "ReduceLogSum": lambda g, x: g.Log(x),
    "ReduceSumSquare": lambda g, x: g.Mul(x, x),
}


def reduce_nothing(op, g, x: Value):
    """What an operator that reduces over no axes does with each element."""
    return UNREDUCED.get(op, lambda g, x: g.Identity(x))(g, x)


def axes_as_attribute(
    op, g, x: Value, axes=None, *, keepdims: int, noop_with_empty_axes: int
):  # fmt: skip
    """Name the axes in an attribute; leave none out where that would mean all of them."""
    listed = () if axes is None else known_ints(axes)
    if listed is None and x.rank:
        with g.at_opset(20):
            return over_computed_axes(op, g, x, axes, keepdims, noop_with_empty_axes)
    if not listed and noop_with_empty_axes:
        return reduce_nothing(op, g, x)
    return g[op](x, axes=listed or None, keepdims=keepdims)


def over_computed_axes(op, g, x: Value, axes: Value, keepdims: int, noop: int):
    """Part each axis in two, what stays of it and what goes, and reduce over all that goes."""
    gone = mark_axes(g, axes, x.rank)
    if not noop and static_length(axes) is None:
        gone = g.Add(gone, cast(g, g.Equal(g.Shape(axes), 0), DType.INT64))  # none means all
    shape = g.Shape(x)
    pair = [g.Unsqueeze(select_sizes(g, shape, m), [1]) for m in (g.Sub(1, gone), gone)]
    empty = int(0 in x.ranked_shape)
    parted = g.Reshape(x, g.Reshape(g.Concat(*pair, axis=1), [-1]), allowzero=empty)
    y = g[op](parted, list(range(1, 2 * x.rank, 2)), keepdims=0)
    if keepdims:
        return y
    count = static_length(axes)
    left = drop_marked(g, shape, gone, None if count is None else x.rank - count)
    return g.Reshape(y, left, allowzero=empty)


def axes_as_operand(op, g, x: Value, *, keepdims: int, axes: Ints | None = None):
    """Name the axes in an operand."""
    return g[op](x, list(axes) if axes else None, keepdims=keepdims)


@downgrades[20]("ReduceMax")
def any_of(g, x: Value, axes=None, **rest):
    """Before opset 20 booleans had no order: count those that are true."""
    if x.dtype is not DType.BOOL:
        return g.ReduceMax(x, axes, **rest)
    return cast(g, g.ReduceSum(cast(g, x, DType.INT32), axes, **rest), DType.BOOL)


@downgrades[20]("ReduceMin")
def all_of(g, x: Value, axes=None, **rest):
    if x.dtype is not DType.BOOL:
        return g.ReduceMin(x, axes, **rest)
    return g.Not(any_of(g, g.Not(x), axes, **rest))


for _op in sorted(REDUCES):
    _since = 13 if _op == "ReduceSum" else 18
    downgrades[_since](_op)(partial(axes_as_attribute, _op))
    upgrades[_since](_op)(partial(axes_as_operand, _op))
