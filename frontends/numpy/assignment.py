"""``x[key] = new`` and ``ufunc.at``: afterwards the array is another value of the graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from serde.ir.geometry import may_be_same

from .array import TracedArray, as_array, has_traced
from .core import arange, concatenate, emit, expand, expand_dims, ravel, reshape, squeeze
from .index_keys import Entry, parse_key
from .indexing import check_mask, get_basic, is_plain
from .number import TracedNumber
from .recorder import refuse
from .ufuncs import broadcast_dims


def set_item(x: TracedArray, key: Any, new: Any) -> None:
    """``x[key] = new``: from now on ``x`` is another value of the graph."""
    with x.rec.operation("setitem"):
        x.current()
        if isinstance(new, TracedArray) and new.base is x and new.key is not None:
            new.current()
            if _is_same_key(new.key, key) and new._base_version == x.version:
                return  # x[key] += y has written through the view
        entries = parse_key(x, key)
        plain = not isinstance(new, (TracedArray, TracedNumber)) or (
            isinstance(new, TracedArray) and new.array is not None
        )
        if x.array is not None and plain and all(is_plain(e.item) for e in entries):
            numbers = new.array if isinstance(new, TracedArray) else new
            if not (isinstance(numbers, (list, tuple)) and has_traced(numbers)):
                copy = x.array.copy()
                copy[key if not isinstance(key, TracedArray) else key.array] = numbers
                x.replace(TracedArray(x.rec, None, copy))
                return
        update = as_array(new, x.rec, x.dtype)
        x.replace(_set(TracedArray(x.rec, x.value), entries, key, update))


def _is_same_key(a: Any, b: Any) -> bool:
    """Whether two keys are equal, as far as that is known while the code is traced."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_is_same_key, a, b))
    if isinstance(a, slice):
        return all(map(_is_same_key, (a.start, a.stop, a.step), (b.start, b.stop, b.step)))
    if isinstance(a, (int, type(None), type(Ellipsis))):
        return a == b
    if isinstance(a, TracedNumber):
        return a is b or (a.dim is not None and a.dim == b.dim)
    return a is b


def _set(x: TracedArray, entries: Sequence[Entry], key: Any, new: TracedArray) -> TracedArray:
    masks = [e for e in entries if e.kind == "mask"]
    arrays = [e for e in entries if e.kind == "array"]
    steps = {e.item.step for e in entries if e.kind == "slice"} - {None, 1}
    if not masks and not arrays and not steps:
        return _set_region(x, entries, new)
    slices = all(e.item == slice(None) for e in entries if e.kind == "slice")
    is_mask = len(masks) == 1 and not arrays and slices
    if is_mask and all(e.kind in ("mask", "slice") for e in entries) and entries[0].kind == "mask":
        mask = as_array(masks[0].item, x.rec)
        check_mask(mask, x, 0)
        rest = x.ndim - mask.ndim
        if new.ndim == rest + 1 and new.dims[0] == 1:
            new = squeeze(new, [0])
        if new.ndim <= rest:
            mask = expand_dims(mask, range(mask.ndim, x.ndim))
            broadcast_dims(new.dims, x.dims)
            return emit(mask, "Where", new, x)
    return _scatter(x, key, new, "none")


def _scatter(x: TracedArray, key: Any, new: TracedArray, reduction: str) -> TracedArray:
    """Write elements by their places in the flattened array."""
    static = all(isinstance(d, int) for d in x.dims)
    if static:
        count = math.prod(x.dims)
        places: Any = np.arange(count).reshape(x.dims)
        if not _is_traced_key(key):
            chosen = as_array(places[key], x.rec)
        else:
            chosen = as_array(as_array(places, x.rec)[key], x.rec)
    else:
        chosen = as_array(reshape(arange(x.rec, x.size), x.shape)[key], x.rec)
    if new.ndim > chosen.ndim and all(d == 1 for d in new.dims[: new.ndim - chosen.ndim]):
        new = squeeze(new, range(new.ndim - chosen.ndim))
    shape = broadcast_dims(new.dims, chosen.dims)
    if any(isinstance(d, int) and s != d for s, d in zip(shape, chosen.dims, strict=False)) or (
        len(shape) > chosen.ndim
    ):
        raise ValueError(
            f"shape mismatch: value array of shape {new.dims} could not be broadcast to indexing "
            f"result of shape {chosen.dims}"
        )
    updates = ravel(expand(new, chosen.shape))
    flat = emit(ravel(x), "ScatterElements", ravel(chosen), updates, axis=0, reduction=reduction)
    return reshape(flat, x.shape)


def _is_traced_key(key: Any) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    return not all(is_plain(i) or (isinstance(i, TracedArray) and i.array is not None)
                   for i in items) or any(isinstance(i, TracedArray) for i in items)  # fmt: skip


def _set_region(x: TracedArray, entries: Sequence[Entry], new: TracedArray) -> TracedArray:
    """Slices of step 1 and numbers: what is before, the new region, and what is behind."""
    region = get_basic(x, entries)
    if new.ndim > region.ndim and all(d == 1 for d in new.dims[: new.ndim - region.ndim]):
        new = squeeze(new, range(new.ndim - region.ndim))
    shape = broadcast_dims(new.dims, region.dims) if new.ndim <= region.ndim else ()
    if new.ndim > region.ndim or not all(map(may_be_same, shape, region.dims)):
        raise ValueError(
            f"could not broadcast input array from shape {new.dims} into shape {region.dims}"
        )
    new = expand(new, region.shape)
    position, dropped, kept = 0, [], []
    for entry in entries:
        if entry.kind == "new":
            dropped.append(position)
        position += entry.kind in ("new", "slice")
        if entry.kind == "int":
            kept.append(entry.axis)
    new = expand_dims(squeeze(new, dropped), kept)
    bounds = [(e.axis, _region_bounds(x, e)) for e in entries if e.kind in ("slice", "int")]
    changed = [(a, b) for a, b in bounds if b[1] is not None or not _is_zero(b[0])]
    return _replace_region(x, changed, new)


def _is_zero(bound: Any) -> bool:
    return isinstance(bound, int) and bound == 0


def _region_bounds(x: TracedArray, entry: Entry) -> tuple[Any, Any]:
    """The first place of a region along an axis, and the first behind it (None: the end)."""
    size = x.dims[entry.axis]
    if entry.kind == "int":
        start = entry.item
        if isinstance(start, int):
            stop = None if start == -1 or start + 1 == size else start + 1
            return start, stop
        return start, start + 1
    start, stop = entry.item.start, entry.item.stop
    if isinstance(size, int) and all(b is None or isinstance(b, int) for b in (start, stop)):
        first, last, _ = entry.item.indices(size)
        return first, None if max(first, last) == size else max(first, last)
    first = 0 if start is None else start
    if stop is None or (isinstance(stop, TracedNumber) and stop.dim is not None
                        and stop.dim == size):  # fmt: skip
        return first, None
    if isinstance(first, int) and isinstance(stop, int) and (first < 0) == (stop < 0):
        return first, max(first, stop)
    full = x.size_of(entry.axis)
    first, stop = (b + full if isinstance(b, int) and b < 0 else b for b in (first, stop))
    if _is_zero(first):
        return 0, stop
    return first, stop.largest(first) if isinstance(stop, TracedNumber) else first.largest(stop)


def _replace_region(
    x: TracedArray, bounds: Sequence[tuple[int, tuple[Any, Any]]], new: TracedArray
) -> TracedArray:
    if not bounds:
        return new
    (axis, (start, stop)), rest = bounds[0], bounds[1:]
    if rest:
        inner = get_basic(x, [Entry("slice", slice(start, stop) if i == axis else slice(None), i)
                               for i in range(x.ndim)])  # fmt: skip
        new = _replace_region(inner, rest, new)
    parts = [new]
    if not _is_zero(start):
        parts.insert(0, _part(x, axis, slice(None, start)))
    if stop is not None:
        parts.append(_part(x, axis, slice(stop, None)))
    y = concatenate([p for p in parts if p.dims[axis] != 0] or parts[:1], axis)
    if y.value.tensor is None:  # an assignment keeps the shape
        y.value.shape = x.dims
    return y


def _part(x: TracedArray, axis: int, item: slice) -> TracedArray:
    entries = [Entry("slice", item if i == axis else slice(None), i) for i in range(x.ndim)]
    return get_basic(x, entries)


REDUCTIONS = {"add": "add", "subtract": "add", "multiply": "mul", "maximum": "max",
              "minimum": "min"}  # fmt: skip


def apply_at(name: str, x: Any, key: Any, new: Any = None) -> None:
    """``ufunc.at(x, key, new)`` on a local array."""
    if name not in REDUCTIONS:
        refuse(f"np.{name}.at", "this method of the ufunc is not traced")
    if not isinstance(x, TracedArray):
        refuse(f"np.{name}.at", "the array is not a local one", "Make it with np.zeros")
    update = as_array(new, x.rec, x.dtype)
    update = np.negative(update) if name == "subtract" else update
    x.replace(_scatter(TracedArray(x.rec, x.value), key, update, REDUCTIONS[name]))
