"""Reductions, places of extremes and Softmax: along axes of a tensor."""

from __future__ import annotations

import math

from serde.decompositions.reduction import sum_exponentials
from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import axes_of, axis_of
from serde.ir.graph import Dim, DType, Shape, Value
from serde.spec.expressions import lowest_value

from ..target import TfliteBuilder, legalizations, writes
from .elementwise import cast

REDUCTIONS = {
    "ReduceMax": "REDUCE_MAX", "ReduceMean": "MEAN", "ReduceMin": "REDUCE_MIN",
    "ReduceProd": "REDUCE_PROD", "ReduceSum": "SUM",
}  # fmt: skip


def reduced_shape(x: Value, axes, keepdims: int):
    """The shape without some axes, or with 1 for them."""
    sizes = enumerate(x.ranked_shape)
    if keepdims:
        return tuple([1 if a in axes else d for a, d in sizes])
    return tuple([d for a, d in sizes if a not in axes])


@legalizations("ReduceLogSumExp")
def legalize_log_sum_exp(
    g, x: Value, axes: Value | None = None, *, keepdims: int, noop_with_empty_axes: int
):
    """A Clip keeps the largest finite: kernels compare with no infinity."""
    lowest = lowest_value(x)

    def clip(most: Value):
        return g.Clip(most, g.scalar(lowest, x), g.scalar(-lowest, x))

    return sum_exponentials(g, x, axes, clip, keepdims, noop_with_empty_axes)


OF_BOOLEANS = {"REDUCE_MAX": "REDUCE_ANY", "REDUCE_MIN": "REDUCE_ALL"}


@writes.for_each(REDUCTIONS)
def write_reduction(code: str, t: TfliteBuilder, x: Value, axes: Value | None = None, *,
                    keepdims: int, noop_with_empty_axes: int):  # fmt: skip
    named = () if axes is None else axes_of(axes.ints(), x.rank)
    if not named and noop_with_empty_axes:
        return x
    named = named or tuple(range(x.rank))
    if not named:
        return x
    shape = reduced_shape(x, named, keepdims)
    if all(x.ranked_shape[a] == 1 for a in named):
        return t.reshape(x, shape)
    code = OF_BOOLEANS[code] if x.dtype is DType.BOOL else code
    return t.make(code, [x, t.ints(named)], x.dtype, shape, keep_dims=keepdims)


@writes("CumSum")
def write_cumsum(t: TfliteBuilder, x: Value, axis: Value, *, exclusive: int, reverse: int):
    options = {"exclusive": bool(exclusive), "reverse": bool(reverse)}
    place = cast(t, t.reshape(axis, ()), DType.INT32)
    return t.make("CUMSUM", [x, place], x.dtype, x.shape, **options)


@writes.for_each({"ArgMax": "ARG_MAX", "ArgMin": "ARG_MIN"}, only={"select_last_index": (0,)})
def write_arg(code: str, t: TfliteBuilder, x: Value, *, axis: int, keepdims: int):
    place = axis_of(axis, x.rank)
    shape = reduced_shape(x, (place,), 0)
    y = t.make(code, [x, t.ints(place)], DType.INT64, shape, output_type=4)
    return t.reshape(y, reduced_shape(x, (place,), 1)) if keepdims else y


def move_last(x: Value, axis: int):
    """The order of axes that has one of them last, and its inverse."""
    order = [a for a in range(x.rank) if a != axis] + [axis]
    return order, [order.index(a) for a in range(x.rank)]


@writes.for_each({"Softmax": ("SOFTMAX", {"beta": 1.0}), "LogSoftmax": ("LOG_SOFTMAX", {})})
def write_softmax(form, t: TfliteBuilder, x: Value, *, axis: int):
    code, options = form
    require(x.rank > 0, "a number. Nothing helps")
    order, back = move_last(x, axis_of(axis, x.rank))
    y = t.transpose(x, order)
    shape = y.ranked_shape
    if y.rank > 4:
        y = t.reshape(y, (count(shape[:-1]), shape[-1]))
    y = t.reshape(t.make(code, [y], x.dtype, y.shape, **options), shape)
    return t.transpose(y, back)


def count(sizes: Shape) -> Dim:
    """The product of sizes, None where one has a name."""
    return math.prod(sizes) if all(isinstance(d, int) for d in sizes) else None  # type: ignore[arg-type]


@writes("TopK", only={"largest": (1,)}, ignore=("sorted",))
def write_top_k(t: TfliteBuilder, x: Value, k: Value, *, axis: int):
    order, back = move_last(x, axis_of(axis, x.rank))
    y = t.transpose(x, order)
    (size,) = shape_data_of(k) or (None,)
    shape = (*y.ranked_shape[:-1], size)
    values, places = t.emit("TOPK_V2", [y, t.reshape(cast(t, k, DType.INT32), ())], {}, 2)
    values.dtype, values.shape, places.dtype, places.shape = x.dtype, shape, DType.INT32, shape
    return t.transpose(values, back), cast(t, t.transpose(places, back), DType.INT64)
