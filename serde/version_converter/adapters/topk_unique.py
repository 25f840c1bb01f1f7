"""Picking the largest, bounding, and telling elements apart."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value

from . import decomposition, downgrades, upgrades
from .common import END, FLOATS, cast, count_range, scalar, size

LARGEST = float(np.finfo(np.float32).max)  # what Clip's attributes were when unset


@downgrades[12]("Clip")
def clip_of_integers(g, x: Value, low=None, high=None):
    """Before opset 12 Clip took floats only: compare and choose."""
    if x.dtype in FLOATS:
        return g.Clip(x, low, high)
    with g.at_opset(12):
        x = x if low is None else g.Max(x, low)
        return x if high is None else g.Min(x, high)


def is_float32(bound) -> bool:
    """Whether a float32 holds a number."""
    with np.errstate(over="ignore"):
        return bool(np.float32(bound) == bound)


@downgrades[11]("Clip")
def clip_bounds_as_attributes(g, x: Value, low=None, high=None):
    """Bounds computed at run time, crossed, or not held by a float32, are compared with."""
    bounds = {"min": low, "max": high}
    operands = {n: v for n, v in bounds.items() if v is not None}
    single = all(v.tensor is None or v.tensor.size == 1 for v in operands.values())
    require(single, "Clip to bounds of several elements")
    if all(v.tensor is not None and is_float32(v.array()) for v in operands.values()):
        plain = {"min": float("-inf"), "max": float("inf")}
        plain |= {n: float(v.array()) for n, v in operands.items()}
        if plain["min"] <= plain["max"]:  # which runtimes insist on; max holds otherwise
            return g.Clip(x, **plain)
    with g.at_opset(11):
        x = x if low is None else g.Max(x, low)
        return x if high is None else g.Min(x, high)


@upgrades[11]("Clip")
def clip_bounds_as_operands(g, x: Value, *, min: float, max: float):
    require(x.type in FLOATS, f"Clip of {x.type.value}, which took floats alone before opset 12")
    low = None if min <= -LARGEST else g.const(min, x.type)
    return g.Clip(x, low, None if max >= LARGEST else g.const(max, x.type))


def top_k_by_counting(g, x: Value, k: Value, axis: int, largest: bool):
    """TopK by counting, for each element, those that go before it."""
    order = (*(a for a in range(x.rank) if a != axis), axis)
    back = tuple(int(i) for i in np.argsort(order))
    y = g.Transpose(x, perm=order)
    element, other = g.Unsqueeze(y, [x.rank]), g.Unsqueeze(y, [x.rank - 1])
    along = count_range(g, size(g, x, axis))
    earlier = g.Less(g.Unsqueeze(along, [0]), g.Unsqueeze(along, [1]))
    beaten = g.Greater(other, element) if largest else g.Less(other, element)
    ahead = g.Or(beaten, g.And(g.Equal(other, element), earlier))
    rank = g.ReduceSum(cast(g, ahead, DType.INT32), [x.rank], keepdims=1)
    slots = cast(g, count_range(g, g.Reshape(k, [1])), DType.INT32)
    hit = cast(g, g.Equal(rank, slots), DType.FLOAT32)  # (…, elements, slots)
    indices = g.ArgMax(hit, axis=x.rank - 1, keepdims=0)
    values = g.GatherElements(y, indices, axis=x.rank - 1)
    return g.Transpose(values, perm=back), g.Transpose(indices, perm=back)


@downgrades[11]("TopK")
def largest_of_floats(g, x: Value, k: Value, *, axis: int, largest: int, sorted: int):
    """Before opset 11: of floats, from the largest down; the smallest are those of ``-x``."""
    if x.type in (DType.INT64, DType.UINT64):
        with g.at_opset(15):
            return top_k_by_counting(g, x, k, axis, bool(largest))
    if x.dtype not in FLOATS:
        y = cast(g, x, DType.FLOAT64)
        values, indices = g.TopK(g.Neg(y) if not largest else y, k, axis=axis, outputs=2)
        return cast(g, values if largest else g.Neg(values), x.dtype), indices
    values, indices = g.TopK(x if largest else g.Neg(x), k, axis=axis, outputs=2)
    return values if largest else g.Neg(values), indices


@downgrades[10]("TopK")
def how_many_as_attribute(g, x: Value, k: Value, *, axis: int):
    """A number computed at run time is cut from all of them, sorted."""
    if k.tensor is not None:
        return g.TopK(x, k=k.ints()[0], axis=axis, outputs=2)
    n = x.ranked_shape[axis]
    if not isinstance(n, int):
        with g.at_opset(20):
            return top_k_by_counting(g, x, k, axis, True)
    results = g.TopK(x, k=n, axis=axis, outputs=2)
    with g.at_opset(10):
        return tuple(g.Slice(v, [0], k, [axis]) for v in results)


@upgrades[10]("TopK")
def how_many_as_operand(g, x: Value, *, k: int, axis: int):
    return g.TopK(x, [k], axis=axis, outputs=2)


def first_of_equals(op, g, x: Value, *, axis: int, keepdims: int, select_last_index: int):
    """Before opset 12 the first of several extremes was chosen: turn the axis round for the last"""
    if not select_last_index:
        return g[op](x, axis=axis, keepdims=keepdims)
    with g.at_opset(15):
        turned = g.Slice(x, [-1], [-END], [axis], [-1])
        last = g.Sub(scalar(g, size(g, x, axis)), 1)
    index = g[op](turned, axis=axis, keepdims=keepdims)
    return g.Sub(last, index)


for _op in ("ArgMax", "ArgMin"):
    downgrades[12](_op)(partial(first_of_equals, _op))


def compare_rows(g, rows: Value):
    """For each pair of rows, whether the first is smaller where they first differ, and equal."""
    a, b = g.Unsqueeze(rows, [1]), g.Unsqueeze(rows, [0])
    differ = g.Not(g.Equal(a, b))
    place = g.ArgMax(cast(g, differ, DType.INT32), axis=2, keepdims=1)
    smaller = cast(g, g.And(differ, g.Less(a, b)), DType.INT32)
    first = g.GatherElements(smaller, place, axis=2)
    same = g.Equal(g.ReduceMax(cast(g, differ, DType.INT32), [2], keepdims=0), 0)
    return g.Squeeze(cast(g, first, DType.BOOL), [2]), same


@decomposition(11, "Unique")
def unique_by_comparing(g, x: Value, *, sorted: int, axis: int | None = None):
    """Compare every row with every other: memory grows with the square of their number."""
    require(
        x.dtype is not DType.STRING, "no operator compares strings; opset 11 is the lowest with one"
    )
    rows = g.Reshape(x, [-1, 1])
    if axis is not None:
        order = (axis % x.rank, *(a for a in range(x.rank) if a != axis % x.rank))
        moved = g.Transpose(x, perm=order)
        rows = g.Reshape(moved, g.Concat(g.Shape(moved, end=1), [-1], axis=0))
    smaller, same = compare_rows(g, rows)
    equal = cast(g, same, DType.INT64)
    first = g.ArgMax(cast(g, same, DType.INT32), axis=1, keepdims=0)  # of its equals, per row
    along = count_range(g, size(g, rows, 0))
    leads = cast(g, g.Equal(first, along), DType.INT64)
    if sorted:
        ahead = g.Mul(cast(g, g.Transpose(smaller, perm=(1, 0)), DType.INT64), leads)
        rank = g.ReduceSum(ahead, [1], keepdims=0)
    else:
        rank = g.Gather(g.CumSum(leads, 0, exclusive=1), first, axis=0)
    leaders = g.Squeeze(g.NonZero(leads), [0])
    slots = g.Gather(rank, leaders, axis=0)
    indices = g.ScatterElements(leaders, slots, leaders, axis=0)
    counts = g.Gather(g.ReduceSum(equal, [1], keepdims=0), indices, axis=0)
    if axis is None:
        return g.Gather(g.Reshape(x, [-1]), indices, axis=0), indices, rank, counts
    return g.Gather(x, indices, axis=axis % x.rank), indices, rank, counts
