"""Reductions over axes."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints, axes_of, other_axes
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.reduction import over_computed_axes

from ..rules import reads
from ..target import dims_or, emit_scalar, legalizations, writes
from .shape import static_sizes
from .widths import compute_widely

REDUCTIONS = {
    "max": "ReduceMax",
    "mean": "ReduceMean",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "sum": "ReduceSum",
}


def choose_axes(x: Value, axis: Ints | None, exclude: bool) -> Ints:
    """The axes a reduction runs over: all where none is named, the others with ``exclude``."""
    named = axes_of(tuple(range(x.rank)) if axis is None else axis, x.rank)
    return other_axes(named, x.rank) if exclude and axis is not None else named


def reduce_axes(op, g, x: Value, axes: Ints, keepdims: bool):
    if not axes:
        return x
    if x.type is DType.UINT64 and op in ("ReduceMax", "ReduceMin"):  # int64 has half of it
        least = g.const(-(2**63), DType.INT64)
        ordered = g[op](g.Add(g.cast(x, DType.INT64), least), axes, keepdims=int(keepdims))
        return g.cast(g.Add(ordered, least), x.type)
    return compute_widely(g, lambda g, x: g[op](x, axes, keepdims=int(keepdims)), x)


@reads.for_each(REDUCTIONS)
def read_reduction(op, g, x: Value, *, axis: Ints | None = None, keepdims=False, exclude=False):
    axes = choose_axes(x, axis, exclude)
    if op == "ReduceMean" and x.type.kind in "iu":
        return integer_mean(g, x, axes, keepdims)
    return reduce_axes(op, g, x, axes, keepdims)


def integer_mean(g, x: Value, axes: Ints, keepdims: bool):
    """The sum divided by the count, both wrapped around in the type of ``x`` as in TVM."""
    size = count_reduced(g, x, axes)
    if size.tensor is not None:
        wrapped = size.array().astype(x.type.numpy)
        require(bool(wrapped), f"a mean of {size.array()} elements of {x.type.value}")
        size = g.const(wrapped.astype(np.int64))
    total = reduce_axes("ReduceSum", g, g.cast(x, DType.INT64), axes, keepdims)
    return g.cast(g.Div(g.cast(g.cast(total, x.type), DType.INT64), size), x.type)


def count_reduced(g, x: Value, axes: Ints):
    """How many elements are reduced to one, as a tensor."""
    size = g.multiply_sizes([g.size_of(x, a) for a in axes])
    return g.const(size, DType.INT64) if isinstance(size, int) else g.Squeeze(size, [0])


@reads.for_each({"all": "ReduceMin", "any": "ReduceMax"})
def read_truth(op, g, x: Value, *, axis: Ints | None = None, keepdims=False, exclude=False):
    x_int32 = g.cast(x, DType.INT32)
    return g.cast(reduce_axes(op, g, x_int32, choose_axes(x, axis, exclude), keepdims), DType.BOOL)


@reads("variance")
def read_variance(
    g, x, mean, *, axis: Ints | None = None, keepdims=False, exclude=False, unbiased=False
):
    """The mean square of what is left of ``x`` when ``mean``, of all its axes, is taken away."""
    axes = choose_axes(x, axis, exclude)
    size = count_reduced(g, x, axes)
    size = g.Sub(size, g.const(1, DType.INT64)) if unbiased else size

    def apply(g, x, mean):
        off = g.Sub(x, mean)
        total = g.ReduceSum(g.Mul(off, off), axes, keepdims=int(keepdims))
        return g.Div(total, g.cast(size, x.type))

    return g.compute_in_float32(apply, x, mean)


# Types that ONNX Runtime finds no extremes of, and those that are searched.
COUNTED = dict.fromkeys((DType.INT16, DType.UINT16, DType.BOOL), DType.INT32) | {
    DType.UINT32: DType.INT64
}


@reads.for_each({"argmax": "ArgMax", "argmin": "ArgMin"})
def read_arg(
    op, g, x: Value, *, axis: Ints | None = None, keepdims=False, exclude=False,
    select_last_index=False,
):  # fmt: skip
    """Where the extreme is, counted along the axes as if they were one."""
    axes = choose_axes(x, axis, exclude)
    require(len(axes) in (1, x.rank), f"axis={axes}: several axes, and not all")
    keys = g.cast(x, COUNTED[x.type]) if x.type in COUNTED else x
    pick = int(select_last_index)
    if len(axes) == 1:
        y = g[op](keys, axis=axes[0], keepdims=int(keepdims), select_last_index=pick)
    else:
        flat = g.Reshape(keys, [-1])
        y = g[op](flat, axis=0, keepdims=int(keepdims), select_last_index=pick)
        y = g.Unsqueeze(y, list(range(x.rank - 1))) if keepdims else y
    return g.cast(y, DType.INT32)


@reads("collapse_sum_like")
def read_collapse_sum_like(g, x, like):
    return sum_to_shape(g, x, like.ranked_shape, g.Shape(like))


@reads("collapse_sum_to", ignore=("shape", "dtype"))
def read_collapse_sum_to(g, x, shape):
    return sum_to_shape(g, x, shape.ints(), g.cast(shape, DType.INT64))


def sum_to_shape(g, x: Value, dims, shape: Value):
    """Sum over the axes that broadcasting ``dims`` to the shape of ``x`` would stretch."""
    extra = x.rank - len(dims)
    stretched = tuple(
        a for a in range(x.rank) if a < extra or (dims[a - extra] == 1 and x.ranked_shape[a] != 1)
    )
    return g.Reshape(g.ReduceSum(x, stretched, keepdims=1), shape) if stretched else x


def reduction_axes(x: Value, axes: Value | None, noop: int) -> tuple[int, ...] | None:
    """The axes reduced over; None for all."""
    chosen = static_sizes(axes)
    require(axes is None or chosen is not None, "a reduction over dynamic axes")
    return chosen or (() if noop else None)


@legalizations.for_each(REDUCTIONS.values())
def legalize_reduction(op, g, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """Axes that are to be none leave the element; booleans are compared as numbers."""
    if axes is not None and axes.shape == (0,):
        return g.Identity(x) if noop_with_empty_axes else g[op](x, None, keepdims=keepdims)
    if noop_with_empty_axes and axes is None:
        return g.Identity(x)
    if x.type is DType.BOOL:
        small = g.cast(x, DType.UINT8)
        form = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
        return g.cast_like(g[op](small, axes, **form), x)
    if axes is not None and static_sizes(axes) is None:
        if x.type is DType.FLOAT16:  # no constant that TVM inlines in dynamic shapes
            form = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
            return g.cast(g[op](g.cast(x, DType.FLOAT32), axes, **form), x.type)
        return over_computed_axes(op, g, x, axes, keepdims, noop_with_empty_axes)
    return None


@writes.for_each({op: name for name, op in REDUCTIONS.items()})
def write_reduction(name, r, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """TVM's max starts at the lowest finite float: slices that are all -inf are a special case."""
    over = reduction_axes(x, axes, noop_with_empty_axes)
    if 0 in x.ranked_shape:
        return initial_value(r, name, x, over, keepdims)
    y = r[name](x, axis=over, keepdims=keepdims)
    if name not in ("max", "min") or x.type.kind != "f":
        return y
    end = emit_scalar(r, float("-inf" if name == "max" else "inf"), x.type)
    every = r.all(r.equal(x, end), axis=over, keepdims=keepdims)
    return r.where(every, end, y)


def initial_value(r, name: str, x: Value, over, keepdims: int) -> Value:
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
    return r.full(emit_scalar(r, fill, kind), shape=kept, dtype=kind.value)


@writes.for_each({"ArgMax": "argmax", "ArgMin": "argmin"})
def write_arg(name, r, x, *, axis: int, keepdims: int, select_last_index: int):
    """TVM finds none, numbered -1, where all are the last that the type has."""
    index = r[name](x, axis=[axis], keepdims=keepdims, select_last_index=select_last_index)
    return r.maximum(r.cast(index, dtype="int64"), emit_scalar(r, 0, DType.INT64))
