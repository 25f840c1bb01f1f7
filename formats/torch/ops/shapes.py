"""Operators that change shapes and pick elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import Ints, slice_along
from serde.ir.graph import DType, Shape, Value
from serde.version_converter.adapters.slicing import part_sizes

from ..target import TorchBuilder, legalizations, set_type, writes
from .elementwise import read_number

FAR = 1 << 62


def list_elements(t: TorchBuilder, shape: Value):
    """The elements of a computed shape as Python integers."""
    return t[".tolist"](shape)


def sizes_or_list(t: TorchBuilder, shape: Value, *operands: Value):
    """The sizes that a shape holds, as arguments."""
    sizes = t.find_sizes(shape, *operands)
    return list_elements(t, shape) if sizes is None else sizes


def index_elements(t: TorchBuilder, sizes: Value, count: int, *operands: Value):
    """The numbers that a tensor of ``count`` holds, one by one where they are computed."""
    elements = t.find_sizes(sizes, *operands)
    if elements is None:
        numbers = list_elements(t, sizes)
        return [t["[]"](numbers, place) for place in range(count)]
    return elements


@writes("Reshape")
def write_reshape(t: TorchBuilder, x: Value, shape: Value, *, allowzero: int):
    maker = t.maker(x, ".reshape") or t.maker(x, ".unsqueeze")
    base = maker.inputs[0] if maker is not None and maker.inputs[0] is not None else x
    sizes = t.list_sizes(shape, base, x)
    if sizes is None:
        return t[".reshape"](x, list_elements(t, shape if allowzero else fill_zeros(t, x, shape)))
    if not allowzero:
        sizes = [t.size(x, at) if is_zero(d) else d for at, d in enumerate(sizes)]
    if sizes.count(None) == 1 and -1 not in sizes:
        sizes[sizes.index(None)] = -1
    if None in sizes:
        return t[".reshape"](x, list_elements(t, shape))
    elements = shape_data_of(shape)
    if not allowzero and elements is not None:
        elements = tuple(x.ranked_shape[at] if d == 0 else d for at, d in enumerate(elements))
    if elements is not None and _is_same(base.shape, elements):
        return base
    return t[".reshape"](base, *sizes) if sizes else t[".reshape"](base, ())


def fill_zeros(t: TorchBuilder, x: Value, shape: Value) -> Value:
    """A shape that is computed of data, where 0 stands for the operand's own size."""
    count = shape.ranked_shape[0]
    if not isinstance(count, int):
        return shape
    sizes = [t.size(x, at) if at < x.rank else 0 for at in range(count)]
    kept = t.torch.tensor(sizes, dtype=shape.type, device=t.device())
    return t.torch.where(t["=="](shape, 0), kept, shape)


def is_zero(size: Any) -> bool:
    """Whether a size is the number 0."""
    return isinstance(size, int) and size == 0


def _is_same(shape: Shape | None, wanted: Shape) -> bool:
    """Whether a shape with one size left open is the one there is."""
    if shape is None or len(shape) != len(wanted) or None in shape:
        return False
    return sum(d != w for d, w in zip(shape, wanted, strict=True) if w != -1) == 0 and (
        wanted.count(-1) < 2 and None not in wanted
    )


@writes("Transpose")
def write_transpose(t: TorchBuilder, x: Value, *, perm: Ints):
    maker = t.maker(x, ".permute")
    if maker is not None:
        before: Any = maker.attrs["args"][1:]  # type: ignore[index]
        assert maker.inputs[0] is not None
        x, perm = maker.inputs[0], tuple(int(before[axis]) for axis in perm)
    maker = t.maker(x, ".unsqueeze")
    if maker is not None and maker.inputs[0] is not None:
        axis: Any = maker.attrs["args"][1]  # type: ignore[index]
        if [a for a in perm if a != axis] == [a for a in range(x.rank) if a != axis]:
            return t[".unsqueeze"](maker.inputs[0], list(perm).index(axis))
    return x if tuple(perm) == tuple(range(len(perm))) else t[".permute"](x, *perm)


@writes("Flatten")
def write_flatten(t: TorchBuilder, x: Value, *, axis: int):
    if axis == 0:
        return t[".reshape"](x, 1, -1)
    lead = x if axis == 1 else t[".flatten"](x, 0, axis - 1)
    if axis == x.rank:
        return t[".reshape"](x, -1, 1)
    return t[".flatten"](lead, 1) if x.rank - axis > 1 else lead


def place_axes(x: Value, axes: Ints, added: int = 0) -> Ints:
    """Axes counted from the front, of ``x`` with ``added`` ones; one alone may stay as it is.

    The rank may be unknown where no axis is counted from the end, or there is only one.
    """
    if x.shape is None and (len(axes) == 1 or min(axes, default=0) >= 0):
        return axes
    return tuple(a % (x.rank + added) for a in axes)


@writes("Squeeze")
def write_squeeze(t: TorchBuilder, x: Value, axes: Value | None = None):
    if axes is None and not x.is_static:
        return t[".squeeze"](x)
    ones = (axis for axis, size in enumerate(x.shape or ()) if size == 1)
    named = axes.ints() if axes is not None else tuple(ones)
    maker = t.maker(x, ".unsqueeze")
    if maker is not None and len(named) == 1 and maker.attrs["args"][1:] == place_axes(x, named):
        return maker.inputs[0]
    return t[".squeeze"](x, named[0] if len(named) == 1 else named) if named else x


@writes("Unsqueeze")
def write_unsqueeze(t: TorchBuilder, x: Value, axes: Value):
    for axis in sorted(place_axes(x, axes.ints(), len(axes.ints()))):
        x = t[".unsqueeze"](x, axis)
    return x


@writes("Expand")
def write_expand(t: TorchBuilder, x: Value, shape: Value):
    elements = shape_data_of(shape)
    sizes = t.find_sizes(shape, x)
    if elements is None and sizes is not None:
        elements = tuple(None if isinstance(d, Value) else d for d in sizes)
    if elements is None or sizes is None:
        shapes = t.torch.broadcast_shapes(t.shape(x), t.tuple(list_elements(t, shape)))
        return t[".expand"](x, shapes)
    rank = max(x.rank, len(elements))
    source_sizes = (*[1] * (rank - x.rank), *x.ranked_shape)
    wanted = [*[1] * (rank - len(elements)), *elements]
    placed = [*[1] * (rank - len(elements)), *sizes]
    result: list[Any] = []
    for at, (have, want, size) in enumerate(zip(source_sizes, wanted, placed, strict=True)):
        if want == 1 or (want == have and want is not None):
            result.append(-1 if at >= rank - x.rank else size)
        elif have == 1:
            result.append(size)
        else:
            shapes = t.torch.broadcast_shapes(t.shape(x), tuple(sizes))
            return t[".expand"](x, shapes)
    return t[".expand"](x, *result) if result else x


@writes("Concat")
def write_concat(t: TorchBuilder, *values: Value, axis: int):
    return t.torch.cat(list(values), dim=axis) if len(values) > 1 else values[0]


@legalizations("Split")
def legalize_split(g, x, parts=None, *, axis: int, num_outputs: int | None = None,
                   outputs: int = 1):  # fmt: skip
    """Parts of the same size, the last maybe smaller, are counted out."""
    if parts is not None:
        return None
    size, count = x.ranked_shape[axis], num_outputs or outputs
    if not isinstance(size, int):
        parts = part_sizes(g, g.Shape(x, start=axis, end=axis + 1), count)
    else:
        each = -(-size // count)
        parts = [max(0, min(each, size - at * each)) for at in range(count)]
    return g.Split(x, parts, axis=axis, outputs=outputs)


@writes("Split", ignore=("num_outputs",))
def write_split(t: TorchBuilder, x: Value, split: Value, *, axis: int):
    count = split.ranked_shape[0]
    require(isinstance(count, int), "a number of parts that is computed")
    if count == 1:
        return (x,)
    return t[".split"](x, sizes_or_list(t, split, x), dim=axis, outputs=count)


@writes("Slice")
def write_slice(t: TorchBuilder, x: Value, starts: Value, ends: Value, axes: Value | None = None,
                steps: Value | None = None):  # fmt: skip
    first, last = (t.find_sizes(v, x) for v in (starts, ends))
    named = axes.ints() if axes is not None else tuple(range(len(first or last or ())))
    step = steps.ints() if steps is not None else (1,) * len(named)
    if first is None:
        first = tuple(t.int(t["[]"](starts, at)) for at in range(len(named)))
    if last is None:
        last = tuple(t.int(t["[]"](ends, at)) for at in range(len(named)))
    index: list[Any] = [slice(None)] * x.rank
    for axis, begin, end, by in zip(named, first, last, step, strict=True):
        axis %= x.rank
        if by < 0:
            x = cut_backwards(t, x, axis, begin, end, by)
            continue
        begin = None if begin == 0 and isinstance(begin, int) else begin
        size = x.ranked_shape[axis]
        beyond = isinstance(end, int) and end >= (size if isinstance(size, int) else FAR >> 31)
        index[axis] = slice(begin, None if beyond else end, None if by == 1 else by)
    while index and index[-1] == slice(None):
        index.pop()
    return t["[]"](x, *index) if index else x


def cut_backwards(t: TorchBuilder, x: Value, axis: int, begin, end, by: int) -> Value:
    """Elements from the back: the axis flipped, and cut as far from its other end."""
    require(isinstance(begin, int) and isinstance(end, int), "a cut backwards between sizes")
    size = x.ranked_shape[axis]
    if isinstance(size, int):
        begin, end, _ = slice_along(size, begin, end, by).indices(size)
        begin, end = size - 1 - begin, size - 1 - end
    else:
        last = t["-"](t.size(x, axis), 1)
        ends = [t["max"](t["-"](last, e), 0) if e >= 0 else -1 - e for e in (begin, end)]
        begin = t["min"](ends[0], last) if begin < -1 else ends[0]
        end = FAR if end < -FAR >> 31 else ends[1]
    flipped = set_type(t.torch.flip(x, (axis,)), x.dtype, x.shape)
    is_whole = isinstance(end, int) and end >= (size if isinstance(size, int) else FAR)
    if isinstance(begin, int) and begin == 0 and is_whole and by == -1:
        return flipped
    part = slice(begin, None if is_whole else end, None if by == -1 else -by)
    index = [slice(None)] * axis + [part]
    return set_type(t["[]"](flipped, *index), x.dtype, x.shape)


@writes("Tile")
def write_tile(t: TorchBuilder, x: Value, repeats: Value):
    sizes = t.find_sizes(repeats, x)
    if sizes is None:
        return t[".repeat"](x, list_elements(t, repeats))
    return t[".repeat"](x, *sizes) if sizes else x


@writes("Pad")
def write_pad(t: TorchBuilder, x: Value, pads: Value, fill: Value | None = None,
              axes: Value | None = None, *, mode: str):  # fmt: skip
    named = [a % x.rank for a in axes.ints()] if axes is not None else list(range(x.rank))
    elements = index_elements(t, pads, 2 * len(named), x)
    ends: list[Any] = [(0, 0)] * x.rank
    for at, axis in enumerate(named):
        ends[axis] = (elements[at], elements[at + len(named)])
    while ends and ends[0] == (0, 0):
        ends.pop(0)
    flat = tuple(p for pair in reversed(ends) for p in pair)
    if not flat:
        return x
    if mode != "constant":
        return t.F.pad(x, flat, mode={"edge": "replicate"}.get(mode, mode))
    value = None
    if fill is not None:
        number = read_number(fill) if fill.tensor is not None else t[".item"](fill)
        value = None if isinstance(number, (int, float)) and number == 0 else number
    return t.F.pad(x, flat, value=value)


@writes("Shape", ignore=())
def write_shape(t: TorchBuilder, x: Value, *, start: int = 0, end: int | None = None):
    sizes = tuple(t.size(x, axis) for axis in range(x.rank)[start:end])
    return t.torch.tensor(list(sizes), dtype=DType.INT64, device=t.device())


@legalizations("Range")
def legalize_range(g, start, limit, delta):
    """PyTorch refuses ranges that lead away from their end: the elements are counted."""
    if delta.tensor is not None:
        return None
    ends = [g.cast(v, DType.FLOAT64) for v in (start, limit, delta)]
    count = g.Max(g.Ceil(g.Div(g.Sub(ends[1], ends[0]), ends[2])), 0.0)
    numbers = g.cast_like(g.Range(0, g.cast(count, DType.INT64), 1), start)
    return g.Add(g.Mul(numbers, delta), start)


@writes("Range")
def write_range(t: TorchBuilder, start: Value, limit: Value, delta: Value):
    ends = [number_of(t, v) for v in (start, limit, delta)]
    is_known = isinstance(ends[2], (int, float))
    counts = is_known and is_zero(ends[0]) and t.maker(ends[1], "size") is not None
    if is_known and not counts and not all(isinstance(e, (int, float)) for e in ends):
        # no range is an error
        ends[1] = t["max" if ends[2] > 0 else "min"](*ends[:2])
    if is_known and ends[2] == 1:
        ends.pop()
        if isinstance(ends[0], (int, float)) and ends[0] == 0:
            ends.pop(0)
    return t.torch.arange(*ends, dtype=start.type, device=t.device())


def number_of(t: TorchBuilder, value: Value):
    """A tensor of one element as a Python number."""
    if value.tensor is not None:
        return read_number(value)
    sizes = t.find_sizes(value)
    return t[".item"](value) if sizes is None else sizes[0]


@writes("ConstantOfShape")
def write_full(t: TorchBuilder, shape: Value, *, value=None):
    number = np.float32(0) if value is None else np.asarray(value.load()).reshape(())
    dtype = DType.of(number.dtype)
    sizes = sizes_or_list(t, shape)
    return t.torch.full(sizes, number.item(), dtype=dtype, device=t.device())


@writes("NonZero")
def write_non_zero(t: TorchBuilder, x: Value):
    return t[".permute"](t.torch.nonzero(x), 1, 0)


@writes("Trilu")
def write_trilu(t: TorchBuilder, x: Value, k: Value | None = None, *, upper: int):
    shift = 0 if k is None else number_of(t, k)
    is_zero = isinstance(shift, int) and shift == 0
    return t["torch.triu" if upper else "torch.tril"](x, *(() if is_zero else (shift,)))


@writes("Compress")
def write_compress(t: TorchBuilder, x: Value, condition: Value, *, axis: int | None = None):
    flat = x if axis is not None else t[".flatten"](x)
    index = t[".flatten"](t.torch.nonzero(condition))
    return t.torch.index_select(flat, axis or 0, index)
