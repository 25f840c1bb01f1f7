"""Slice and Split: parts of a tensor along its axes."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from serde.decompositions.loops import reverse_rows
from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints, axes_of, axis_of, slice_along
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.slicing import part_sizes

from ..rules import reads
from ..target import dims_or, emit_cast, emit_scalar, legalizations, writes
from .layouts import require_static_sizes
from .shape import FAR, static_sizes

BEYOND = 2**62  # beyond any size


@reads("strided_slice")
def read_strided_slice(
    g, x, *, begin: Ints | None = None, end: Ints | None = None, strides: Ints | None = None,
    slice_mode="end", axes: Ints | None = None,
):  # fmt: skip
    """In mode ``size``, ``end`` is a count, -1 for all that is left, and strides are 1."""
    begin, end = begin or (), end or ()
    chosen = list(axes_of(axes, x.rank)) if axes else list(range(max(len(begin), len(end))))
    count = len(chosen)
    begin = begin + (0,) * (count - len(begin))
    if slice_mode == "size":
        steps: Ints = (1,) * count
        ends = [FAR if e < 0 else b + e for b, e in zip(begin, end, strict=False)]
        ends = [FAR if b < 0 <= e else e for b, e in zip(begin, ends, strict=False)]
    else:
        require(slice_mode == "end", f"slice_mode={slice_mode!r} is unknown")
        steps = (strides or ()) + (1,) * (count - len(strides or ()))
        ends = list(end)
    ends += [FAR if s > 0 else -FAR for s in steps[len(ends) :]]
    return g.Slice(x, list(begin), list(ends), chosen, list(steps))


@reads("dyn.strided_slice", ignore=("begin", "end", "strides", "axes"))
def read_dyn_strided_slice(g, x, begin, end, strides, *, slice_mode="end"):
    begin, end, strides = (g.cast(v, DType.INT64) for v in (begin, end, strides))
    (count,) = begin.static_shape
    if slice_mode == "size":
        is_open = g.Less(end, g.const(0, DType.INT64))
        ends = g.Where(is_open, g.const(FAR, DType.INT64), g.Add(begin, end))
        return g.Slice(x, begin, ends, list(range(count)), [1] * count)
    return g.Slice(x, begin, end, list(range(count)), strides)


@reads("strided_set")
def read_strided_set(g, x, v, begin, end, strides):
    """``x`` with ``v`` in place of a slice: positions are computed, then scattered to."""
    bounds = [w.ints() for w in (begin, end, strides)]
    bounds[2] = bounds[2] or (1,) * len(bounds[0])
    cuts = [slice(*b) for b in zip(*bounds, strict=True)]
    rows = [arrays.arange(d)[c] for d, c in zip(require_static_sizes(x, 0), cuts, strict=False)]
    rows += [arrays.arange(d) for d in require_static_sizes(x, len(rows))]
    places = np.stack(arrays.meshgrid(*rows, indexing="ij"), -1)
    return g.ScatterND(x, g.const(places.astype(np.int64)), v)


@reads("split")
def read_split(g, x, *, indices_or_sections: int | Ints, axis=0):
    """So many equal parts, or parts between positions."""
    axis = axis_of(axis, x.rank)
    if isinstance(indices_or_sections, int):
        count, size = indices_or_sections, x.ranked_shape[axis]
        if count == 1:
            return (x,)
        if not isinstance(size, int):
            return tuple(g.Split(x, num_outputs=count, axis=axis, outputs=count))
        require(size % count == 0, f"{size} is not {count} equal parts")
        step = size // count
        indices_or_sections = tuple(range(step, size, step)) if step else ()
    if not indices_or_sections:
        return (x,)
    bounds = zip((0, *indices_or_sections), (*indices_or_sections, FAR), strict=True)
    return tuple(g.slice_axis(x, axis, a, max(a, b)) for a, b in bounds)


@reads("slice_like")
def read_slice_like(g, x, like, *, axes: Ints | None = None):
    return g.slice_like(x, like, axes=axes or ())


@legalizations("Slice")
def legalize_slice(g, x, starts, ends, axes=None, steps=None):
    """Parts of axes of dynamic size by the places of their rows, where TVM would slice by tensors.

    Its ``dyn.strided_slice`` loses the sizes of all axes.
    """
    chosen, by = static_sizes(axes), static_sizes(steps)
    is_known = chosen is not None and by is not None and starts.rank == ends.rank == 1
    if not is_known or not any(isinstance(d, int) for d in x.ranked_shape):
        return None
    kept = []
    for at, (axis, step) in enumerate(zip(chosen, by, strict=True)):
        begin, end = (g.Slice(v, [at], [at + 1], [0], [1]) for v in (starts, ends))
        first, last = (v.ints()[0] if v.tensor is not None else None for v in (begin, end))
        if isinstance(x.ranked_shape[axis], int) and None not in (first, last):
            kept.append(at)
        elif first == step == -1 and last is not None and last < -FAR:
            x = reverse_rows(g, x, axis)
        elif step > 0 and first is not None and last is not None and min(first, last) >= -1:
            kept.append(at)
        else:
            x = g.Gather(x, _list_places(g, g.sizes_of(x)[axis], begin, end, step), axis=axis)
    if len(kept) == len(chosen):
        return None
    rest = [g.Gather(v, kept, axis=0) for v in (starts, ends, axes, steps)]
    return g.Slice(x, *rest) if kept else x


def _list_places(g, size: Value, first: Value, last: Value, step: int):
    """The places that a Slice takes of an axis: shape (count,), int64."""
    size, first, last = (g.Reshape(g.cast(v, DType.INT64), []) for v in (size, first, last))
    lowest, highest = (0, size) if step > 0 else (-1, g.Sub(size, 1))
    ends = []
    for bound in (first, last):
        counted = g.Where(g.Less(bound, 0), g.Add(bound, size), bound)
        ends.append(g.Min(g.Max(counted, g.const(lowest, DType.INT64)), highest))
    begin, end = ends
    return g.Range(begin, (g.Max if step > 0 else g.Min)(begin, end), g.const(step, DType.INT64))


@writes("Slice")
def write_slice(r, x, starts, ends, axes, steps):
    bounds = [static_sizes(v) for v in (starts, ends, axes, steps)]
    if None in bounds:
        return dynamic_slice(r, x, starts, ends, axes, steps)
    begin, end, step = [], [], []
    for first, last, axis, by in zip(*bounds, strict=True):
        size = x.ranked_shape[axis]
        if isinstance(size, int):
            first, last, _ = slice_along(size, first, last, by).indices(size)
            last = first if (last - first) * by < 0 else last  # TVM takes no end before the begin
            last = -size - 1 if last < 0 else last
        else:
            if by < 0 or min(first, last) < -1:  # TVM counts beyond the front
                return dynamic_slice(r, x, starts, ends, axes, steps)
            first, last = (max(min(v, FAR), -FAR) for v in (first, last))
        begin.append(first)
        end.append(last)
        step.append(by)
    y = r.strided_slice(x, begin=begin, end=end, strides=step, axes=bounds[2])
    if all(isinstance(x.ranked_shape[axis], int) for axis in bounds[2] or ()):
        return y
    return r.annotation.stop_fusion(y)  # TVM loses the sizes of two slices in one kernel


def dynamic_slice(r, x, starts, ends, axes, steps):
    """Bounds along all axes, in tensors."""
    kind = DType.INT64
    shape = r.cast(r.shape_of(x, dtype="int64"), dtype="int64")
    starts, ends, axes, steps = (emit_cast(r, v, kind) for v in (starts, ends, axes, steps))
    axes = _normalize_indices(r, axes, emit_scalar(r, x.rank, kind))
    low, high, by = (
        r.scatter_elements(r.const([v] * x.rank, kind), axes, bound, axis=0, reduction="update")
        for v, bound in ((0, starts), (BEYOND, ends), (1, steps))
    )
    zero, one = (emit_scalar(r, v, kind) for v in (0, 1))
    back = r.less(by, zero)
    last = r.where(back, r.subtract(shape, one), shape)
    low = r.minimum(r.maximum(_normalize_indices(r, low, shape), zero), last)
    least = r.where(back, emit_scalar(r, -1, kind), zero)
    high = r.minimum(r.maximum(_normalize_indices(r, high, shape), least), last)
    high = r.where(back, r.minimum(high, low), r.maximum(high, low))  # TVM counts below 0
    under = r.subtract(r.negative(shape), one)
    high = r.where(r.logical_and(back, r.less(high, zero)), under, high)
    return r.dyn.strided_slice(x, low, high, by)


def _normalize_indices(r, index: Value, size: Value) -> Value:
    """Indices below 0 counted from the end."""
    return r.where(r.less(index, emit_scalar(r, 0, DType.INT64)), r.add(index, size), index)


@legalizations("Split")
def legalize_split(
    g, x, parts=None, *, axis: int, num_outputs: int | None = None, outputs: int = 1
):
    """Parts of the same size, the last maybe smaller, are counted out."""
    if parts is not None:
        known = static_sizes(parts)
        if known is None:
            return g.decompose("Split", 13, x, parts, axis=axis, outputs=outputs)
        return _split_with_empty(g, x, known, axis) if 0 in known else None
    size, count = x.ranked_shape[axis], num_outputs or outputs
    if not isinstance(size, int):
        parts = part_sizes(g, g.Shape(x, start=axis, end=axis + 1), count)
        return g.Split(x, parts, axis=axis, outputs=outputs)
    each = -(-size // count)
    counts = [max(0, min(each, size - i * each)) for i in range(count)]
    return g.Split(x, counts, axis=axis, outputs=count)


@writes("Split", ignore=("num_outputs",))
def write_split(r, x, parts=None, *, axis: int):
    counts = static_sizes(parts)
    require(counts is not None, "a Split into parts of dynamic sizes")
    if len(counts) == 1:
        return (r.copy(x),)
    ends = tuple(accumulate(counts[:-1]))
    return r.split(x, indices_or_sections=ends, axis=axis, outputs=len(counts))


def _split_with_empty(g, x, counts, axis: int):
    """Parts without elements are constants: Relay cuts no such."""
    dims = dims_or(x, "a Split with a part without elements,")
    parts, at = [], 0
    for count in counts:
        shape = (*dims[:axis], count, *dims[axis + 1 :])
        empty = g.const(arrays.zeros(shape, x.type.numpy)) if not count else None
        parts.append(empty or g.Slice(x, [at], [at + count], [axis], [1]))
        at += count
    return tuple(parts)
