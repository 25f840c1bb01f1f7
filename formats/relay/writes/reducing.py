"""Reductions, running sums, sorting."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.decompositions import shared
from serde.decompositions.expressions import cast as cast_to
from serde.decompositions.expressions import cast_like, number
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES
from serde.version_converter.adapters.reduction import over_computed_axes

from ..target import dims_or, scalar, writes
from . import dynamic_args
from .recast import recasts
from .shaping import sizes

REDUCTIONS = {
    "ReduceMax": "max",
    "ReduceMean": "mean",
    "ReduceMin": "min",
    "ReduceProd": "prod",
    "ReduceSum": "sum",
}
SORTED = {  # types TVM does not sort, and those that do for them
    DType.FLOAT16: DType.FLOAT32,
    DType.INT8: DType.INT32,
    DType.INT16: DType.INT32,
    DType.UINT8: DType.INT32,
    DType.UINT16: DType.INT32,
    DType.UINT32: DType.INT64,
    DType.UINT64: DType.INT64,
}
COMPOSED = {  # what is reduced by which operator, and what becomes of the result
    "ReduceL1": ("Abs", "ReduceSum", None),
    "ReduceL2": ("square", "ReduceSum", "Sqrt"),
    "ReduceLogSum": (None, "ReduceSum", "Log"),
    "ReduceSumSquare": ("square", "ReduceSum", None),
}


def reduced(x: Value, axes: Value | None, noop: int) -> tuple[int, ...] | None:
    """The axes reduced over; None for all."""
    chosen = sizes(axes)
    require(axes is None or chosen is not None, "a reduction over dynamic axes")
    return chosen or (() if noop else None)


def recast_reduction(op, g, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """Axes that are to be none leave the element; booleans are compared as numbers."""
    if axes is not None and axes.shape == (0,):
        return g.Identity(x) if noop_with_empty_axes else g[op](x, None, keepdims=keepdims)
    if noop_with_empty_axes and axes is None:
        return g.Identity(x)
    if x.type is DType.BOOL:
        small = cast_to(g, x, DType.UINT8)
        form = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
        return cast_like(g, g[op](small, axes, **form), x)
    if axes is not None and sizes(axes) is None:
        return over_computed_axes(op, g, x, axes, keepdims, noop_with_empty_axes)
    return None


def write_reduction(name, r, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """TVM starts from the lowest finite number, so what is infinite throughout is told apart."""
    over = reduced(x, axes, noop_with_empty_axes)
    if 0 in x.known:
        return of_nothing(r, name, x, over, keepdims)
    made = r[name](x, axis=over, keepdims=keepdims)
    if name not in ("max", "min") or x.type.kind != "f":
        return made
    end = scalar(r, float("-inf" if name == "max" else "inf"), x.type)
    every = r.all(r.equal(x, end), axis=over, keepdims=keepdims)
    return r.where(every, end, made)


def of_nothing(r, name: str, x: Value, over, keepdims: int) -> Value:
    """What a reduction of no elements starts from, which Relay does not compute."""
    dims = dims_or(x, "a reduction of no elements")
    chosen = range(x.rank) if over is None else over
    kept = [1 if a in chosen else d for a, d in enumerate(dims) if keepdims or a not in chosen]
    require(name != "mean" or 0 in kept, "the mean of no elements")
    kind = x.type
    fill: float
    if name in ("sum", "prod", "mean"):
        fill = int(name == "prod")
    elif kind.kind == "f":
        fill = float("-inf" if name == "max" else "inf")
    else:
        ends = np.iinfo(kind.numpy)
        fill = ends.min if name == "max" else ends.max
    return r.full(scalar(r, fill, kind), shape=kept, dtype=kind.value)


for _op, _name in REDUCTIONS.items():
    recasts(_op)(partial(recast_reduction, _op))
    writes(_op)(partial(write_reduction, _name))


def recast_composed(op, g, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    before, reduction, after = COMPOSED[op]
    form = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
    inner = g.Mul(x, x) if before == "square" else g[before](x) if before else x
    made = g[reduction](inner, axes, **form)
    if after is None:
        return made
    if x.type.kind != "f":
        return cast_like(g, g[after](cast_to(g, made, DType.FLOAT64)), x)
    return g[after](made)


for _op in COMPOSED:
    recasts(_op)(partial(recast_composed, _op))


recasts("ReduceLogSumExp")(shared.log_sum_exp)


def write_arg(name, r, x, *, axis: int, keepdims: int, select_last_index: int):
    found = r[name](x, axis=[axis], keepdims=keepdims, select_last_index=select_last_index)
    return r.cast(found, dtype="int64")


writes("ArgMax")(partial(write_arg, "argmax"))
writes("ArgMin")(partial(write_arg, "argmin"))


@writes("Softmax")
def write_softmax(r, x, *, axis: int):
    return r.nn.softmax(x, axis=axis)


@recasts("LogSoftmax")
def recast_log_softmax(g, x, *, axis: int):
    if x.is_static:
        return None
    low = g.Sub(x, g.ReduceMax(x, [axis], keepdims=1))
    return g.Sub(low, g.Log(g.ReduceSum(g.Exp(low), [axis], keepdims=1)))


@writes("LogSoftmax")
def write_log_softmax(r, x, *, axis: int):
    return r.nn.log_softmax(x, axis=axis)


@recasts("Hardmax")
def recast_hardmax(g, x, *, axis: int):
    """1 at the first of the largest."""
    size = x.known[axis]
    require(isinstance(size, int), "a Hardmax along an axis of dynamic size")
    at = g.ArgMax(x, axis=axis, keepdims=1)
    steps = g.Reshape(g.Range(0, size, 1), [-1] + [1] * (x.rank - axis - 1))
    return cast_like(g, g.Equal(steps, at), x)


def recast_running(op, g, x, axis, *, exclusive: int, reverse: int):
    return (
        None
        if number(axis) is not None
        else dynamic_args.running(op, g, x, axis, exclusive, reverse)
    )


def write_running(name, r, x, axis, *, exclusive: int, reverse: int):
    along = number(axis)
    require(along is not None, "a running sum along a dynamic axis")
    along, dtype = along % x.rank, x.type.value
    made = r[name](
        backwards(r, x, along) if reverse else x, axis=along, exclusive=exclusive, dtype=dtype
    )
    return backwards(r, made, along) if reverse else made


def backwards(r, x: Value, axis: int) -> Value:
    """The elements along one axis from the last to the first."""
    ends = {"begin": (-1,), "end": (-(2**31) + 1,), "strides": (-1,), "axes": (axis,)}
    return r.reverse(x, axis=axis) if x.is_static else r.strided_slice(x, **ends)


for _op, _name in (("CumSum", "cumsum"), ("CumProd", "cumprod")):
    recasts(_op)(partial(recast_running, _op))
    writes(_op)(partial(write_running, _name))


@recasts("TopK")
def recast_top_k(g, x, k, *, axis: int, largest: int, sorted: int, outputs: int = 1):
    """Of the types TVM sorts; the order of unsigned numbers is that of signed ones half as far."""
    kind = SORTED.get(x.type)
    if kind is None:
        return None
    form = {"axis": axis, "largest": largest, "sorted": sorted, "outputs": 2}
    if x.type is not DType.UINT64:
        found, at = g.TopK(cast_to(g, x, kind), k, **form)
        found = cast_like(g, found, x)
        return (found, at) if outputs > 1 else found
    half = g.const(np.array(1 << 63, np.uint64))
    signed = g.BitCast(g.BitwiseXor(x, half), to=ELEMENT_CODES[kind])
    found, at = g.TopK(signed, k, **form)
    found = g.BitwiseXor(g.BitCast(found, to=ELEMENT_CODES[x.type]), half)
    return (found, at) if outputs > 1 else found


@writes("TopK", ignore=("sorted",))
def write_top_k(r, x, k, *, axis: int, largest: int):
    count = number(k)
    form = {"axis": axis, "is_ascend": not largest, "dtype": "int64", "outputs": 2}
    if count is None:
        return r.dyn.topk(x, r.reshape(k, newshape=(1,)), **form)
    return r.topk(x, k=count, **form)
