"""Reshaping, splitting, repeating and rearranging arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .array import TracedArray, as_array, as_arrays, cast, find_recorder, sizes_value, to_number
from .core import (
    arange,
    axis_index,
    axis_tuple,
    concatenate,
    expand,
    expand_dims,
    flatten_axis,
    full,
    implements,
    is_known,
    ravel,
    reshape,
    size_list,
    slice_axis,
    squeeze,
    take,
    transpose,
)  # fmt: skip
from .number import TracedNumber
from .recorder import refuse
from .ufuncs import broadcast_dims

Derive = Callable[[TracedArray], TracedArray]


def make_view(x: TracedArray, derive: Derive, back: Derive | None) -> TracedArray:
    """A view of ``x``; ``back`` takes a new value of the view to one of ``x``."""

    def write_back(base: TracedArray, new: TracedArray) -> None:
        assert back is not None
        base.replace(back(new))

    return derive(x).as_view(x, derive, write_back if back is not None else None)


def _restore_shape(x: TracedArray) -> Derive:
    return lambda new: reshape(new, x.shape)


@implements(np.reshape)
def _reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None,
             copy: Any = None) -> Any:  # fmt: skip
    x, shape = as_array(a), newshape if shape is None else shape
    if order not in ("C", "A"):
        if order != "F":
            raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
        sizes = size_list(shape)
        return np.transpose(reshape(np.transpose(x), sizes[::-1]))
    if copy:
        return reshape(x, shape)
    return make_view(x, lambda v: reshape(v, shape), _restore_shape(x))


@implements(np.ravel)
def _ravel(a: Any, order: str = "C") -> Any:
    x = as_array(a)
    if order == "F":
        return ravel(as_array(np.transpose(x)))
    return make_view(x, ravel, _restore_shape(x))


@implements(np.transpose, np.permute_dims)
def _transpose(a: Any, axes: Any = None) -> Any:
    x = as_array(a)
    if axes is None:
        perm = list(range(x.ndim))[::-1]
    else:
        if len(axes) != x.ndim:
            raise ValueError("axes don't match array")
        perm = list(axis_tuple(axes, x.ndim))
    return view_transposed(x, perm)


def view_transposed(x: TracedArray, perm: Sequence[int]) -> TracedArray:
    """A view of ``x`` with its axes in another order."""
    inverse = [int(i) for i in np.argsort(perm)]
    return make_view(x, lambda v: transpose(v, perm), lambda v: transpose(v, inverse))


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Any:
    if as_array(x).ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return np.swapaxes(x, -1, -2)


@implements(np.swapaxes)
def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    x = as_array(a)
    i, j = axis_index(axis1, x.ndim), axis_index(axis2, x.ndim)
    order = list(range(x.ndim))
    order[i], order[j] = j, i
    return view_transposed(x, order)


@implements(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    x = as_array(a)
    sources, targets = axis_tuple(source, x.ndim), axis_tuple(destination, x.ndim)
    if len(sources) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of "
                         "elements")  # fmt: skip
    order = [n for n in range(x.ndim) if n not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return view_transposed(x, order)


@implements(np.rollaxis)
def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    x = as_array(a)
    at = axis_index(axis, x.ndim)
    target = start + x.ndim if start < 0 else start
    if not 0 <= target <= x.ndim:
        raise np.exceptions.AxisError(f"'start' arg {start} is out of range for rank {x.ndim}")
    order = [n for n in range(x.ndim) if n != at]
    order.insert(target - (at < target), at)
    return view_transposed(x, order)


@implements(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Any:
    x = as_array(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    places = axis_tuple(tuple(axes), x.ndim + len(axes))
    return make_view(x, lambda v: expand_dims(v, places), _restore_shape(x))


@implements(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Any:
    x = as_array(a)
    if axis is None:
        if None in x.dims or any(isinstance(d, str) for d in x.dims):
            refuse("np.squeeze", "whether a size without a number is 1 is not known", "Give axis=")
        axes: Sequence[int] = [i for i, d in enumerate(x.dims) if d == 1]
    else:
        axes = axis_tuple(axis, x.ndim)
        if any(isinstance(x.dims[i], int) and x.dims[i] != 1 for i in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return make_view(x, lambda v: squeeze(v, axes), _restore_shape(x))


def _at_least(rank: int) -> Any:
    def handler(*arrays: Any) -> Any:
        results = []
        for a in arrays:
            x = as_array(a, find_recorder(arrays))
            if rank == 3 and x.ndim in (1, 2):
                key = (None, slice(None), None) if x.ndim == 1 else (Ellipsis, None)
                results.append(x[key])
            else:
                results.append(expand_dims(x, range(rank - x.ndim)) if x.ndim < rank else x)
        return results[0] if len(results) == 1 else tuple(results)

    return handler


for _rank, _function in enumerate((np.atleast_1d, np.atleast_2d, np.atleast_3d), 1):
    implements(_function)(_at_least(_rank))


@implements(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    sizes = size_list(shape)
    x = as_array(array, find_recorder(array, sizes))
    dims = tuple(s.dim if isinstance(s, TracedNumber) else s for s in sizes)
    wrong = x.ndim > len(dims) or any(
        isinstance(a, int) and isinstance(b, int) and a not in (1, b)
        for a, b in zip(x.dims, dims[len(dims) - x.ndim :], strict=False)
    )
    if wrong:
        raise ValueError(
            f"operands could not be broadcast together with remapped shapes [original->remapped]: "
            f"{x.dims} and requested shape {dims}"
        )
    return make_view(x, lambda v: expand(v, sizes), None)


@implements(np.broadcast_arrays)
def _broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    arrays = as_arrays(args)
    sizes = broadcast_sizes(arrays)
    return tuple(expand(a, sizes) for a in arrays)


def broadcast_sizes(arrays: Sequence[TracedArray]) -> list[Any]:
    """The shape that arrays broadcast to, as numbers and traced numbers."""
    dims = broadcast_dims(*(a.dims for a in arrays))
    sizes: list[Any] = []
    for at, dim in enumerate(dims):
        if isinstance(dim, int):
            sizes.append(dim)
            continue
        axes = [(a, at - len(dims) + a.ndim) for a in arrays]
        candidates = [a.size_of(i) for a, i in axes if i >= 0 and a.dims[i] != 1]
        same = [s for s in candidates if s.dim == dim and dim is not None]
        largest = same[0] if same else candidates[0]
        for other in candidates[1:] if not same else []:
            largest = largest.largest(other)
        sizes.append(largest)
    return sizes


@implements(np.broadcast_shapes)
def _broadcast_shapes(*args: Any) -> Any:
    rec = find_recorder(args)
    arrays = [full(rec, size_list(a), 0, np.int8) for a in args]
    return tuple(broadcast_sizes(arrays))


# Splitting and repeating


def _split_at(x: TracedArray, points: Any, axis: int) -> list[Any]:
    if isinstance(points, TracedNumber):
        refuse("np.split", "the number of parts has to be a number", "Give the dimension one")
    bounds = [None, *points, None]
    return [x[(slice(None),) * axis + (slice(a, b),)] for a, b in pairwise(bounds)]


@implements(np.array_split)
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    x = as_array(ary)
    at = axis_index(axis, x.ndim)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return _split_at(x, indices_or_sections, at)
    parts = int(indices_or_sections)
    if parts <= 0:
        raise ValueError("number sections must be larger than 0.")
    each, more = divmod(x.size_of(at), parts)

    def start(i: int) -> Any:
        return each * i + (min(more, i) if isinstance(more, int) else more.smallest(i))

    return _split_at(x, [start(i) for i in range(1, parts)], at)


@implements(np.split)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    x = as_array(ary)
    at = axis_index(axis, x.ndim)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return _split_at(x, indices_or_sections, at)
    parts, size = int(indices_or_sections), x.size_of(at)
    if isinstance(size, int) and size % parts:
        raise ValueError("array split does not result in an equal division")
    each = size // parts
    return _split_at(x, [each * i for i in range(1, parts)], at)


def _split_along(name: str, axis: int, least: int) -> Any:
    def handler(ary: Any, indices_or_sections: Any) -> Any:
        rank = as_array(ary).ndim
        if rank < least:
            raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
        return np.split(ary, indices_or_sections, min(axis, rank - 1))

    return handler


implements(np.hsplit)(_split_along("hsplit", 1, 1))
implements(np.vsplit)(_split_along("vsplit", 0, 2))
implements(np.dsplit)(_split_along("dsplit", 2, 3))


implements(np.unstack)(lambda x, /, *, axis=0: tuple(np.moveaxis(as_array(x), axis, 0)))


@implements(np.tile)
def _tile(A: Any, reps: Any) -> Any:
    x = as_array(A, find_recorder(A, reps))
    counts = size_list(reps)
    rank = max(x.ndim, len(counts))
    x = expand_dims(x, range(rank - x.ndim))
    counts = [1] * (rank - len(counts)) + counts
    return TracedArray(x.rec, x.rec.g.Tile(x.value, sizes_value(x.rec, counts)))


@implements(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    rec = find_recorder(a, repeats)
    x, at = flatten_axis(as_array(a, rec), axis)
    if np.ndim(repeats) == 0 or np.shape(repeats) == (1,):
        count = repeats if np.ndim(repeats) == 0 else repeats[0]
        if isinstance(count, (int, np.integer)) and count == 0:
            return slice_axis(x, at, 0, 0)  # ONNX Runtime drops an Expand to no elements
        sizes = list(x.shape)
        expanded = expand(expand_dims(x, [at + 1]), [*sizes[: at + 1], count, *sizes[at + 1 :]])
        return reshape(expanded, [*sizes[:at], sizes[at] * count, *sizes[at + 1 :]])
    if is_known(repeats):
        counts, size = np.asarray(repeats), x.dims[at]
        if counts.ndim > 1:
            raise ValueError("object too deep for desired array")
        if isinstance(size, int) and len(counts) != size:
            raise ValueError(f"operands could not be broadcast together with shape ({size},) "
                             f"({len(counts)},)")  # fmt: skip
        return take(x, np.repeat(np.arange(len(counts)), counts), at)
    ends = as_array(np.cumsum(as_array(repeats, rec, np.int64)))
    total = ends[-1]
    places = arange(rec, to_number(as_array(total)))
    index = np.sum(np.expand_dims(places, 1) >= np.expand_dims(ends, 0), 1)
    return take(x, index, at)


@implements(np.flip)
def _flip(m: Any, axis: Any = None) -> Any:
    x = as_array(m)
    axes = axis_tuple(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


implements(np.flipud)(lambda m: np.flip(m, 0))
implements(np.fliplr)(lambda m: np.flip(m, 1))


@implements(np.rot90)
def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    x = as_array(m)
    first, second = axes
    if first == second or abs(first - second) == x.ndim:
        raise ValueError("Axes must be different.")
    if not all(-x.ndim <= a < x.ndim for a in axes):
        raise ValueError(f"Axes={axes} out of range for array of ndim={x.ndim}.")
    first, second = first % x.ndim, second % x.ndim
    turns = k % 4
    if turns == 0:
        return x[...]
    if turns == 2:
        return np.flip(np.flip(x, first), second)
    if turns == 1:
        return np.swapaxes(np.flip(x, second), first, second)
    return np.flip(np.swapaxes(x, first, second), second)


@implements(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    x = as_array(a, find_recorder(a, shift))
    if axis is None:
        return reshape(as_array(np.roll(ravel(x), shift, 0)), x.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(axes) != len(shifts):
        raise ValueError("shape mismatch: objects cannot be broadcast to a single shape")
    for by, at in zip(shifts, axes, strict=True):
        x = _roll_axis(x, by, axis_index(at, x.ndim))
    return x


def _roll_axis(x: TracedArray, shift: Any, axis: int) -> TracedArray:
    size = x.size_of(axis)
    if isinstance(size, int) and not isinstance(shift, (TracedArray, TracedNumber)):
        by = operator.index(shift) % size if size else 0
        if by == 0:
            return x
        return concatenate([slice_axis(x, axis, -by), slice_axis(x, axis, 0, -by)], axis)
    by = to_number(as_array(as_array(size, x.rec) - as_array(shift, x.rec))) % size
    return concatenate([slice_axis(x, axis, by), slice_axis(x, axis, None, by)], axis)


@implements(np.copy)
def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    x = as_array(a)
    return TracedArray(x.rec, x.current()._value, None if x.array is None else x.array.copy())


implements(np.astype)(lambda x, dtype, /, *, copy=True, device=None: cast(as_array(x), dtype))


@implements(np.resize)
def _resize(a: Any, new_shape: Any) -> Any:
    x, sizes = ravel(as_array(a)), size_list(new_shape)
    total: Any = 1
    for size in sizes:
        total = total * size
    repeats = (total + x.size - 1) // x.size
    return reshape(as_array(np.tile(x, repeats))[:total], sizes)


implements(np.shape)(lambda a: as_array(a).shape)
implements(np.ndim)(lambda a: as_array(a).ndim)


@implements(np.size)
def _size(a: Any, axis: Any = None) -> Any:
    x = as_array(a)
    return x.size if axis is None else x.shape[axis]
