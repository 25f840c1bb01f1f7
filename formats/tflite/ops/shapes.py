"""Operators that change shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import Ints, axes_of, axis_of, slice_along
from serde.ir.graph import Dim, DType, Shape, Value

from ..target import TfliteBuilder, can_tell, find_axes, legalizations, padded_shape, writes
from .elementwise import broadcast_shape, cast

MOST_CUT = 8  # axes that STRIDED_SLICE takes
MOST_PADDED = 5  # axes that PAD takes
LIMIT = (1 << 31) - 1


@writes("Reshape", only={"allowzero": (0,)})
def write_reshape(t: TfliteBuilder, x: Value, shape: Value):
    sizes = _find_sizes(x, shape)
    if can_tell(sizes, find_axes(x, sizes)):
        return t.reshape(x, sizes)
    places = cast(t, shape, DType.INT32)
    if not {0, None}.isdisjoint(shape_data_of(shape) or (None,)):
        places = _copy_sizes(t, x, places)
    return t.make("RESHAPE", [x, places], x.dtype, sizes)


def _find_sizes(x: Value, shape: Value) -> Shape:
    """The sizes that a shape holds; None has no name."""
    elements = shape_data_of(shape)
    if elements is None:
        return (None,) * shape.static_shape[0]
    sizes = [x.ranked_shape[at] if d == 0 else d for at, d in enumerate(elements)]
    if -1 in sizes:
        at = sizes.index(-1)
        sizes[at] = _find_rest(x.ranked_shape, [d for n, d in enumerate(sizes) if n != at])
    return tuple(sizes)


def _copy_sizes(t: TfliteBuilder, x: Value, shape: Value) -> Value:
    """A computed shape with the sizes of ``x`` for zeros."""
    count, copied = shape.static_shape[0], min(shape.static_shape[0], x.rank)
    lengths = find_lengths(t, x, range(copied), DType.INT32)
    if copied < count:
        parts = [lengths, t.ints([0] * (count - copied))]
        lengths = t.make("CONCATENATION", parts, DType.INT32, (count,), axis=0)
    is_zero = t.make("EQUAL", [shape, t.ints([0])], DType.BOOL, (count,))
    return t.make("SELECT_V2", [is_zero, lengths, shape], DType.INT32, (count,))


def _find_rest(shape: Shape, sizes: Sequence[Dim]) -> Dim:
    """The size that makes others as many elements as a shape has, None where it has no name."""
    left, more = [*shape], list[Dim]()
    for d in sizes:
        if d in left:
            left.remove(d)
        else:
            more.append(d)
    names = [d for d in left if not isinstance(d, int)]
    if not all(isinstance(d, int) for d in more):
        return None
    factor = math.prod(d for d in left if isinstance(d, int))
    count = math.prod(d for d in more if isinstance(d, int))
    if names:
        return names[0] if len(names) == 1 and factor == count else None
    return factor // count


@writes("Flatten")
def write_flatten(t: TfliteBuilder, x: Value, *, axis: int):
    lead, rest = x.ranked_shape[:axis], x.ranked_shape[axis:]
    sizes = []
    for dims in (lead, rest):
        names = [d for d in dims if not isinstance(d, int)]
        product = int(np.prod([d for d in dims if isinstance(d, int)], initial=1))
        sizes.append(
            product if not names else names[0] if product == 1 and len(names) == 1 else None
        )
    return t.reshape(x, tuple(sizes))


@writes("Squeeze")
def write_squeeze(t: TfliteBuilder, x: Value, axes: Value | None = None):
    is_known = axes is not None or x.is_static
    require(is_known, "axes of size 1 that are not named. Name them, or give numbers (--static)")
    ones = [axis for axis, size in enumerate(x.ranked_shape) if size == 1]
    named = ones if axes is None else axes_of(axes.ints(), x.rank)
    others = [axis for axis in range(x.rank) if axis not in named]
    return t.reshape(x, tuple([x.ranked_shape[axis] for axis in others]), others)


@writes("Unsqueeze")
def write_unsqueeze(t: TfliteBuilder, x: Value, axes: Value):
    named = axes_of(axes.ints(), x.rank + len(axes.ints()))
    axes_of_x = iter(range(x.rank))
    places = [None if a in named else next(axes_of_x) for a in range(x.rank + len(named))]
    return t.reshape(x, tuple([1 if a is None else x.ranked_shape[a] for a in places]), places)


@writes("Transpose")
def write_transpose(t: TfliteBuilder, x: Value, *, perm: Ints):
    return t.transpose(x, perm)


@writes("Concat")
def write_concat(t: TfliteBuilder, *values: Value, axis: int):
    place = axis_of(axis, values[0].rank)
    values = tuple([v for v in values if v.ranked_shape[place] != 0]) or values[:1]
    if len(values) == 1:
        return values[0]
    sizes = [v.ranked_shape[place] for v in values]
    require(all(isinstance(d, int) for d in sizes), "joined sizes by name. Give numbers (--static)")
    shape = list(values[0].ranked_shape)
    shape[place] = sum(sizes)
    return t.make("CONCATENATION", values, values[0].dtype, tuple(shape), axis=place)


@writes("Shape")
def write_shape(t: TfliteBuilder, x: Value, *, start: int = 0, end: int | None = None):
    return find_lengths(t, x, range(x.rank)[start:end], DType.INT64)


def find_lengths(t: TfliteBuilder, x: Value, places: range, dtype: DType) -> Value:
    """The sizes of some axes in a row, constant where they are known."""
    sizes = [d for d in x.ranked_shape[places.start : places.stop] if isinstance(d, int)]
    if len(sizes) == len(places):
        return t.const(np.asarray(sizes, dtype.numpy))
    ends = [t.ints([n]) for n in (places.start, places.stop, 1)]
    row = t.make("STRIDED_SLICE", [t.count_sizes(x), *ends], DType.INT32, (len(places),))
    return cast(t, row, dtype)


@writes("Range")
def write_range(t: TfliteBuilder, start: Value, limit: Value, delta: Value):
    """As many numbers as there are; from 0 by 1 they are as many as the limit says.

    The kernel refuses to count away from the limit, which is then the start.
    """
    counts = shape_data_of(limit)
    first, by = [None if v.tensor is None else v.array().item() for v in (start, delta)]
    start, limit, delta = [t.reshape(v, ()) for v in (start, limit, delta)]
    if counts is None:
        limit = bound_limit(t, start, limit, delta, by)
    count = counts[0] if counts is not None and (first, by) == (0, 1) else None
    return t.make("RANGE", [start, limit, delta], start.dtype, (count,))


def bound_limit(t: TfliteBuilder, start: Value, limit: Value, delta: Value, by: float | None):
    """The limit, or the start where that lies the other way; ``by`` is the step, if it is known."""
    codes = ("MAXIMUM", "MINIMUM") if by is None else ("MAXIMUM" if by > 0 else "MINIMUM",)
    ends = [t.make(code, [start, limit], start.dtype, ()) for code in codes]
    if by is not None:
        return ends[0]
    zero = t.const(np.zeros((), start.type.numpy))
    is_up = t.make("GREATER", [delta, zero], DType.BOOL, ())
    return t.make("SELECT_V2", [is_up, *ends], start.dtype, ())


@writes("Expand")
def write_expand(t: TfliteBuilder, x: Value, shape: Value):
    wanted = shape_data_of(shape) or (None,) * shape.static_shape[0]
    sizes = broadcast_shape((x, Value("", None, wanted)))
    behind = x.ranked_shape[max(x.rank - len(wanted), 0) :]
    pairs = zip(wanted, behind, strict=True)
    if sizes == x.shape and all(n == 1 or (n == d and n is not None) for n, d in pairs):
        return x
    return t.make("BROADCAST_TO", [x, find_broadcast(t, x, shape, sizes)], x.dtype, sizes)


def find_broadcast(t: TfliteBuilder, x: Value, shape: Value, sizes: Shape) -> Value:
    """The shape that a value is repeated to."""
    if all(isinstance(d, int) for d in sizes):
        return t.ints(sizes)  # type: ignore[arg-type]
    rows = [t.count_sizes(x), cast(t, shape, DType.INT32)]
    return t.make("BROADCAST_ARGS", rows, DType.INT32, (len(sizes),))


@writes("Tile")
def write_tile(t: TfliteBuilder, x: Value, repeats: Value):
    pairs = zip(x.ranked_shape, shape_data_of(repeats) or (None,) * x.rank, strict=True)
    sizes = [n if d == 1 else d if n == 1 else d * n if isinstance(d, int) and isinstance(n, int)
             else None for d, n in pairs]  # fmt: skip
    counts = cast(t, repeats, DType.INT32)
    return t.make("TILE", [x, counts], x.dtype, tuple(sizes))


@writes("Slice")
def write_slice(t: TfliteBuilder, x: Value, starts: Value, ends: Value, axes: Value | None = None,
                steps: Value | None = None):  # fmt: skip
    count = starts.static_shape[0]
    named = range(count) if axes is None else axes_of(axes.ints(), x.rank)
    by = (1,) * count if steps is None else steps.ints()
    require(x.rank <= MOST_CUT, f"more than {MOST_CUT} axes. Reshape the tensor")
    if starts.tensor is None or ends.tensor is None:
        return slice_computed(t, x, starts, ends, dict(zip(named, by, strict=True)))
    first, last = starts.ints(), ends.ints()
    begin, end, step = [0] * x.rank, [0] * x.rank, [1] * x.rank
    shape, open_ends = list(x.ranked_shape), (1 << x.rank) - 1
    for axis, start, stop, stride in zip(named, first, last, by, strict=True):
        size = x.ranked_shape[axis]
        if (start, stride) == (0, 1) and stop >= LIMIT:
            continue
        if not isinstance(size, int):
            begin[axis], stop, shape[axis] = cut_named(size, start, stop, stride)
            step[axis] = stride
            if stop < LIMIT:
                end[axis] = stop
                open_ends &= ~(1 << axis)
            continue
        places = range(size)[slice_along(size, start, stop, stride)]
        begin[axis], end[axis], step[axis] = places.start, places.stop, stride
        shape[axis] = len(places)
        if places.stop >= 0:
            open_ends &= ~(1 << axis)
        else:
            end[axis] = 0
    if tuple(shape) == x.shape and {*step} == {1} and None not in shape:
        return x
    operands = [x, t.ints(begin), t.ints(end), t.ints(step)]
    return t.make("STRIDED_SLICE", operands, x.dtype, tuple(shape), end_mask=open_ends)


def slice_computed(t: TfliteBuilder, x: Value, starts: Value, ends: Value, steps: dict[int, int]):
    """A slice between computed places, with the step along each of its axes."""
    axes = [*steps]
    shape = [None if axis in steps else size for axis, size in enumerate(x.ranked_shape)]
    by = [steps.get(axis, 1) for axis in range(x.rank)]
    places = [spread_places(t, v, axes, x.rank) for v in (starts, ends)]
    whole = sum(1 << axis for axis in range(x.rank) if axis not in steps)
    masks = {"begin_mask": whole, "end_mask": whole}
    return t.make("STRIDED_SLICE", [x, *places, t.ints(by)], x.dtype, tuple(shape), **masks)


def spread_places(t: TfliteBuilder, places: Value, axes: Sequence[int], rank: int) -> Value:
    """Places along some axes, beside zeros for the others, within int32."""
    if places.dtype is DType.INT64:
        for code, bound in (("MAXIMUM", -LIMIT), ("MINIMUM", LIMIT)):
            operands = [places, t.const(np.asarray(bound, np.int64))]
            places = t.make(code, operands, DType.INT64, places.shape)
    places = cast(t, places, DType.INT32)
    if [*axes] == [*range(rank)]:
        return places
    zeros = t.make("CONCATENATION", [t.ints([0]), places], DType.INT32, (len(axes) + 1,), axis=0)
    order = [axes.index(axis) + 1 if axis in axes else 0 for axis in range(rank)]
    return t.make("GATHER", [zeros, t.ints(order)], DType.INT32, (rank,), axis=0)


def cut_named(size: Dim, start: int, stop: int, stride: int) -> tuple[int, int, Dim]:
    """Where a cut of a size by name begins and ends, and the name or None of what is left."""
    if stride == -1 and stop < -LIMIT and (start == -1 or start >= LIMIT):
        return -1, LIMIT, size
    require(stride > 0, "a part in reverse of a size by name. Give numbers (--static, --input)")
    return max(start, -LIMIT), max(stop, -LIMIT), None


@legalizations("Split")
def legalize_split(g, x: Value, parts=None, *, axis: int, num_outputs: int | None = None,
                   outputs: int = 1):  # fmt: skip
    """Parts of the same size, the last maybe smaller, are counted out."""
    if parts is not None:
        return None
    size, count = x.ranked_shape[axis], num_outputs or outputs
    require(isinstance(size, int), "parts of a size by name. Give numbers (--static, --input)")
    each = -(-size // count)
    sizes = [max(0, min(each, size - at * each)) for at in range(count)]
    return g.Split(x, sizes, axis=axis, outputs=outputs)


@writes("Split", ignore=("num_outputs",))
def write_split(t: TfliteBuilder, x: Value, split: Value, *, axis: int):
    """Sizes are numbers where they are known: XNNPACK leaves those that are -1 to other kernels."""
    place = axis_of(axis, x.rank)
    parts = []
    counts = split.ints()
    for start, size in zip(accumulate(counts, initial=0), counts, strict=False):
        begin, shape = [0] * x.rank, list(x.ranked_shape)
        begin[place], shape[place] = start, size
        sizes = t.ints([d if isinstance(d, int) else -1 for d in shape])
        parts.append(t.make("SLICE", [x, t.ints(begin), sizes], x.dtype, tuple(shape)))
    return tuple(parts)


@writes("Pad")
def write_pad(t: TfliteBuilder, x: Value, pads: Value, fill: Value | None = None,
              axes: Value | None = None, *, mode: str):  # fmt: skip
    require(mode in ("constant", "reflect"), f"mode={mode!r}. Use constant or reflect")
    named = [*range(x.rank)] if axes is None else axes_of(axes.ints(), x.rank)
    require(x.rank <= MOST_PADDED, f"more than {MOST_PADDED} axes. Reshape the tensor")
    if pads.tensor is None:
        shape = tuple(None if a in named else size for a, size in enumerate(x.ranked_shape))
        return put_around(t, x, spread_pads(t, pads, named, x.rank), fill, shape)
    ends = [[0, 0] for _ in range(x.rank)]
    for at, axis in enumerate(named):
        ends[axis] = [pads.ints()[at], pads.ints()[at + len(named)]]
    require(all(p >= 0 for pair in ends for p in pair), "negative pads. Cut the data with a Slice")
    shape = padded_shape(x, ends)
    if mode == "reflect":
        reaches = [(size, max(pair)) for size, pair in zip(x.ranked_shape, ends, strict=True)]
        is_near = all(far == 0 or (isinstance(d, int) and far < d) for d, far in reaches)
        require(is_near, "pads that reflect more than there is")
        return t.make("MIRROR_PAD", [x, t.ints(ends)], x.dtype, shape, mode=0)
    return put_around(t, x, t.ints(ends), fill, shape)


def put_around(t: TfliteBuilder, x: Value, ends: Value, fill: Value | None, shape: Shape):
    """A number around a tensor, 0 if ``fill`` is none."""
    if fill is None or not np.any(fill.array()):
        return t.make("PAD", [x, ends], x.dtype, shape)
    number = t.const(np.asarray(fill.array()).reshape(()))
    return t.make("PADV2", [x, ends, number], x.dtype, shape)


def spread_pads(t: TfliteBuilder, pads: Value, axes: Sequence[int], rank: int) -> Value:
    """Computed pads along some axes as a row for each axis, of what is before and behind."""
    count = len(axes)
    zero = [t.ints([0]), cast(t, pads, DType.INT32)]
    places = t.make("CONCATENATION", zero, DType.INT32, (2 * count + 1,), axis=0)
    before = [axes.index(axis) + 1 if axis in axes else 0 for axis in range(rank)]
    order = [[at, at and at + count] for at in before]
    return t.make("GATHER", [places, t.ints(order)], DType.INT32, (rank, 2), axis=0)
