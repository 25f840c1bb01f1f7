"""Sums, means, extrema and their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .array import TracedArray, as_array, cast
from .core import (
    NOVALUE,
    axis_index,
    axis_tuple,
    emit,
    expand_dims,
    flatten_axis,
    full,
    implements,
    order_as_signed,
    order_as_unsigned,
    promote,
    refuse_options,
    reshape,
)  # fmt: skip
from .ufuncs import finish


def set_value(x: Any, default: Any = None) -> Any:
    """An option's value; a default where it is not given."""
    return default if x is NOVALUE else x


def reduced_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes of a reduction, counted from the front; an array without axes takes 0 and -1."""
    return () if rank == 0 and axis in (0, -1, (0,), (-1,)) else axis_tuple(axis, rank)


def reduce_axes(x: TracedArray, op: str, axes: Sequence[int], keepdims: bool) -> TracedArray:
    """A reduction by one operator; over no axes, the elements themselves."""
    if not axes:
        return x
    return emit(x, op, list(axes), keepdims=int(keepdims))


def sum_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that a sum of elements has."""
    return np.add.reduce(np.zeros(1, dtype)).dtype


def _trace_reduction(op: str, combine: Any, identity: Any) -> Any:
    """What traces a sum or a product."""

    def handler(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
                initial: Any = None, where: Any = True) -> Any:  # fmt: skip
        x = as_array(a)
        axes = reduced_axes(axis, x.ndim)
        x = cast(x, sum_type(x.dtype) if dtype is None else dtype)
        if (mask := set_value(where, True)) is not True:
            x = cast(np.where(mask, x, np.asarray(identity, x.dtype)), x.dtype)
        operand = cast(x, np.float32) if x.dtype == np.float16 else x
        result = cast(reduce_axes(operand, op, axes, bool(set_value(keepdims))), x.dtype)
        if (first := set_value(initial)) is not None:
            result = combine(result, _cast_initial(first, result.dtype))
        return finish(result, out)

    return handler


implements(np.sum)(_trace_reduction("ReduceSum", np.add, 0))
implements(np.prod)(_trace_reduction("ReduceProd", np.multiply, 1))


def _cast_initial(first: Any, dtype: Any) -> Any:
    """What a reduction starts from, in its element type."""
    return cast(first, dtype) if isinstance(first, TracedArray) else np.array(first, dtype)


def fill_nan(x: TracedArray, number: Any) -> TracedArray:
    """``x`` with a number in place of NaN."""
    if x.dtype.kind != "f":
        return x
    return as_array(np.where(np.isnan(x), np.asarray(number, x.dtype), x))


def skip_nan(function: Any, identity: Any) -> Any:
    """What traces a reduction in which NaN counts as a number that changes nothing."""

    def handler(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any
    ) -> Any:
        return function(fill_nan(as_array(a), identity), axis, dtype, out, **options)

    return handler


implements(np.nansum)(skip_nan(np.sum, 0))
implements(np.nanprod)(skip_nan(np.prod, 1))


def count_of(x: TracedArray, axes: Sequence[int]) -> Any:
    """How many elements a reduction over ``axes`` takes."""
    total: Any = 1
    for axis in axes:
        total = total * x.size_of(axis)
    return total


def _mean_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


@implements(np.mean)
def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
          *, where: Any = True) -> Any:  # fmt: skip
    x = as_array(a)
    expected = _mean_type(x.dtype) if dtype is None else np.dtype(dtype)
    if (mask := set_value(where, True)) is not True:
        mask = np.broadcast_to(as_array(mask, x.rec), x.shape)
        count = np.sum(mask, axis, keepdims=set_value(keepdims, False))
        total = np.sum(x, axis, expected, keepdims=set_value(keepdims, False), where=mask)
        return finish(cast(as_array(np.true_divide(total, count)), expected), out)
    axes, keep = axis_tuple(axis, x.ndim), bool(set_value(keepdims))
    sum_dtype = np.dtype(np.float32) if expected == np.float16 else expected
    x = cast(x, sum_dtype)
    if all(isinstance(x.dims[i], int) and x.dims[i] for i in axes):
        result = reduce_axes(x, "ReduceMean", axes, keep)
    else:  # of no elements the mean is NaN, but runtimes' ReduceMean 0
        count = cast(as_array(count_of(x, axes), x.rec), sum_dtype)
        with np.errstate(all="ignore"):
            result = as_array(np.true_divide(reduce_axes(x, "ReduceSum", axes, keep), count))
    return finish(cast(result, expected), out)


@implements(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *,
             keepdims: Any = NOVALUE) -> Any:  # fmt: skip
    x, keep = as_array(a) if weights is None else promote([a, weights])[0], set_value(keepdims)
    if weights is None:
        mean = np.mean(x, axis, keepdims=bool(keep))
        if not returned:
            return mean
        count = as_array(count_of(x, axis_tuple(axis, x.ndim)), x.rec, mean.dtype)
        return mean, np.broadcast_to(count, np.shape(mean))
    w = as_array(weights, x.rec)
    if w.dims != x.dims:
        at = axis_index(axis, x.ndim)
        w = expand_dims(w, [i for i in range(x.ndim) if i != at])
    kinds = [x.dtype, w.dtype] + [np.dtype(np.float64)] * (as_array(a).dtype.kind in "biu")
    expected = np.result_type(*kinds)
    x, w = cast(x, expected), cast(w, expected)
    total = np.sum(w, axis, keepdims=bool(keep)) if w.dims == x.dims else np.sum(w)
    mean = np.true_divide(np.sum(np.multiply(x, w), axis, keepdims=bool(keep)), total)
    return (mean, total) if returned else mean


@implements(np.var)
def _var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
         keepdims: Any = False, *, where: Any = True, mean: Any = NOVALUE,
         correction: Any = NOVALUE) -> Any:  # fmt: skip
    x = as_array(a)
    refuse_options("np.var", where=None if set_value(where, True) is True else where)
    freedom = set_value(correction, ddof)
    expected = _mean_type(x.dtype) if dtype is None else np.dtype(dtype)
    operand = cast(x, np.float32 if expected == np.float16 else expected)
    axes = axis_tuple(axis, x.ndim)
    middle = np.mean(operand, axes, keepdims=True) if set_value(mean) is None else mean
    squares = np.sum(np.square(operand - middle), axes, keepdims=bool(set_value(keepdims)))
    count = count_of(x, axes)
    if isinstance(count, int) and isinstance(freedom, (int, float)):
        divisor: Any = max(count - freedom, 0)
    else:
        divisor = as_array(np.maximum(as_array(count - freedom), 0))
        divisor = cast(divisor, operand.dtype)
    with np.errstate(all="ignore"):
        result = squares / (divisor if isinstance(divisor, TracedArray)
                            else np.asarray(divisor, operand.dtype))  # fmt: skip
    return finish(cast(as_array(result), expected), out)


@implements(np.std)
def _std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
         keepdims: Any = False, **options: Any) -> Any:  # fmt: skip
    return finish(np.sqrt(np.var(a, axis, dtype, None, ddof, keepdims, **options)), out)


# Extrema


def _lowest(dtype: np.dtype[Any], largest: bool) -> Any:
    """The number that no other is above, or below."""
    if dtype.kind == "f":
        return dtype.type(-np.inf if largest else np.inf)
    if dtype.kind == "b":
        return np.bool_(not largest)
    info = np.iinfo(dtype)
    return dtype.type(info.min if largest else info.max)


def _trace_extreme(largest: bool) -> Any:
    """What traces ``np.max``, or ``np.min``."""

    def handler(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
                initial: Any = None, where: Any = True) -> Any:  # fmt: skip
        x = as_array(a)
        axes, keep = reduced_axes(axis, x.ndim), bool(set_value(keepdims))
        first, mask = set_value(initial), set_value(where, True)
        if first is None and any(x.dims[i] == 0 for i in axes):
            name = "maximum" if largest else "minimum"
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        if mask is not True:
            if first is None:
                raise ValueError("reduction operation needs an initial value to use a where mask")
            x = cast(as_array(np.where(mask, x, _lowest(x.dtype, largest))), x.dtype)
        if first is not None and any(x.dims[i] == 0 for i in axes):
            sizes = [1 if i in axes else s for i, s in enumerate(x.shape)]
            result = full(x.rec, sizes, first, x.dtype)
            return finish(result if keep else np.squeeze(result, axes), out)
        result = _reduce_to_extreme(x, axes, keep, largest)
        if first is not None:
            result = (np.maximum if largest else np.minimum)(result, _cast_initial(first, x.dtype))
        return finish(result, out)

    return handler


def _reduce_to_extreme(x: TracedArray, axes: Any, keep: bool, largest: bool) -> TracedArray:
    """The extremes over axes; NaN where there is one."""
    dtype, op = x.dtype, "ReduceMax" if largest else "ReduceMin"
    if dtype == np.uint64:
        return order_as_unsigned(reduce_axes(order_as_signed(x), op, axes, keep))
    compared_dtype = np.float32 if dtype == np.float16 else dtype
    result = cast(reduce_axes(cast(x, compared_dtype), op, axes, keep), dtype)
    if dtype.kind != "f" or not axes:
        return result
    nan = reduce_axes(cast(as_array(np.isnan(x)), np.float32), "ReduceMax", axes, keep)
    return emit(cast(nan, bool), "Where", np.asarray(np.nan, dtype), result)


implements(np.max, np.amax)(_trace_extreme(True))
implements(np.min, np.amin)(_trace_extreme(False))


def _trace_nan_extreme(largest: bool) -> Any:
    """What traces ``np.nanmax``, or ``np.nanmin``."""
    extreme = np.max if largest else np.min

    def handler(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOVALUE, **o: Any
    ) -> Any:
        x, keep = as_array(a), bool(set_value(keepdims))
        if x.dtype.kind != "f":
            return extreme(x, axis, out, keepdims=keep, **o)
        values = extreme(fill_nan(x, _lowest(x.dtype, largest)), axis, keepdims=keep, **o)
        nothing = np.all(np.isnan(x), axis, keepdims=keep)
        return finish(np.where(nothing, x.dtype.type(np.nan), values), out)

    return handler


implements(np.nanmax)(_trace_nan_extreme(True))
implements(np.nanmin)(_trace_nan_extreme(False))


@implements(np.nanmean)
def _nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOVALUE,
             **options: Any) -> Any:  # fmt: skip
    x, keep = as_array(a), bool(set_value(keepdims))
    refuse_options("np.nanmean", **{k: set_value(v) for k, v in options.items()})
    if x.dtype.kind != "f":
        return np.mean(x, axis, dtype, out, keep)
    total = np.sum(fill_nan(x, 0), axis, dtype, keepdims=keep)
    count = np.sum(~np.isnan(x), axis, keepdims=keep)
    return finish(cast(as_array(total / count), total.dtype), out)


@implements(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOVALUE) -> Any:
    keep = bool(set_value(keepdims))
    return finish(np.max(a, axis, keepdims=keep) - np.min(a, axis, keepdims=keep), out)


def _trace_logical(is_any: bool) -> Any:
    """What traces ``np.any``, or ``np.all``: a count of the elements that are true, or false."""

    def handler(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *,
                where: Any = True) -> Any:  # fmt: skip
        x = cast(as_array(a), bool)
        if (mask := set_value(where, True)) is not True:
            x = as_array(np.where(mask, x, np.bool_(not is_any)))
        axes, keep = reduced_axes(axis, x.ndim), bool(set_value(keepdims))
        if not axes:
            return finish(x, out)
        counted = x if is_any else as_array(~x)
        count = reduce_axes(cast(counted, np.int32), "ReduceSum", axes, keep)
        return finish((count > 0) if is_any else (count == 0), out)

    return handler


implements(np.all)(_trace_logical(False))
implements(np.any)(_trace_logical(True))


@implements(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.sum(cast(as_array(a), bool), axis, keepdims=keepdims)


def _trace_position(op: str) -> Any:
    """What traces ``np.argmax``, or ``np.argmin``; NaN is the extreme where there is one."""

    def handler(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOVALUE) -> Any:
        x = as_array(a)
        keep, rank = bool(set_value(keepdims)), x.ndim
        x, at = flatten_axis(x, axis)
        if rank == 0:
            return finish(as_array(np.zeros((), np.int64), x.rec), out)
        if x.dims[at] == 0:
            raise ValueError(f"attempt to get {op.lower()} of an empty sequence")
        x = cast(x, np.int64) if x.dtype == np.uint32 else x
        x = order_as_signed(x) if x.dtype == np.uint64 else x
        result = emit(x, op, axis=at, keepdims=1, select_last_index=0)
        if x.dtype.kind == "f":
            nan = cast(as_array(np.isnan(x)), np.int32)
            first = emit(nan, "ArgMax", axis=at, keepdims=1, select_last_index=0)
            there = cast(reduce_axes(nan, "ReduceMax", [at], True), bool)
            result = emit(there, "Where", first, result)
        if not keep:
            result = np.squeeze(result, at)
        elif axis is None:
            result = reshape(result, [1] * rank)
        return finish(result, out)

    return handler


implements(np.argmax)(_trace_position("ArgMax"))
implements(np.argmin)(_trace_position("ArgMin"))
