"""Keys of ``x[key]``, parsed: one entry for each axis and each new axis."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from .array import TracedArray, as_array, has_traced, to_number
from .number import TracedNumber


class Entry(NamedTuple):
    """A part of a key: ``slice``, ``int`` (also a traced number), ``new``, ``array`` or ``mask``.

    ``axis`` is the first axis of the array that it is about.
    """

    kind: str
    item: Any
    axis: int


def parse_key(x: TracedArray, key: Any) -> list[Entry]:
    """The parts of a key, those that are left out included.

    Raises:
        IndexError: as NumPy does.
    """
    items = [_normalize(k) for k in (key if isinstance(key, tuple) else (key,))]
    used = sum(_count_axes(i) for i in items)
    dots = [n for n, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > x.ndim:
        raise IndexError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {used} were indexed"
        )
    fill = [slice(None)] * (x.ndim - used)
    at = dots[0] if dots else len(items)
    items[at : at + len(dots)] = fill
    entries, axis = [], 0
    for item in items:
        entries.append(Entry(_kind_of(item), item, axis))
        axis += _count_axes(item)
    return entries


def _normalize(item: Any) -> Any:
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, slice):
        return slice(*(_slice_bound(b) for b in (item.start, item.stop, item.step)))
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if isinstance(item, (int, np.integer, TracedNumber)):
        return item if isinstance(item, TracedNumber) else int(item)
    if isinstance(item, (list, tuple)):
        item = as_array(item) if has_traced(item) else _plain(item)
    if isinstance(item, TracedArray):
        if (known := item.array) is not None:
            return known if known.ndim or known.dtype.kind == "b" else _normalize(known[()])
        if item.dtype.kind not in "iub":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        if item.ndim == 0 and item.dtype.kind != "b":
            return to_number(item)
        return item
    if isinstance(item, np.ndarray):
        if item.dtype.kind not in "iub":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        return int(item) if item.ndim == 0 and item.dtype.kind != "b" else item
    if hasattr(item, "__index__"):
        return operator.index(item)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
        "boolean arrays are valid indices"
    )


def _plain(item: Any) -> Any:
    array = np.asarray(item)
    return array.astype(np.int64) if array.size == 0 else array


def _slice_bound(bound: Any) -> Any:
    if isinstance(bound, TracedArray):
        bound = to_number(bound)
    if bound is None or isinstance(bound, TracedNumber):
        return bound
    try:
        return operator.index(bound)
    except TypeError:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
        ) from None


def _kind_of(item: Any) -> str:
    if item is None:
        return "new"
    if isinstance(item, slice):
        return "slice"
    if isinstance(item, (int, TracedNumber)):
        return "int"
    return "mask" if item.dtype.kind == "b" else "array"


def _count_axes(item: Any) -> int:
    """How many axes an item is about."""
    if item is None or item is Ellipsis:
        return 0
    return int(item.ndim) if _kind_of(item) == "mask" else 1


def check_index(index: Any, axis: int, size: Any) -> None:
    """Raise IndexError for a number, or an array of them, that is beyond a known size."""
    if not isinstance(size, int) or isinstance(index, (TracedArray, TracedNumber)):
        return
    wrong = np.extract((np.asarray(index) >= size) | (np.asarray(index) < -size), index)
    if wrong.size:
        raise IndexError(f"index {wrong[0]} is out of bounds for axis {axis} with size {size}")
