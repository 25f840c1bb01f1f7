"""Quantiles, interpolation, convolution, and what signals are measured by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .array import TracedArray, as_array, cast, find_recorder
from .core import (
    arange,
    axis_index,
    axis_tuple,
    expand_dims,
    implements,
    is_known,
    promote,
    refuse_options,
    reshape,
    slice_axis,
    take,
    transpose,
)  # fmt: skip
from .recorder import refuse
from .searching import sort_values

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


@implements(np.quantile)
def _quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
              method: str = "linear", keepdims: bool = False, **options: Any) -> Any:  # fmt: skip
    refuse_options("np.quantile", out=out, **options)
    if method not in METHODS:
        refuse("np.quantile", f"method={method!r} is not traced", f"There are {METHODS}")
    x = as_array(a, find_recorder(a, q))
    if is_known(q) and not ((np.asarray(q) >= 0) & (np.asarray(q) <= 1)).all():
        raise ValueError("Quantiles must be in the range [0, 1]")
    axes = axis_tuple(axis, x.ndim)
    x, at = _merge_axes(x, axes)
    data_dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
    weak = isinstance(q, (int, float)) and x.dtype.kind == "f"
    fractions = np.asarray(q, data_dtype if weak else None) if is_known(q) else as_array(q, x.rec)
    kind = np.result_type(data_dtype, fractions.dtype)
    ordered = as_array(np.moveaxis(sort_values(x, at), at, 0))
    last = ordered.size_of(0) - 1
    virtual = fractions * last if isinstance(last, int) else cast(
        as_array(fractions * as_array(last)), fractions.dtype if fractions.dtype.kind == "f"
        else np.float64)  # fmt: skip
    result = as_array(_pick(ordered, virtual, kind, method))
    if x.dtype.kind == "f":
        nan = np.isnan(ordered[-1])
        result = np.where(nan, np.asarray(np.nan, result.dtype), result)
    if keepdims:
        result = np.expand_dims(result, tuple(np.ndim(q) + i for i in axes))
    return result


def _merge_axes(x: TracedArray, axes: Sequence[int]) -> tuple[TracedArray, int]:
    """An array whose ``axes`` are one, and the place of that."""
    if len(axes) == 1:
        return x, axes[0]
    rest = [i for i in range(x.ndim) if i not in axes]
    moved = transpose(x, [*rest, *axes])
    return reshape(moved, [*(x.size_of(i) for i in rest), -1]), len(rest)


def _pick(ordered: TracedArray, virtual: Any, kind: Any, method: str) -> Any:
    """Elements at positions between those of a sorted first axis."""
    below, above = np.floor(virtual), np.ceil(virtual)
    if method == "nearest":
        index = np.rint(virtual).astype(np.int64)
        return take(ordered, index, 0)
    low = take(ordered, below.astype(np.int64), 0)
    if method == "lower":
        return low
    high = take(ordered, above.astype(np.int64), 0)
    if method == "higher":
        return high
    low, high = cast(low, kind), cast(high, kind)
    weight = np.asarray(virtual - below) if is_known(virtual) else virtual - below
    if method == "midpoint":
        weight = np.where(below == above, 0.0, 0.5)
    extra = ordered.ndim - 1
    weight = np.reshape(weight, (*np.shape(weight), *(1,) * extra))
    weight = weight.astype(kind)
    near = high - (high - low) * (1 - weight)
    return np.where(weight >= 0.5, near, low + (high - low) * weight)


@implements(np.percentile)
def _percentile(a: Any, q: Any, axis: Any = None, *args: Any, **options: Any) -> Any:
    x = as_array(a, find_recorder(a, q))
    fractions = np.true_divide(q, x.dtype.type(100) if x.dtype.kind == "f" else 100)
    if is_known(q) and not ((fractions >= 0) & (fractions <= 1)).all():
        raise ValueError("Percentiles must be in the range [0, 100]")
    return np.quantile(a, fractions, axis, *args, **options)


@implements(np.median)
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
            keepdims: bool = False) -> Any:  # fmt: skip
    x = as_array(a)
    kind = x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)
    return np.quantile(cast(x, kind), 0.5, axis, out, keepdims=keepdims)


@implements(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None,
            period: Any = None) -> Any:  # fmt: skip
    refuse_options("np.interp", period=period)
    rec = find_recorder(x, xp, fp)
    at, xs, ys = (as_array(v, rec, np.float64) for v in (x, xp, fp))
    count = xs.size_of(0)
    above = np.searchsorted(xs, at, "right")
    index = np.clip(above - 1, 0, count - 2)
    x0, x1 = take(xs, index, 0), take(xs, index + 1, 0)
    y0, y1 = take(ys, index, 0), take(ys, index + 1, 0)
    y = y0 + (y1 - y0) / (x1 - x0) * (at - x0)
    y = np.where(at == x1, y1, y)
    y = np.where(at > xs[-1], ys[-1] if right is None else np.float64(right), y)
    y = np.where(at < xs[0], ys[0] if left is None else np.float64(left), y)
    return np.where(np.isnan(at), at, y)


def _frames(x: TracedArray, count: Any, size: int) -> TracedArray:
    """``count`` windows of ``size`` elements along a last axis."""
    starts = expand_dims(arange(x.rec, count), [1])
    return take(x, as_array(starts + np.arange(size), x.rec), x.ndim - 1)


@implements(np.convolve)
def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    x, w = promote([a, v])
    return _slide(x, w, mode, False)


@implements(np.correlate)
def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    x, w = promote([a, v])
    return _slide(x, as_array(np.flip(w)), mode, True)


def _slide(x: TracedArray, w: TracedArray, mode: str, is_correlation: bool) -> TracedArray:
    """The convolution of two vectors: windows of the one times the other, then what is wanted.

    NumPy puts the longer one first, and turns a correlation around if it was the second.
    """
    if x.ndim != 1 or w.ndim != 1:
        raise ValueError("object too deep for desired array")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    sizes, dtype = (x.size_of(0), w.size_of(0)), x.dtype
    if not isinstance(sizes[1], int) or (isinstance(sizes[0], int) and sizes[0] < sizes[1]):
        x, w = w, x
    size = w.dims[0]
    if not isinstance(size, int):
        refuse("np.convolve", "one of the arrays needs a size that is a number")
    x, w = (cast(t, np.int32) if dtype.kind == "b" else t for t in (x, w))
    start, last = _bounds_of_mode(sizes, mode, is_correlation)
    if isinstance(last, int):
        pads = size - 1 - start, size - 1 - (x.dims[0] + size - 1 - last)
    else:
        pads = size - 1, size - 1
    padded = as_array(np.pad(x, pads)) if any(pads) else x
    count = padded.size_of(0) - (size - 1)
    y = cast(as_array(np.linalg.matmul(_frames(padded, count, size), np.flip(w))), dtype)
    return y if isinstance(last, int) or mode == "full" else y[start:last]


def _bounds_of_mode(sizes: tuple[Any, Any], mode: str, is_correlation: bool) -> tuple[Any, Any]:
    """Where what is wanted of a full convolution starts and ends."""
    least, most = _extreme_size(*sizes, False), _extreme_size(*sizes, True)
    if mode == "full":
        return 0, least + most - 1
    if mode == "valid":
        return least - 1, most
    start = (least - 1) // 2
    if is_correlation:  # turned around, the middle of an even number is the other one
        is_turned = _extreme_size(_extreme_size(sizes[1] - sizes[0], 0, True), 1, False)
        start = start + is_turned * ((least + 1) % 2)
    return start, start + most


def _extreme_size(a: Any, b: Any, largest: bool) -> Any:
    """The larger or smaller one of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b) if largest else min(a, b)
    a, b = (b, a) if isinstance(a, int) else (a, b)
    return a.largest(b) if largest else a.smallest(b)


@implements(np.cov)
def _cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
         fweights: Any = None, aweights: Any = None, *, dtype: Any = None) -> Any:  # fmt: skip
    refuse_options("np.cov", fweights=fweights, aweights=aweights)
    x = as_array(m, find_recorder(m, y))
    x = x if x.dtype == np.float32 and dtype is not None else cast(x, dtype or np.float64)
    x = expand_dims(x, [0]) if x.ndim == 1 else x
    x = x if rowvar or x.dims[0] == 1 else as_array(np.transpose(x))
    if y is not None:
        other = np.atleast_2d(as_array(y, x.rec, x.dtype))
        x = as_array(np.concatenate([x, other if rowvar else np.transpose(other)]))
    freedom = (0 if bias else 1) if ddof is None else ddof
    x = as_array(x - np.mean(x, 1, keepdims=True))
    count = as_array(x.size_of(1) - freedom, x.rec, x.dtype)
    matrix = np.linalg.matmul(x, np.transpose(x)) / count
    return np.squeeze(matrix) if x.dims[0] == 1 else matrix


@implements(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    matrix = as_array(np.cov(x, y, rowvar, dtype=dtype))
    if matrix.ndim == 0:
        return matrix / matrix
    deviation = np.sqrt(np.diagonal(matrix))
    result = matrix / deviation[:, None] / deviation[None, :]
    return np.clip(result, -1, 1)


@implements(np.gradient)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = as_array(f)
    if edge_order != 1 or any(np.ndim(v) for v in varargs):
        refuse("np.gradient", "edge_order=2 and uneven steps are not traced")
    axes = range(x.ndim) if axis is None else [
        axis_index(i, x.ndim) for i in (axis if isinstance(axis, tuple) else (axis,))
    ]  # fmt: skip
    steps = list(varargs) * (len(axes) if len(varargs) == 1 else 1) or [1.0] * len(axes)
    x = x if x.dtype.kind == "f" else cast(x, np.float64)
    gradients = []
    for at, step in zip(axes, steps, strict=True):
        inner = (slice_axis(x, at, 2) - slice_axis(x, at, None, -2)) / (2.0 * step)
        first = (slice_axis(x, at, 1, 2) - slice_axis(x, at, 0, 1)) / step
        last = (slice_axis(x, at, -1) - slice_axis(x, at, -2, -1)) / step
        gradients.append(np.concatenate([first, inner, last], at))
    return gradients[0] if len(gradients) == 1 else tuple(gradients)


@implements(np.polyval)
def _polyval(p: Any, x: Any) -> Any:
    rec = find_recorder(p, x)
    coefficients = np.asarray(p) if is_known(p) else as_array(p, rec)
    result: Any = np.zeros_like(as_array(x, rec))
    for at in range(len(coefficients)):
        result = result * x + coefficients[at]
    return result


@implements(np.lib.stride_tricks.sliding_window_view)
def _sliding_window_view(x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False,
                         writeable: bool = False) -> Any:  # fmt: skip
    array = as_array(x)
    sizes = window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = range(array.ndim) if axis is None else (
        axis if isinstance(axis, (tuple, list)) else (axis,))  # fmt: skip
    if axis is None and len(sizes) != array.ndim:
        raise ValueError("Since axis is None, must provide window_shape for all dimensions of `x`")
    for size, place in zip(sizes, axes, strict=True):
        if size < 0:
            raise ValueError("`window_shape` cannot contain negative values")
        dim = array.dims[axis_index(place, np.ndim(x))]
        if isinstance(dim, int) and size > dim:
            raise ValueError("window shape cannot be larger than input array shape")
        at, last = axis_index(place, np.ndim(x)), array.ndim
        moved = as_array(np.moveaxis(array, at, -1))
        windows = _frames(moved, moved.size_of(last - 1) - (int(size) - 1), int(size))
        array = as_array(np.moveaxis(windows, last - 1, at))
    return array


@implements(np.apply_along_axis)
def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    x = as_array(arr)
    at = axis_index(axis, x.ndim)
    moved = as_array(np.moveaxis(x, at, -1))
    if not all(isinstance(d, int) for d in moved.dims[:-1]):
        refuse("np.apply_along_axis", "the other sizes have to be numbers",
               "Apply a function of whole arrays")  # fmt: skip
    rows = reshape(moved, [-1, moved.size_of(x.ndim - 1)])
    results = [as_array(func1d(row, *args, **kwargs), x.rec) for row in rows]
    y = reshape(as_array(np.stack(results)), [*moved.shape[:-1], *results[0].shape])
    return np.moveaxis(y, -1, at) if results[0].ndim == 1 else y
