"""Reductions over axes."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.decompositions.expressions import cast, in_float32, scalar, size_of, times
from serde.errors import require
from serde.ir.geometry import Ints, axes_of, others
from serde.ir.graph import DType, Value

from ..rules import reads
from .widths import widely

REDUCTIONS = {
    "max": "ReduceMax",
    "mean": "ReduceMean",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "sum": "ReduceSum",
}


def chosen(x: Value, axis: Ints | None, exclude: bool) -> Ints:
    """The axes a reduction runs over: all where none is named, the others with ``exclude``."""
    named = axes_of(tuple(range(x.rank)) if axis is None else axis, x.rank)
    return others(named, x.rank) if exclude and axis is not None else named


def reduced(op, g, x: Value, axes: Ints, keepdims: bool):
    if not axes:
        return x
    return widely(g, lambda g, x: g[op](x, axes, keepdims=int(keepdims)), x)


def read_reduction(
    op, g, x: Value, *, axis: Ints | None = None, keepdims=False, exclude=False
):  # fmt: skip
    axes = chosen(x, axis, exclude)
    if op == "ReduceMean" and x.type.kind in "iu":
        return integer_mean(g, x, axes, keepdims)
    return reduced(op, g, x, axes, keepdims)


def integer_mean(g, x: Value, axes: Ints, keepdims: bool):
    """The sum divided by the count, both wrapped around in the type of ``x`` as in TVM."""
    size = count(g, x, axes)
    if size.tensor is not None:
        wrapped = size.array().astype(x.type.numpy)
        require(bool(wrapped), f"a mean of {size.array()} elements of {x.type.value}")
        size = g.const(wrapped.astype(np.int64))
    total = reduced("ReduceSum", g, cast(g, x, DType.INT64), axes, keepdims)
    return cast(g, g.Div(cast(g, cast(g, total, x.type), DType.INT64), size), x.type)


def count(g, x: Value, axes: Ints):
    """How many elements are reduced to one, as a tensor."""
    size = times(g, [size_of(g, x, a) for a in axes])
    return g.const(size, DType.INT64) if isinstance(size, int) else g.Squeeze(size, [0])


for _name, _op in REDUCTIONS.items():
    reads(_name)(partial(read_reduction, _op))


def read_truth(op, g, x: Value, *, axis: Ints | None = None, keepdims=False, exclude=False):
    wide = cast(g, x, DType.INT32)
    return cast(g, reduced(op, g, wide, chosen(x, axis, exclude), keepdims), DType.BOOL)


reads("all")(partial(read_truth, "ReduceMin"))
reads("any")(partial(read_truth, "ReduceMax"))


@reads("variance")
def read_variance(
    g, x, mean, *, axis: Ints | None = None, keepdims=False, exclude=False, unbiased=False
):
    """The mean square of what is left of ``x`` when ``mean``, of all its axes, is taken away."""
    axes = chosen(x, axis, exclude)
    size = count(g, x, axes)
    size = g.Sub(size, g.const(1, DType.INT64)) if unbiased else size

    def apply(g, x, mean):
        off = g.Sub(x, mean)
        total = g.ReduceSum(g.Mul(off, off), axes, keepdims=int(keepdims))
        return g.Div(total, cast(g, size, x.type))

    return in_float32(g, apply, x, mean)


def read_arg(
    op, g, x: Value, *, axis: Ints | None = None, keepdims=False, exclude=False,
    select_last_index=False,
):  # fmt: skip
    """Where the extreme is, counted along the axes as if they were one."""
    axes = chosen(x, axis, exclude)
    require(len(axes) in (1, x.rank), f"axis={axes}: several axes, and not all")
    wide = cast(g, x, DType.INT32) if x.type in (DType.INT16, DType.UINT16, DType.BOOL) else x
    pick = int(select_last_index)
    if len(axes) == 1:
        y = g[op](wide, axis=axes[0], keepdims=int(keepdims), select_last_index=pick)
    else:
        flat = g.Reshape(wide, [-1])
        y = g[op](flat, axis=0, keepdims=int(keepdims), select_last_index=pick)
        y = g.Unsqueeze(y, list(range(x.rank - 1))) if keepdims else y
    return cast(g, y, DType.INT32)


reads("argmax")(partial(read_arg, "ArgMax"))
reads("argmin")(partial(read_arg, "ArgMin"))


@reads("collapse_sum_like")
def read_collapse_sum_like(g, x, like):
    return collapsed(g, x, like.known, g.Shape(like))


@reads("collapse_sum_to", ignore=("shape", "dtype"))
def read_collapse_sum_to(g, x, shape):
    return collapsed(g, x, shape.ints(), cast(g, shape, DType.INT64))


def collapsed(g, x: Value, dims, shape: Value):
    """Sum over the axes that broadcasting ``dims`` to the shape of ``x`` would stretch."""
    extra = x.rank - len(dims)
    stretched = tuple(
        a for a in range(x.rank) if a < extra or (dims[a - extra] == 1 and x.known[a] != 1)
    )
    return g.Reshape(g.ReduceSum(x, stretched, keepdims=1), shape) if stretched else x


@reads("nn.l2_normalize")
def read_l2_normalize(g, x, *, eps: float, axis: Ints | None = None):
    axes = axes_of(axis if axis is not None else range(x.rank), x.rank)

    def apply(g, x):
        squares = g.ReduceSum(g.Mul(x, x), axes, keepdims=1)
        return g.Div(x, g.Sqrt(g.Max(squares, scalar(g, eps, x))))

    return in_float32(g, apply, x)
