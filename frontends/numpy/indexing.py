"""``x[key]`` for keys of every form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from serde.ir.dim_expr import combine
from serde.ir.graph import Dim

from . import hooks
from .array import TracedArray, as_array, make_constant, sizes_value
from .core import concatenate, emit, expand_dims, ravel, reshape, take, transpose
from .index_keys import Entry, check_index, parse_key
from .number import TracedNumber
from .recorder import Recorder, refuse
from .ufuncs import broadcast_dims

LAST, FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def get_item(x: TracedArray, key: Any) -> Any:
    """What ``x[key]`` is; a view where NumPy makes one."""
    with x.rec.operation("getitem"):
        x = x.current()
        entries = parse_key(x, key)
        if x.array is not None and all(is_plain(e.item) for e in entries):
            array = x.array[key if not isinstance(key, TracedArray) else key.array]
            if not isinstance(array, np.ndarray):
                return array
            y = TracedArray(x.rec, None, array)
        elif any(e.kind in ("array", "mask") for e in entries):
            return _get_advanced(x, entries)
        else:
            y = get_basic(x, entries)
        if any(e.kind in ("array", "mask") for e in entries):
            return y
        return y.as_view(
            x,
            lambda base: get_item(base, key),
            lambda base, new: hooks.set_item(base, key, new),
            key,
        )


def is_plain(item: Any) -> bool:
    """Whether a part of a key is known while the code is traced."""
    if isinstance(item, slice):
        return all(is_plain(b) for b in (item.start, item.stop, item.step))
    return not isinstance(item, (TracedArray, TracedNumber))


def get_basic(x: TracedArray, entries: Sequence[Entry]) -> TracedArray:
    """``x[key]`` of numbers, slices and new axes."""
    x = _take_slices(x, entries)
    axis = 0
    added: list[int] = []
    for entry in entries:
        if entry.kind == "int":
            check_index(entry.item, entry.axis, x.dims[axis])
            x = take(x, _index_value(x, entry.item), axis)
            continue
        if entry.kind == "slice":
            axis += 1
    position = 0
    for entry in entries:
        if entry.kind == "new":
            added.append(position)
        position += entry.kind in ("new", "slice")
    return expand_dims(x, added)


def _index_value(x: TracedArray, index: Any) -> Any:
    return TracedArray(x.rec, index.scalar()) if isinstance(index, TracedNumber) else index


def _take_slices(x: TracedArray, entries: Sequence[Entry]) -> TracedArray:
    """Apply all slices by one operator."""
    starts, stops, axes, steps = [], [], [], []
    dims = list(x.dims)
    for entry in entries:
        if entry.kind != "slice" or entry.item == slice(None):
            continue
        start, stop, step = entry.item.start, entry.item.stop, entry.item.step
        step = 1 if step is None else step
        if not isinstance(step, int):
            refuse("slicing", "the step has to be a number")
        if step == 0:
            raise ValueError("slice step cannot be zero")
        dims[entry.axis] = slice_dim(dims[entry.axis], start, stop, step)
        starts.append(start if start is not None else 0 if step > 0 else LAST)
        stops.append(stop if stop is not None else LAST if step > 0 else FIRST)
        axes.append(entry.axis)
        steps.append(step)
    if not axes:
        return x
    g = x.rec.g
    bounds = [sizes_value(x.rec, [_clip_bound(b) for b in part]) for part in (starts, stops)]
    places = [make_constant(x.rec, np.array(part, np.int64)) for part in (axes, steps)]
    value = g.Slice(x.value, *bounds, *places)
    if value.tensor is None and value is not x.value and value.shape is not None:
        value.shape = tuple(a if isinstance(a, int) else b for a, b in
                            zip(value.shape, dims, strict=True))  # fmt: skip
    return TracedArray(x.rec, value)


def _clip_bound(bound: Any) -> Any:
    return min(max(bound, FIRST), LAST) if isinstance(bound, int) else bound


def slice_dim(dim: Dim, start: Any, stop: Any, step: int) -> Dim:
    """The size of a slice of an axis of size ``dim``, None if it is not known."""
    if any(isinstance(b, TracedNumber) and b.dim is None for b in (start, stop)):
        return None
    start, stop = (b.dim if isinstance(b, TracedNumber) else b for b in (start, stop))
    if isinstance(dim, int):
        if any(isinstance(b, str) for b in (start, stop)):
            return None
        return len(range(*slice(start, stop, step).indices(dim)))
    if dim is None:
        return 0 if start is None and stop == 0 and step > 0 else None
    if step < 0:
        is_full = start in (None, -1) and stop is None
        return _count_steps(dim, -step) if is_full else None
    first = start or 0
    if isinstance(first, str) or first < 0:
        return None
    if stop is None or stop == dim:
        last = dim
    elif isinstance(stop, int) and stop < 0:
        last = combine("-", dim, -stop)
    elif isinstance(stop, str) and any(stop == combine("/", dim, n) for n in range(2, 17)):
        last = stop
    else:
        return None
    return _count_steps(combine("-", last, first), step)


def _count_steps(size: Dim, step: int) -> Dim:
    return size if step == 1 else combine("/", combine("+", size, step - 1), step)


# Arrays of indices and masks


def _get_advanced(x: TracedArray, entries: Sequence[Entry]) -> TracedArray:
    masks = [e for e in entries if e.kind == "mask"]
    others = [e for e in entries if e.kind in ("array", "int")]
    if (
        len(masks) == 1
        and not others
        and (not isinstance(masks[0].item, np.ndarray) or masks[0].item.ndim == 0)
    ):
        return _compress(_take_slices(x, entries), entries, masks[0])
    y = _take_slices(x, entries)
    places: list[int] = []
    indices: list[Any] = []
    position, added, keys = 0, [], []
    for entry in entries:
        if entry.kind == "new":
            added.append(position)
        elif entry.kind == "mask":
            coords = _nonzero(entry, x)
            indices += coords
            places += range(position, position + len(coords))
            position += len(coords) - 1
        elif entry.kind in ("array", "int"):
            check_index(entry.item, entry.axis, x.dims[entry.axis])
            indices.append(_index_value(x, entry.item))
            places.append(position)
        keys.append(entry.kind in ("array", "int", "mask"))
        position += 1
    y = expand_dims(y, added)
    if len(indices) == 1:
        return take(y, _as_int64(x.rec, indices[0]), places[0])
    first, last = keys.index(True), len(keys) - 1 - keys[::-1].index(True)
    front = not all(keys[first : last + 1])
    return _gather_several(y, places, indices, 0 if front else places[0])


def _as_int64(rec: Recorder, index: Any) -> Any:
    return index if isinstance(index, (int, np.ndarray)) else as_array(index, rec, np.int64)


def _nonzero(entry: Entry, x: TracedArray) -> list[Any]:
    """The index arrays that a mask stands for."""
    mask = entry.item
    check_mask(mask, x, entry.axis)
    if isinstance(mask, np.ndarray):
        return list(np.nonzero(mask))
    rows = emit(mask, "NonZero")
    return [take(rows, at, 0) for at in range(mask.ndim)]


def _compress(y: TracedArray, entries: Sequence[Entry], entry: Entry) -> TracedArray:
    """``x[mask]`` for a mask that is computed, beside slices and new axes."""
    mask, rank = as_array(entry.item, y.rec), entry.item.ndim
    check_mask(mask, y, entry.axis)
    shape = y.shape
    if rank == 0:  # a new axis, of size 1 or 0
        y, mask = expand_dims(y, [entry.axis]), expand_dims(mask, [0])
    elif rank > 1:
        y = reshape(y, [*shape[: entry.axis], -1, *shape[entry.axis + rank :]])
        mask = ravel(mask)
    y = emit(y, "Compress", mask, axis=entry.axis)
    return expand_dims(y, [at for at, e in enumerate(entries) if e.kind == "new"])


def check_mask(mask: TracedArray | np.ndarray[Any, Any], x: TracedArray, axis: int) -> None:
    """Raise IndexError for a mask whose sizes are not those of the axes it is for."""
    sizes = mask.dims if isinstance(mask, TracedArray) else mask.shape
    for at, (size, dim) in enumerate(zip(sizes, x.dims[axis:], strict=False)):
        if isinstance(size, int) and isinstance(dim, int) and size != dim:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + at}; size of "
                f"axis is {dim} but size of corresponding boolean axis is {size}"
            )


def _gather_several(
    y: TracedArray, places: Sequence[int], indices: Sequence[Any], target: int
) -> TracedArray:
    """Several index arrays together: their axes in front, one GatherND, and back."""
    rec = y.rec
    rest = [i for i in range(y.ndim) if i not in places]
    try:
        stacked, rank = _stack_indices(rec, indices)
    except ValueError:
        shapes = " ".join(str(np.shape(i) if not isinstance(i, TracedArray) else i.dims)
                          for i in indices)  # fmt: skip
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        ) from None
    front = transpose(y, [*places, *rest])
    values = emit(front, "GatherND", stacked)
    if target == 0:
        return values
    order = [*range(rank, rank + target), *range(rank), *range(rank + target, values.ndim)]
    return transpose(values, order)


def _stack_indices(rec: Recorder, indices: Sequence[Any]) -> tuple[Any, int]:
    """Index arrays broadcast and stacked along a last axis."""
    if all(isinstance(i, (int, np.ndarray)) for i in indices):
        arrays = np.broadcast_arrays(*(np.asarray(i, np.int64) for i in indices))
        return np.stack(arrays, -1), arrays[0].ndim
    arrays = [as_array(i, rec, np.int64) for i in indices]
    broadcast_dims(*(a.dims for a in arrays))
    arrays = np.broadcast_arrays(*arrays)
    rank = arrays[0].ndim
    return concatenate([expand_dims(as_array(a), [rank]) for a in arrays], rank), rank
