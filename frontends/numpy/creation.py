"""Arrays made like others, choices between arrays, and grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.ir.geometry import may_be_same
from serde.ir.graph import show_shape

from .array import TracedArray, as_array, as_arrays, cast, find_recorder
from .core import (
    NOVALUE,
    arange,
    axis_index,
    concatenate,
    emit,
    expand_dims,
    full,
    implements,
    is_known,
    promote,
    reshape,
    size_list,
)  # fmt: skip
from .manipulation import broadcast_sizes
from .number import TracedNumber
from .recorder import Recorder, refuse
from .ufuncs import broadcast_dims, finish


def _like(number: Any) -> Any:
    def handler(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None,
                *, device: Any = None) -> Any:  # fmt: skip
        x = as_array(a)
        sizes = x.shape if shape is None else size_list(shape)
        return make_local(x.rec, sizes, number, x.dtype if dtype is None else dtype)

    return handler


def make_local(rec: Recorder, sizes: Any, number: Any, dtype: Any) -> TracedArray:
    """A local array of one number; one of numbers where its shape is known."""
    sizes = size_list(sizes)
    if all(isinstance(s, int) for s in sizes):
        return TracedArray(rec, None, np.full(tuple(sizes), number, dtype))
    return full(rec, sizes, np.asarray(number, dtype), dtype)


implements(np.zeros_like, np.empty_like)(_like(0))
implements(np.ones_like)(_like(1))


@implements(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
               shape: Any = None, *, device: Any = None) -> Any:  # fmt: skip
    x = as_array(a, find_recorder(a, fill_value))
    sizes = x.shape if shape is None else size_list(shape)
    expected = x.dtype if dtype is None else np.dtype(dtype)
    return full(x.rec, sizes, as_array(fill_value, x.rec, expected), expected)


@implements(np.where)
def _where(condition: Any, x: Any = NOVALUE, y: Any = NOVALUE, /) -> Any:
    if x is NOVALUE:
        return np.nonzero(condition)
    rec = find_recorder(condition, x, y)
    test = cast(as_array(condition, rec), bool)
    if isinstance(x, TracedArray) or isinstance(y, TracedArray) or not (
        is_known(x) and is_known(y)
    ):  # fmt: skip
        a, b = promote([x, y])
    else:
        dtype = np.result_type(*(v if type(v) in (int, float, bool) else np.asarray(v)
                                 for v in (x, y)))  # fmt: skip
        a, b = as_array(x, rec, dtype), as_array(y, rec, dtype)
    broadcast_dims(test.dims, a.dims, b.dims)
    return emit(test, "Where", a, b)


@implements(np.clip)
def _clip(a: Any, a_min: Any = NOVALUE, a_max: Any = NOVALUE, out: Any = None, *,
          min: Any = NOVALUE, max: Any = NOVALUE, **options: Any) -> Any:  # fmt: skip
    low, high = (v if v is not NOVALUE else w for v, w in ((a_min, min), (a_max, max)))
    result = a
    if low is not None and low is not NOVALUE:
        result = np.maximum(result, low, **options)
    if high is not None and high is not NOVALUE:
        result = np.minimum(result, high, **options)
    if out is None:
        return as_array(result, find_recorder(a, low, high))
    return finish(result, out)


@implements(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    *choices, result = promote([*choicelist, default])
    for condition, choice in reversed(list(zip(condlist, choices, strict=True))):
        result = as_array(np.where(condition, choice, result))
    return result


@implements(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    index = as_array(a, find_recorder(a, choices))
    options = promote(list(choices), rec=index.rec)
    result = options[-1]
    for at in range(len(options) - 2, -1, -1):
        result = as_array(np.where(index == at, options[at], result))
    return result


@implements(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None,
                neginf: Any = None) -> Any:  # fmt: skip
    array = as_array(x)
    if array.dtype.kind != "f":
        return array
    info, dtype = np.finfo(array.dtype), array.dtype
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    array = as_array(np.where(np.isnan(array), np.asarray(nan, dtype), array))
    array = as_array(np.where(array == dtype.type(np.inf), np.asarray(high, dtype), array))
    return np.where(array == dtype.type(-np.inf), np.asarray(low, dtype), array)


@implements(np.isclose)
def _isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    x, y = as_arrays([a, b])
    kind = np.result_type(y.dtype, np.float32 if y.dtype.itemsize < 8 and y.dtype.kind == "f"
                          else np.float64)  # fmt: skip
    y = cast(y, kind)
    near = np.abs(x - y) <= atol + rtol * np.abs(y)
    near = (near & np.isfinite(y)) | (x == y)
    return near | (np.isnan(x) & np.isnan(y)) if equal_nan else near


@implements(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return np.all(np.isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = as_arrays([a1, a2])
    if x.ndim != y.ndim or not all(map(may_be_same, x.dims, y.dims)):
        return False
    if x.dims != y.dims or None in x.dims:
        pair = f"{show_shape(x.dims)} and {show_shape(y.dims)} are equal"
        refuse("np.array_equal", f"whether the shapes {pair} is known when the model runs",
               "Give both dimensions one name, or numbers")  # fmt: skip
    same = x == y
    return np.all(same | (np.isnan(x) & np.isnan(y)) if equal_nan else same)


# Grids and diagonals


@implements(np.meshgrid)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    rec = find_recorder(xi)
    rank = len(xi)
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    arrays = []
    for at, x in enumerate(xi):
        flat = reshape(as_array(x, rec), [-1])
        arrays.append(expand_dims(flat, [i for i in range(rank) if i != at]))
    if indexing == "xy" and rank > 1:
        arrays = [as_array(np.swapaxes(a, 0, 1)) for a in arrays]
    if sparse:
        return tuple(arrays)
    sizes = broadcast_sizes(arrays)
    return tuple(np.broadcast_to(a, sizes) for a in arrays)


@implements(np.ix_)
def _ix(*args: Any) -> Any:
    arrays, rank = as_arrays(args), len(args)
    if any(a.ndim != 1 for a in arrays):
        raise ValueError("Cross index must be 1 dimensional")
    return tuple(expand_dims(a, [i for i in range(rank) if i != n]) for n, a in enumerate(arrays))


@implements(np.linspace)
def _linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
              dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:  # fmt: skip
    rec = find_recorder(start, stop, num)
    first, last = as_array(start, rec), as_array(stop, rec)
    kind = np.result_type(first.dtype, last.dtype, 0.0)
    parts = num - 1 if endpoint else num
    first, last = (cast(x, kind) for x in promote([first, last]))
    steps = cast(arange(rec, num), kind)
    if isinstance(parts, int):
        divisor: Any = np.asarray(max(parts, 1), kind)
    else:
        divisor = cast(as_array(np.maximum(as_array(parts), 1)), kind)
    step = (last - first) / divisor
    steps = reshape(steps, [-1] + [1] * as_array(step).ndim)
    result = as_array(first + steps * step)
    if endpoint and isinstance(num, int) and num > 1:
        end = expand_dims(as_array(np.broadcast_to(last, np.shape(result[0]))), [0])
        result = concatenate([result[:-1], end], 0)
    result = result if dtype is None else cast(as_array(np.floor(result)
                        if np.dtype(dtype).kind in "iu" else result), dtype)  # fmt: skip
    result = np.moveaxis(result, 0, axis) if axis else result
    return (result, step) if retstep else result


@implements(np.arange)
def _arange(*args: Any, dtype: Any = None, **options: Any) -> Any:
    rec = find_recorder(args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    parts = promote([start, stop, step])
    kind = parts[0].dtype if dtype is None else np.dtype(dtype)
    count_dtype = np.dtype(np.int64) if kind.kind in "iu" and parts[0].dtype.kind in "iu" else (
        np.dtype(np.float64))  # fmt: skip
    if (start, step) == (0, 1) and isinstance(stop, TracedNumber) and stop.is_int:
        return cast(arange(rec, stop), kind)
    parts = [cast(p, count_dtype) for p in parts]
    return cast(emit(parts[0], "Range", *parts[1:]), kind)


def _triangle(upper: int) -> Any:
    def handler(m: Any, k: Any = 0) -> Any:
        x = as_array(m)
        if x.ndim == 1:
            x = as_array(np.broadcast_to(x, (x.size_of(0), x.size_of(0))))
        if x.ndim < 2:
            raise ValueError("Input must be at least 2-dimensional")
        return emit(x, "Trilu", np.int64(k), upper=upper)

    return handler


implements(np.triu)(_triangle(1))
implements(np.tril)(_triangle(0))


@implements(np.diagonal, np.linalg.diagonal)
def _diagonal(a: Any, /, offset: int = 0, axis1: Any = None, axis2: Any = None) -> Any:
    x = as_array(a)
    if x.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first = axis_index(0 if axis1 is None else axis1, x.ndim)
    second = axis_index(1 if axis2 is None else axis2, x.ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    x = as_array(np.moveaxis(x, (first, second), (-2, -1)))
    rows, columns = x.shape[-2:]
    down, right = max(-offset, 0), max(offset, 0)
    if isinstance(rows, int) and isinstance(columns, int):
        places: Any = np.arange(max(min(rows - down, columns - right), 0))
    else:
        count = rows - down
        other = columns - right
        count = (count.smallest(other) if isinstance(count, TracedNumber)
                 else other.smallest(count))  # fmt: skip
        places = arange(x.rec, count)
    return x[..., places + down, places + right]


implements(np.linalg.diagonal)(lambda x, /, *, offset=0: np.diagonal(x, offset, -2, -1))


@implements(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    x = as_array(v)
    if x.ndim == 2:
        return np.diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = x.size_of(0) + abs(k)
    places = arange(x.rec, size)
    row, column = expand_dims(places, [1]), expand_dims(places, [0])
    source = as_array(np.pad(x, (0, abs(k))))
    on = column - row == k
    return np.where(on, expand_dims(source, [1] if k >= 0 else [0]), np.zeros((), x.dtype))


@implements(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
           out: Any = None) -> Any:  # fmt: skip
    return np.sum(np.diagonal(a, offset, axis1, axis2), -1, dtype, out)


implements(np.linalg.trace)(
    lambda x, /, *, offset=0, dtype=None: np.trace(x, offset, -2, -1, dtype)
)


@implements(np.vander)
def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    array = as_array(x)
    count = array.size_of(0) if N is None else N
    if not isinstance(count, int):
        refuse("np.vander", "the number of columns has to be a number")
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return np.power(expand_dims(array, [1]), powers)


implements(np.real)(lambda val: as_array(val))
implements(np.imag)(lambda val: np.zeros_like(as_array(val)))
implements(np.iscomplexobj)(lambda x: False)
implements(np.isrealobj)(lambda x: True)
implements(np.round, np.around)(lambda a, decimals=0, out=None: _round(a, decimals, out))
implements(np.fix)(lambda x, out=None: np.trunc(x))


def _round(a: Any, decimals: int, out: Any) -> Any:
    x = as_array(a)
    if decimals == 0:
        result = np.rint(x) if x.dtype.kind == "f" else x
    elif x.dtype.kind != "f":
        if decimals < 0:
            factor = 10**-decimals
            result = cast(as_array(np.rint(x / np.float64(factor))), x.dtype) * factor
        else:
            result = x
    else:
        factor = np.asarray(10.0 ** abs(decimals), x.dtype)
        result = (np.rint(x * factor) / factor) if decimals > 0 else np.rint(x / factor) * factor
    return finish(result, out)


@implements(np.result_type)
def _result_type(*args: Any) -> Any:
    numbers = [(0 if x.is_int else 0.0) if isinstance(x, TracedNumber) else x for x in args]
    return np.result_type(*(x.dtype if isinstance(x, TracedArray) else x for x in numbers))


@implements(np.can_cast)
def _can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    kind = from_.dtype if isinstance(from_, TracedArray) else from_
    return np.can_cast(kind, to, casting)
