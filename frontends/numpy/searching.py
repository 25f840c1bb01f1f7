"""Sorting, searching, and sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import TracedArray, as_array, as_arrays, cast, find_recorder, to_number
from .core import (
    arange,
    axis_index,
    emit,
    expand_dims,
    flatten_axis,
    implements,
    is_known,
    order_as_signed,
    order_as_unsigned,
    ravel,
    refuse_options,
    reshape,
    take,
)  # fmt: skip
from .recorder import refuse


def top_k(x: TracedArray, count: Any, axis: int, largest: bool) -> tuple[TracedArray, TracedArray]:
    """The first of the sorted elements along an axis and their places; ties by place."""
    g = x.rec.g
    size = np.array([count], np.int64) if isinstance(count, int) else count.value
    values, places = g.TopK(x.value, size, axis=axis, largest=int(largest), sorted=1, outputs=2)
    return TracedArray(x.rec, values), TracedArray(x.rec, places)


def _as_sortable(x: TracedArray) -> TracedArray:
    """Elements of a type that TopK takes, in the same order."""
    return order_as_signed(x) if x.dtype == np.uint64 else x


def _is_nan(x: TracedArray) -> TracedArray:
    return cast(as_array(np.isnan(x)), np.int32)


def argsort_values(x: TracedArray, axis: int) -> TracedArray:
    """The stable order of elements along an axis; NaN is above all numbers."""
    size = x.size_of(axis)
    if x.dtype.kind != "f":
        return top_k(_as_sortable(x), size, axis, False)[1]
    bound = np.asarray(np.inf, x.dtype)
    nan = _is_nan(x)
    order = top_k(as_array(np.where(nan != 0, bound, x)), size, axis, False)[1]
    again = emit(nan, "GatherElements", order, axis=axis)
    second = top_k(again, size, axis, False)[1]
    return emit(order, "GatherElements", second, axis=axis)


def sort_values(x: TracedArray, axis: int) -> TracedArray:
    """Elements sorted along an axis, NaN at the end."""
    size = x.size_of(axis)
    if x.dtype == np.uint64:
        values = top_k(_as_sortable(x), size, axis, False)[0]
        return order_as_unsigned(values)
    if x.dtype.kind != "f":
        return top_k(x, size, axis, False)[0]
    nan = _is_nan(x)
    numbers = top_k(as_array(np.where(nan != 0, np.asarray(np.inf, x.dtype), x)), size, axis,
                    False)[0]  # fmt: skip
    count = emit(nan, "ReduceSum", [axis], keepdims=1)
    places = cast(arange(x.rec, size), np.int32)
    places = reshape(places, [-1 if i == axis else 1 for i in range(x.ndim)])
    end = as_array(size, x.rec, np.int32)
    return as_array(np.where(places >= end - count, np.asarray(np.nan, x.dtype), numbers))


@implements(np.sort)
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *,
          stable: Any = None) -> Any:  # fmt: skip
    refuse_options("np.sort", order=order)
    if axis is not None:
        axis_index(axis, np.ndim(a))
    x, at = flatten_axis(a, axis)
    return sort_values(x, at)


@implements(np.argsort)
def _argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *,
             stable: Any = None) -> Any:  # fmt: skip
    refuse_options("np.argsort", order=order)
    x, at = flatten_axis(a, axis)
    return argsort_values(x, at)


# A sorted array is a partitioned one as well.
implements(np.partition)(lambda a, kth, axis=-1, kind=None, order=None: np.sort(a, axis))
implements(np.argpartition)(lambda a, kth, axis=-1, kind=None, order=None: np.argsort(a, axis))


@implements(np.lexsort)
def _lexsort(keys: Any, axis: int = -1) -> Any:
    columns = as_arrays(keys)
    at = axis_index(axis, columns[0].ndim)
    order = argsort_values(columns[0], at)
    for column in columns[1:]:
        again = argsort_values(emit(column, "GatherElements", order, axis=at), at)
        order = emit(order, "GatherElements", again, axis=at)
    return order


# Where elements are


@implements(np.nonzero)
def _nonzero(a: Any) -> Any:
    x = as_array(a)
    if x.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar)"
                         ".nonzero() instead.")  # fmt: skip
    rows = emit(cast(x, bool), "NonZero")
    return tuple(take(rows, i, 0) for i in range(x.ndim))


@implements(np.argwhere)
def _argwhere(a: Any) -> Any:
    x = as_array(a)
    places = np.transpose(emit(cast(x if x.ndim else expand_dims(x, [0]), bool), "NonZero"))
    return places if x.ndim else places[:, :0]


implements(np.flatnonzero)(lambda a: np.nonzero(np.ravel(a))[0])


@implements(np.compress)
def _compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    rec = find_recorder(condition, a)
    x, at = flatten_axis(as_array(a, rec), axis)
    return emit(x, "Compress", as_array(condition, rec, bool), axis=at)


implements(np.extract)(lambda condition, arr: np.compress(np.ravel(condition), np.ravel(arr)))


@implements(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    rec = find_recorder(a, indices)
    x, at = flatten_axis(as_array(a, rec), axis)
    index = as_array(indices, rec)
    if index.dtype.kind not in "iu":
        raise TypeError(f"Cannot cast array data from {index.dtype!r} to dtype('int64') according "
                        "to the rule 'safe'")  # fmt: skip
    index = cast(index, np.int64)
    if mode == "clip":
        index = as_array(np.clip(index, 0, x.size_of(at) - 1))
    elif mode == "wrap":
        index = as_array(index % x.size_of(at))
    elif (known := index.numbers) is not None and isinstance(size := x.dims[at], int) and (
        (known >= size) | (known < -size)
    ).any():  # fmt: skip
        raise IndexError(f"index is out of bounds for axis {at} with size {size}")
    return take(x, index, at)


@implements(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x, rank = as_array(arr), np.ndim(indices)
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    at = axis_index(axis, x.ndim)
    if rank != x.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    index = as_array(indices, x.rec, np.int64)
    sizes = [1 if d == 1 else s for d, s in zip(index.dims, index.shape, strict=True)]
    for i in range(x.ndim):
        if i != at and index.dims[i] == 1:
            sizes[i] = x.size_of(i)
    index = as_array(np.broadcast_to(index, sizes))
    target_sizes = [s if i == at or d != 1 else index.size_of(i)
           for i, (d, s) in enumerate(zip(x.dims, x.shape, strict=True))]  # fmt: skip
    x = as_array(np.broadcast_to(x, target_sizes))
    return emit(x, "GatherElements", index, axis=at)


@implements(np.searchsorted)
def _search_sorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    rec = find_recorder(a, v, sorter)
    edges, x = as_array(a, rec), as_array(v, rec)
    if sorter is not None:
        edges = take(edges, as_array(sorter, rec, np.int64), 0)
    column = expand_dims(x, [x.ndim])
    below = edges < column if side == "left" else edges <= column
    return np.sum(below, -1)


@implements(np.digitize)
def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    if is_known(bins) and len(bins) > 1 and bins[0] > bins[-1]:
        edges = np.asarray(bins)[::-1]
        return len(edges) - np.searchsorted(edges, x, "left" if right else "right")
    return np.searchsorted(bins, x, "left" if right else "right")


# Sets


def _sort_unique(x: TracedArray, axis: int | None) -> list[TracedArray]:
    g = x.rec.g
    dtype = x.dtype
    x = cast(x, np.int64) if dtype.kind in "ib" or dtype in (np.uint8, np.uint16, np.uint32) else x
    x = _as_sortable(x)
    x = cast(x, np.float64) if dtype == np.float16 else x
    outputs = g.Unique(x.value, axis=axis, sorted=1, outputs=4)
    values, *rest = (TracedArray(x.rec, v) for v in outputs)
    if dtype == np.uint64:
        values = order_as_unsigned(values)
    return [cast(values, dtype), *rest]


@implements(np.unique)
def _unique(ar: Any, return_index: bool = False, return_inverse: bool = False,
            return_counts: bool = False, axis: Any = None, *, equal_nan: bool = True,
            sorted: bool = True) -> Any:  # fmt: skip
    x = as_array(ar)
    at = None if axis is None else axis_index(axis, x.ndim)
    values, index, inverse, counts = _sort_unique(x, at)
    inverse = reshape(inverse, x.shape) if at is None else inverse
    chosen = [values]
    for expected, result in ((return_index, index), (return_inverse, inverse),
                           (return_counts, counts)):  # fmt: skip
        if expected:
            chosen.append(result)
    return chosen[0] if len(chosen) == 1 else tuple(chosen)


def _name_results(function: Any, **options: bool) -> Any:
    """What traces a function of the Array API that gives some results of ``np.unique`` by name."""
    kind = type(function(np.zeros(1)))
    return lambda x, /: kind(*np.unique(x, **options))


implements(np.unique_values)(lambda x, /: np.unique(x))
implements(np.unique_counts)(_name_results(np.unique_counts, return_counts=True))
implements(np.unique_inverse)(_name_results(np.unique_inverse, return_inverse=True))
implements(np.unique_all)(
    _name_results(np.unique_all, return_index=True, return_inverse=True, return_counts=True)
)


@implements(np.isin)
def _isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
          kind: Any = None) -> Any:  # fmt: skip
    rec = find_recorder(element, test_elements)
    x, tests = as_array(element, rec), ravel(as_array(test_elements, rec))
    matches = np.any(expand_dims(x, [x.ndim]) == tests, -1)
    return ~matches if invert else matches


@implements(np.bincount)
def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    rec = find_recorder(x, weights)
    index = as_array(x, rec, np.int64)
    size = np.maximum(np.max(index) + 1, minlength)
    kind = np.int64 if weights is None else np.float64
    updates = np.broadcast_to(as_array(1 if weights is None else weights, rec, kind), index.shape)
    zeros = np.broadcast_to(as_array(0, rec, kind), (to_number(as_array(size)),))
    return emit(as_array(zeros), "ScatterElements", index, as_array(updates), axis=0,
                reduction="add")  # fmt: skip


@implements(np.histogram)
def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None,
               weights: Any = None) -> Any:  # fmt: skip
    refuse_options("np.histogram", density=density or None, weights=weights)
    x = ravel(as_array(a, find_recorder(a, bins)))
    if isinstance(bins, (int, np.integer)):
        low, high = (np.min(x), np.max(x)) if range is None else range
        half = np.where(np.equal(low, high), 0.5, 0.0)  # of a range without width
        low, high = low - half, high + half
        kind = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
        edges: Any = as_array(np.linspace(low, high, int(bins) + 1), x.rec, kind)
    elif isinstance(bins, str):
        refuse("np.histogram", f"bins={bins!r} is not traced")
    else:
        edges = as_array(bins, x.rec)
    below = np.sum(expand_dims(x, [1]) < as_array(edges, x.rec), 0)
    last = np.sum(x <= edges[-1])
    cumulated = np.concatenate([below[:-1], np.reshape(last, (1,))])
    return np.diff(cumulated), edges
