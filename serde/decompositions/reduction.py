"""Reductions in terms of simpler ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from serde.decompositions.table import decompositions
from serde.ir.graph import DType, Value

SQUARE = "square"
# What is done to the elements, how these are reduced, and what is done to the result.
COMPOSED = {
    "ReduceL1": ("Abs", "ReduceSum", None),
    "ReduceL2": (SQUARE, "ReduceSum", "Sqrt"),
    "ReduceLogSum": (None, "ReduceSum", "Log"),
    "ReduceSumSquare": (SQUARE, "ReduceSum", None),
}


def compose_reduction(op, g, x: Value, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    before, reduction, after = COMPOSED[op]
    form = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
    inner = g.Mul(x, x) if before == SQUARE else g[before](x) if before else x
    y = g[reduction](inner, axes, **form)
    if after is None:
        return y
    return g[after](y) if x.type.kind == "f" else g.cast_like(g[after](g.cast(y, DType.FLOAT64)), x)


for _op in COMPOSED:
    decompositions(_op)(partial(compose_reduction, _op))


def extreme_of_booleans(op, g, x: Value, axes=None, **form):
    """ReduceMax or ReduceMin for targets that have them of numbers only."""
    return g.cast(g[op](g.cast(x, DType.UINT8), axes, **form), DType.BOOL)


def extreme_of_infinite(op, g, x: Value, axes=None, **form):
    """ReduceMax or ReduceMin for targets that give the farthest finite number for elements that are
    all infinite: such slices are special-cased.
    """
    if x.type.kind != "f":
        return None
    end = g.const(np.array(-np.inf if op == "ReduceMax" else np.inf, x.type.numpy))
    y = g.as_is(op, (x, axes), form)
    if x.is_static and 0 in x.shape and y.is_static:
        return g.Expand(end, y.shape)
    other = g.cast(g.Equal(x, end), DType.INT32)
    every = g.Equal(g.ReduceMin(other, axes, **form), 1)
    return g.Where(every, end, y)


@decompositions("ReduceLogSumExp")
def log_sum_exp(g, x: Value, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    def make_finite(most: Value):
        return g.Where(g.Less(g.Abs(most), float("inf")), most, 0.0)

    return sum_exponentials(g, x, axes, make_finite, keepdims, noop_with_empty_axes)


def sum_exponentials(
    g, x: Value, axes, make_finite: Callable[[Value], Any], keepdims: int, noop_with_empty_axes: int
):  # fmt: skip
    """The largest is taken out, so that no exponential overflows.

    ``make_finite`` gives it where it is finite, and any finite number where it is not.
    """
    form = {"noop_with_empty_axes": noop_with_empty_axes}
    if x.type.kind != "f":
        reduced = g.ReduceLogSumExp(g.cast(x, DType.FLOAT64), axes, keepdims=keepdims, **form)
        return g.cast_like(reduced, x)
    finite = make_finite(g.ReduceMax(x, axes, keepdims=1, **form))
    total = g.ReduceSum(g.Exp(g.Sub(x, finite)), axes, keepdims=1, **form)
    y = g.Add(g.Log(total), finite)
    every = axes is None or axes.shape == (0,)
    if keepdims or (noop_with_empty_axes and every):
        return y
    return g.Squeeze(y, list(range(x.rank)) if every else axes)


@decompositions("GlobalLpPool")
def global_lp_pool(g, x: Value, *, p: int):
    sums = g.ReduceSum(g.Pow(g.Abs(x), float(p)), list(range(2, x.rank)), keepdims=1)
    return g.Pow(sums, 1 / p)


def global_average(g, x: Value):
    """GlobalAveragePool: a mean over all axes behind the channels."""
    return g.ReduceMean(x, list(range(2, x.rank)), keepdims=1)


def global_max(g, x: Value):
    """GlobalMaxPool: a maximum over all axes behind the channels."""
    return g.ReduceMax(x, list(range(2, x.rank)), keepdims=1)
