"""Reductions over axes."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.geometry import Ints, axes_of, axis_of, others
from serde.graph import DType, Value
from serde.idioms import cast

from ..rules import reads

REDUCTIONS = {
    "sum": "ReduceSum",
    "sum_axis": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "max_axis": "ReduceMax",
    "min": "ReduceMin",
    "min_axis": "ReduceMin",
    "prod": "ReduceProd",
}


def chosen(x: Value, axis: Ints | None, exclude: bool) -> Ints:
    """The axes a reduction runs over: all where none is named, the others with ``exclude``."""
    named = axes_of(axis or (), x.rank)
    if not named:
        return () if exclude and axis is not None and axis != () else tuple(range(x.rank))
    return others(named, x.rank) if exclude else named


def all_of(g, y: Value, axes: Ints, x: Value, keepdims: bool):
    """MXNet's legacy operators have no scalars: a reduction of all axes has the shape (1,)."""
    return g.Reshape(y, [1]) if len(axes) == x.rank and not keepdims else y


def read_reduction(op, g, x, *, axis: Ints | None = None, keepdims=False, exclude=False):
    axes = chosen(x, axis, exclude)
    return all_of(g, g[op](x, axes, keepdims=int(keepdims)), axes, x, keepdims)


for _name, _op in REDUCTIONS.items():
    reads(_name)(partial(read_reduction, _op))


@reads("norm", only={"out_dtype": ("None",)})
def read_norm(g, x, *, ord=2, axis: Ints | None = None, keepdims=False):
    require(ord in (1, 2), f"ord={ord}")
    axes = axes_of(axis, x.rank) if axis else tuple(range(x.rank))
    y = g["ReduceL1" if ord == 1 else "ReduceL2"](x, axes, keepdims=int(keepdims))
    return all_of(g, y, axes, x, keepdims)


def read_arg(op, g, x, *, axis: int | None = None, keepdims=False):
    """Indices come in the type of the data: MXNet has no others here."""
    if axis is None:
        require(not keepdims, "keepdims without an axis")
        flat = g[op](g.Reshape(x, [-1]), axis=0, keepdims=1)
        return cast(g, flat, DType.FLOAT32)
    y = g[op](x, axis=axis_of(axis, x.rank), keepdims=int(keepdims or x.rank == 1))
    return cast(g, y, DType.FLOAT32)


reads("argmax")(partial(read_arg, "ArgMax"))
reads("argmin")(partial(read_arg, "ArgMin"))


@reads("argmax_channel")
def read_argmax_channel(g, x):
    return cast(g, g.ArgMax(x, axis=1, keepdims=0), DType.FLOAT32)


@reads("L2Normalization")
def read_l2_normalization(g, x, *, eps=1e-10, mode="instance"):
    modes = {"channel": (1,), "instance": range(1, x.rank), "spatial": range(2, x.rank)}
    require(mode in modes, f"mode={mode!r} is unknown")
    squares = g.ReduceSum(g.Mul(x, x), list(modes[mode]), keepdims=1)
    return g.Div(x, g.Sqrt(g.Add(squares, eps)))
