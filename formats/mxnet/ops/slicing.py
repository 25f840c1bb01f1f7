"""Slice and Split: parts of a tensor along its axes."""

from __future__ import annotations

from itertools import accumulate

from serde.errors import require
from serde.ir import arrays
from serde.ir.budget import active_budget
from serde.ir.dim_expr import combine
from serde.ir.geometry import axis_of, slice_along
from serde.ir.graph import Dim, Value, show_shape
from serde.rewrite.rules import Hint

from ..rules import Bounds, reads
from ..target import legalizations, writes
from .dynamic_shapes import Sizes, align_to_axis, emit_arange

FAR = 2**31 - 1  # an end beyond any axis
PART = 512  # bytes, about, that a value of a graph takes
MOST_AXES = 5  # that MXNet's slice takes
FIX = "Give the sizes of the inputs as numbers (--input)."


def flatten_without_axis(g, x: Value, axis: int | None) -> tuple[Value, int]:
    """``x`` and the axis meant; without one, ``x`` flattened."""
    if axis is None:
        return g.Reshape(x, [-1]), 0
    return x, axis_of(axis, x.rank)


@reads("slice")
def read_slice(g, x, *, begin: Bounds, end: Bounds, step: Bounds = ()):
    """Axes beyond ``begin`` are left whole; those beyond ``step`` have a step of 1."""
    count = len(begin)
    require(len(end) == count, f"begin={begin} and end={end} differ in length")
    require(len(step) <= count, f"step={step} is longer than begin={begin}")
    require(count <= x.rank, f"begin={begin} of {x.rank} axes")
    require(0 not in step, f"step={step}, and no step is 0")
    steps = [s or 1 for s in step] + [1] * (count - len(step))
    starts = [(0 if s > 0 else FAR) if b is None else b for b, s in zip(begin, steps, strict=True)]
    ends = [(FAR if s > 0 else -FAR) if e is None else e for e, s in zip(end, steps, strict=True)]
    return g.Slice(x, starts, ends, list(range(count)), steps)


@reads("slice_axis")
def read_slice_axis(g, x, *, axis: int, begin: int, end: int | None):
    return g.slice_axis(x, axis_of(axis, x.rank), begin, FAR if end is None else end)


@reads("slice_like")
def read_slice_like(g, x, like, *, axes=()):
    """An axis may be named more than once."""
    return g.slice_like(x, like, axes=tuple(dict.fromkeys(axis_of(a, x.rank) for a in axes)))


@reads("SliceChannel")
def read_split(g, x, *, num_outputs: int, axis=1, squeeze_axis=False):
    axis = axis_of(axis, x.rank)
    parts = split_equally(g, x, axis, num_outputs)
    return tuple(g.Squeeze(p, [axis]) for p in parts) if squeeze_axis else tuple(parts)


def split_equally(g, x: Value, axis: int, count: int):
    """``count`` parts of one size."""
    require(count > 0, f"a split into {count} parts")
    size = x.ranked_shape[axis]
    if count == 1:
        return (x,)
    if not isinstance(size, int):
        return g.Split(x, num_outputs=count, axis=axis, outputs=count)
    require(size % count == 0, f"{size} does not split into {count} equal parts")
    return g.Split(x, [size // count] * count, axis=axis, outputs=count)


def split_evenly(g, x: Value, axis: int, count: int):
    """``count`` parts, of which the first are longer by one where they are not equal."""
    require(count > 0, f"a split into {count} parts")
    if count == 1:
        return (x,)
    active_budget().charge(PART * count, f"a split into {count} parts")
    size = x.ranked_shape[axis]
    if isinstance(size, int):
        return g.Split(x, list(even_sizes(size, count)), axis=axis, outputs=count)
    up = list(range(count - 1, -1, -1))
    return g.Split(x, g.Div(g.Add(g.size_of(x, axis), up), count), axis=axis, outputs=count)


def even_sizes(size: Dim, count: int) -> Sizes:
    """The sizes of the parts that ``split_evenly`` gives."""
    return tuple(combine("/", combine("+", size, up), count) for up in range(count - 1, -1, -1))


@writes("Slice")
def write_slice(s, x, starts, ends, axes, steps, *, sizes: Hint[Sizes | None] = None):
    """Ends may be named: they are sizes of tensors, to which the operand is cut."""
    bounds = [v if v is None else v.ints() for v in (starts, ends, axes, steps)]
    bounds[1] = sizes if sizes is not None else bounds[1]
    begin: list[int | None] = [None] * x.rank
    end, step, cut = [*begin], [*begin], x
    for first, last, axis, by in zip(*bounds, strict=True):
        step[axis] = by
        if not isinstance(last, str):
            begin[axis], end[axis] = bounds_of(x.ranked_shape[axis], first, last, by)
            continue
        require(by > 0 and first >= 0, "a slice from its end up to a dynamic size")
        begin[axis] = first
        if last != x.ranked_shape[axis]:
            like = align_to_axis(s, emit_arange(s, last), axis, x.rank)
            cut = s.slice_like(cut, like, axes=(axis,))
    if x.rank <= MOST_AXES:
        return s.slice(cut, begin=tuple(begin), end=tuple(end), step=tuple(step))
    require(not any(by not in (None, 1) for by in step), f"{step=} of {x.rank} axes: MXNet takes "
            f"steps along tensors of {MOST_AXES} axes. Reshape the tensor to fewer.")  # fmt: skip
    for axis, (first, last) in enumerate(zip(begin, end, strict=True)):
        if first is not None:
            cut = s.slice_axis(cut, axis=axis, begin=first, end="None" if last is None else last)
    return cut


def bounds_of(size: Dim, first: int, last: int, by: int) -> tuple[int | None, int | None]:
    """Where a slice begins and ends: within an axis of known size, as 1.5 asks for."""
    if isinstance(size, int):
        first, last, _ = slice_along(size, first, last, by).indices(size)
        require(len(range(first, last, by)), "a slice without elements")
        return first, None if last < 0 else last
    open_end = last >= FAR or (by < 0 and last <= -FAR)
    return None if by < 0 and first >= FAR else first, None if open_end else last


@writes("Split")
def write_split(
    s, x, parts=None, *, axis, num_outputs: int | None = None, sizes: Hint[Sizes | None] = None
):
    """One part may be of a size with a name; parts of several such are as long as MXNet's own."""
    size = x.ranked_shape[axis]
    if parts is None and sizes is None and num_outputs is not None:
        sizes = even_sizes(size, num_outputs)
    if parts is None and sizes is not None and sizes == even_sizes(size, len(sizes)):
        count = len(sizes)
        return s["_split_v2"](x, indices=(), axis=axis, sections=count, outputs=count)
    is_known = sizes is not None or (parts is not None and parts.tensor is not None)
    require(is_known, f"a split into parts of sizes that are computed. {FIX}")
    counts = sizes or parts.ints()
    named = [at for at, n in enumerate(counts) if not isinstance(n, int)]
    require(len(named) < 2, f"a split of {size} into parts of {show_shape(counts)}. " + FIX)
    require(min((n for n in counts if isinstance(n, int)), default=1) > 0,
            "a split with a part without elements")  # fmt: skip
    turn = named[0] if named else len(counts)  # parts behind are counted from the end
    ends = [sum(counts[: at + 1]) if at < turn else -sum(counts[at + 1 :]) or "None"
            for at in range(len(counts))]  # fmt: skip
    starts = [sum(counts[:at]) if at <= turn else -sum(counts[at:]) for at in range(len(counts))]
    return tuple(
        s.slice_axis(x, axis=axis, begin=b, end=e) for b, e in zip(starts, ends, strict=True)
    )


@legalizations("Split")
def legalize_split(g, x, sizes=None, *, axis, num_outputs: int | None = None, outputs: int = 1):
    """Parts without elements are constants; the sizes of equal parts follow from the whole."""
    if sizes is not None and sizes.tensor is None:
        return None
    counts = None if sizes is None else sizes.ints()
    if counts is None:
        size = x.ranked_shape[axis]
        if outputs <= 2 and not isinstance(size, int):
            return None
        require(isinstance(size, int), f"a split of {size} into {outputs} parts, of which the last "
                f"is the smallest. {FIX}")  # fmt: skip
        part = -(-size // outputs)
        counts = [max(0, min(part, size - i * part)) for i in range(outputs)]
    starts = [0, *accumulate(counts[:-1])]
    return tuple(
        g.slice_axis(x, axis, b, b + n) if n else make_empty_part(g, x, axis)
        for b, n in zip(starts, counts, strict=True)
    )


def make_empty_part(g, x: Value, axis: int):
    """A part of ``x`` without elements."""
    sizes = [1 if not isinstance(d, int) else d for d in x.ranked_shape]
    sizes[axis] = 0
    return g.const(arrays.zeros(sizes, x.type.numpy))
