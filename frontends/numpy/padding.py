"""Padding, inserting and deleting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .array import TracedArray, as_array, cast, find_recorder, sizes_value
from .core import (
    axis_index,
    concatenate,
    expand_dims,
    flatten_axis,
    implements,
    is_known,
    refuse_options,
    slice_axis,
    take,
)  # fmt: skip
from .number import TracedNumber
from .recorder import refuse


@implements(np.pad)
def _pad(array: Any, pad_width: Any, mode: str = "constant", **options: Any) -> Any:
    x = as_array(array, find_recorder(array, pad_width))
    if mode == "symmetric":
        return _pad_symmetric(x, pad_width)
    if mode not in ("constant", "edge", "reflect", "wrap"):
        refuse("np.pad", f"mode={mode!r} is not traced")
    if options.pop("reflect_type", "even") != "even":
        refuse("np.pad", "reflect_type='odd' is not traced")
    widths = _pad_widths(pad_width, x.ndim)
    fill = options.pop("constant_values", 0)
    refuse_options("np.pad", **options)
    if mode == "constant" and np.ndim(fill) and is_known(fill):
        return _pad_each(x, widths, np.broadcast_to(np.asarray(fill), (x.ndim, 2)))
    if mode != "constant":
        _check_pads(x, widths, mode)
    return _emit_pad(x, widths, mode, fill)


def _pad_widths(widths: Any, rank: int) -> list[tuple[Any, Any]]:
    """The two widths of each axis."""
    if isinstance(widths, dict):
        pairs = {axis_index(k, rank): v for k, v in widths.items()}
        return [_pair(pairs.get(i, 0)) for i in range(rank)]
    if isinstance(widths, TracedNumber) or (
        not isinstance(widths, (list, tuple)) and np.ndim(widths) == 0
    ):
        return [_pair(widths)] * rank
    items = list(widths)
    if items and all(not isinstance(i, (list, tuple, np.ndarray)) for i in items):
        return [_pair(items)] * rank
    if len(items) == 1:
        return [_pair(items[0])] * rank
    if len(items) != rank:
        raise ValueError(f"operands could not be broadcast together with {rank} axes")
    return [_pair(i) for i in items]


def _pair(item: Any) -> tuple[Any, Any]:
    if isinstance(item, (list, tuple, np.ndarray)):
        a, b = (item[0], item[0]) if len(item) == 1 else item
    else:
        a = b = item
    for width in (a, b):
        if isinstance(width, (int, np.integer)) and width < 0:
            raise ValueError("index can't contain negative values")
    return a, b


def _check_pads(x: TracedArray, widths: Sequence[tuple[Any, Any]], mode: str) -> None:
    """Refuse widths that repeat the array several times."""
    for size, pair in zip(x.dims, widths, strict=True):
        least = {"reflect": 1, "wrap": 0}.get(mode)
        if least is None or not isinstance(size, int):
            continue
        if any(isinstance(w, (int, np.integer)) and w > size - least for w in pair):
            refuse("np.pad", f"{mode!r} pads of {pair} are wider than an axis of size {size}")


def _emit_pad(x: TracedArray, widths: Sequence[tuple[Any, Any]], mode: str, fill: Any) -> Any:
    pads = sizes_value(x.rec, [a for a, _ in widths] + [b for _, b in widths])
    value = as_array(fill, x.rec, x.dtype).value if mode == "constant" else None
    dtype = x.dtype
    y = TracedArray(x.rec, x.rec.g.Pad(x.value, pads, value, mode=mode))
    return cast(y, dtype)


def _pad_each(x: TracedArray, widths: Sequence[tuple[Any, Any]], fills: Any) -> Any:
    """Constants of their own for each side of each axis."""
    for at, pair in enumerate(widths):
        for side in (0, 1):
            part = [(0, 0)] * x.ndim
            part[at] = (pair[0], 0) if side == 0 else (0, pair[1])
            x = _emit_pad(x, part, "constant", fills[at][side])
    return x


def _pad_symmetric(x: TracedArray, pad_width: Any) -> Any:
    for at, (before, after) in enumerate(_pad_widths(pad_width, x.ndim)):
        parts = [x]
        if before != 0:
            parts.insert(0, np.flip(slice_axis(x, at, None, before), at))
        if after != 0:
            parts.append(np.flip(slice_axis(x, at, x.size_of(at) - after), at))
        x = concatenate(parts, at)
    return x


@implements(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    rec = find_recorder(arr, values)
    x, at = flatten_axis(as_array(arr, rec), axis)
    if not isinstance(obj, (int, np.integer)):
        refuse("np.insert", "the place has to be a number")
    new = as_array(values, rec, x.dtype)
    if new.ndim < x.ndim:
        new = expand_dims(new, [at]) if new.ndim == x.ndim - 1 and new.ndim else new
        sizes = list(x.shape)
        sizes[at] = new.size_of(0) if x.ndim == 1 and new.ndim == 1 else 1
        new = as_array(np.broadcast_to(new, sizes))
    place, size = int(obj), x.dims[at]
    if isinstance(size, int) and not -size <= place <= size:
        raise IndexError(f"index {place} is out of bounds for axis {at} with size {size}")
    return concatenate([slice_axis(x, at, None, place), new, slice_axis(x, at, place)], at)


@implements(np.delete)
def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    x, at = flatten_axis(arr, axis)
    size = x.dims[at]
    if isinstance(size, int) and is_known(obj):
        return take(x, np.delete(np.arange(size), obj), at)
    if not isinstance(obj, (int, np.integer)):
        refuse("np.delete", "the size of the axis and the places have to be numbers")
    rest = [slice_axis(x, at, None, obj)]
    return concatenate([*rest, slice_axis(x, at, obj + 1)] if obj != -1 else rest, at)
