"""Cumulative sums and products, differences, and integrals."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import TracedArray, as_array, cast
from .core import (
    NOVALUE,
    axis_index,
    concatenate,
    emit,
    flatten_axis,
    full,
    implements,
    promote,
    slice_axis,
)  # fmt: skip
from .recorder import refuse
from .reductions import set_value, skip_nan, sum_type
from .ufuncs import finish


@implements(np.cumsum)
def _cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    x, at = flatten_axis(a, axis)
    x = cast(x, sum_type(x.dtype) if dtype is None else dtype)
    summands = cast(x, np.float32) if x.dtype == np.float16 else x
    return finish(cast(emit(summands, "CumSum", np.int64(at)), x.dtype), out)


@implements(np.cumprod)
def _cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    x, at = flatten_axis(a, axis)
    x = cast(x, sum_type(x.dtype) if dtype is None else dtype)
    return finish(accumulate(x, at, np.multiply, 1), out)


def accumulate(x: TracedArray, axis: int, combine: Any, identity: Any) -> TracedArray:
    """All prefixes of an axis combined, by doubling the distance that is combined."""
    size = x.dims[axis]
    if not isinstance(size, int):
        refuse(f"np.{combine.__name__}.accumulate", f"the size {size} of the axis has no number",
               "Use serde.scan, or give the dimension a number")  # fmt: skip
    distance = 1
    while distance < size:
        sizes = list(x.shape)
        sizes[axis] = distance
        before = full(x.rec, sizes, identity, x.dtype)
        shifted = concatenate([before, slice_axis(x, axis, 0, size - distance)], axis)
        x = as_array(combine(x, shifted))
        distance *= 2
    return x


def cumulative(function: Any) -> Any:
    """``np.cumulative_sum`` and its like, of ``np.cumsum`` and its like."""

    def handler(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None,
                include_initial: bool = False) -> Any:  # fmt: skip
        array = as_array(np.atleast_1d(x))
        if axis is None:
            if array.ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument "
                                 "is required.")  # fmt: skip
            axis = 0
        at = axis_index(axis, array.ndim)
        result = function(array, at, dtype)
        if include_initial:
            sizes = list(array.shape)
            sizes[at] = 1
            first = full(array.rec, sizes, 0 if function is np.cumsum else 1, result.dtype)
            result = concatenate([first, result], at)
        return finish(result, out)

    return handler


implements(np.cumulative_sum)(cumulative(np.cumsum))
implements(np.cumulative_prod)(cumulative(np.cumprod))


implements(np.nancumsum)(skip_nan(np.cumsum, 0))


@implements(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOVALUE,
          append: Any = NOVALUE) -> Any:  # fmt: skip
    x = as_array(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if x.ndim == 0 and n:
        raise ValueError("diff requires input that is at least one dimensional")
    if n == 0:
        return x
    at = axis_index(axis, x.ndim)
    parts = [x]
    for extra, where in ((set_value(prepend), 0), (set_value(append), 1)):
        if extra is not None:
            piece = as_array(extra, x.rec)
            if piece.ndim == 0:
                sizes = list(x.shape)
                sizes[at] = 1
                piece = as_array(np.broadcast_to(piece, sizes))
            parts.insert(len(parts) if where else 0, piece)
    x = as_array(np.concatenate(parts, at)) if len(parts) > 1 else x
    for _ in range(n):
        after, before = slice_axis(x, at, 1), slice_axis(x, at, None, -1)
        x = np.not_equal(after, before) if x.dtype == bool else np.subtract(after, before)
    return x


@implements(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = as_array(ary)
    parts = [np.diff(np.ravel(x))]
    if to_begin is not None:
        parts.insert(0, np.ravel(as_array(to_begin, x.rec, x.dtype)))
    if to_end is not None:
        parts.append(np.ravel(as_array(to_end, x.rec, x.dtype)))
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


@implements(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    values = promote([y, x])[0] if x is not None else as_array(y)
    at = axis_index(axis, values.ndim)
    if x is None:
        step: Any = dx
    else:
        step = np.diff(x, axis=-1 if np.ndim(x) == 1 else at)
        if np.ndim(x) == 1 and values.ndim > 1:
            step = np.reshape(step, [-1 if i == at else 1 for i in range(values.ndim)])
    pair = slice_axis(values, at, 1) + slice_axis(values, at, None, -1)
    return np.sum(step * pair / 2.0, at)
