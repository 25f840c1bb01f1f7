"""Shapes: those of other tensors, and tensors brought to them.

A size without a number is known by its name; MXNet takes it from a tensor that has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain

from serde.errors import ConversionError, require
from serde.ir.dim_expr import combine, elements_of, halves
from serde.ir.graph import Dim, DType, Value
from serde.spec import shape_functions

from ..target import held_as, number, writes

AT_ONCE = {"allowzero": (0,)}
Sizes = tuple[Dim, ...]
COMPUTED = "a dynamic shape"


def extent(s, size: Dim) -> Value:
    """``0, 1, 2 … size - 1`` as floats, where MXNet takes a size from: a tensor, not a number.

    Sizes that no tensor has are put together from those of their operands.
    """
    if isinstance(size, int):
        return s["_arange"](start=0, stop=size, dtype="float64")
    require(size is not None, COMPUTED)
    values = chain(s.inputs, (v for node in s.nodes for v in node.outputs))
    like = next((v for v in values if size in (v.shape or ())), None)
    if like is not None:
        return _counted(s, like, axis=like.known.index(size))
    found = halves(size)
    if found is None:
        raise ConversionError(f"needs the size {size}, which no tensor before it has")
    sign, left, right = found
    if sign in "+*":
        a, b = (s.ones_like(extent(s, d)) for d in (left, right))
        if sign == "+":
            return _counted(s, s.Concat(a, b, dim=0, num_args=2))
        each = s.broadcast_mul(s.expand_dims(a, axis=1), s.expand_dims(b, axis=0))
        return _counted(s, s.Reshape(each, shape=(-1,)))
    require(isinstance(right, int) and right > 0, f"the size {size}, computed of others")
    if sign == "-":
        return s.slice_axis(extent(s, left), axis=0, begin=0, end=-right)
    every = s.slice(extent(s, left), begin=(right - 1,), end=(None,), step=(right,))
    return _counted(s, every)


def _counted(s, like: Value, axis: int = 0) -> Value:
    return s["_contrib_arange_like"](s.Cast(like, dtype="float64"), axis=axis)


def spread(s, x: Value, sizes: Sequence[Dim]):
    """``x`` repeated along its axes of size 1, and new ones in front, up to ``sizes``."""
    kind, own = held_as(x.type), list(x.known) or [1]
    for _ in range(len(sizes) - len(own)):
        x = s.expand_dims(x, axis=0)
        own.insert(0, 1)
    wanted = [1] * (len(own) - len(sizes)) + list(sizes)
    pairs = list(zip(own, wanted, strict=True))
    fixed = [new if old == 1 and isinstance(new, int) and new != 1 else 0 for old, new in pairs]
    some = [axis for axis, size in enumerate(fixed) if size]
    for pair in (some[i : i + 2] for i in range(0, len(some), 2)):  # MXNet takes few axes at once
        x = s.broadcast_to(x, shape=tuple(d if a in pair else 0 for a, d in enumerate(fixed)))
    for axis, (old, new) in enumerate(pairs):
        if (new in (1, old) and new is not None) or fixed[axis]:
            continue
        counted = extent(s, new)
        if old == 1:
            x = s.broadcast_like(x, counted, lhs_axes=(axis,), rhs_axes=(0,))
        else:  # it may be 1 where the model runs, or the new size may
            x = times_ones(s, x, counted, axis, len(own), kind)
    return x


def along(s, row: Value, axis: int, rank: int) -> Value:
    """A tensor of one axis as that axis of ``rank`` axes."""
    return s.Reshape(row, shape=tuple(-1 if a == axis else 1 for a in range(rank)))  # type: ignore


def times_ones(s, x: Value, row: Value, axis: int, rank: int, kind: str) -> Value:
    """``x`` as long along an axis as ``row`` is, where either is of size 1."""
    ones = s.Cast(s.ones_like(row), dtype=kind)
    return s.broadcast_mul(x, along(s, ones, axis, rank))  # type: ignore[no-any-return]


def together(s, values: Sequence[Value]) -> list[Value]:
    """The values spread out to the shape they broadcast to, which the run tells."""
    rank = max(v.rank for v in values)
    wide, zeros = [], []
    for value in values:
        x = value
        for _ in range(rank - max(value.rank, 1)):
            x = s.expand_dims(x, axis=0)
        wide.append(x)
        zeros.append(s.Cast(s.zeros_like(x), dtype="float32"))
    full = reduce(s.broadcast_add, zeros)
    return [s.broadcast_like(x, full) for x in wide]


def common(shapes: Sequence[Sequence[Dim]]) -> list[Dim] | None:
    """The shape that shapes broadcast to; None where only the run tells."""
    rank = max(map(len, shapes))
    sizes: list[set[Dim]] = [set() for _ in range(rank)]
    for shape in shapes:
        for at, size in enumerate(reversed(shape), 1):
            sizes[-at] |= {size} - {1}
    told = all(len(s) <= 1 and None not in s for s in sizes)
    return [next(iter(s), 1) for s in sizes] if told else None


@writes("Expand")
def write_expand(s, x, shape=None, *, sizes: Sizes | None = None):
    """ONNX's shape broadcasts with the operand's own: 1 keeps an axis as it is."""
    sizes = elements_of(shape) if sizes is None else sizes
    if sizes is None:
        (length,) = shape.known if shape.rank == 1 else (None,)
        require(isinstance(length, int), COMPUTED)
        sizes = (None,) * length
    kind, rank = held_as(x.type), max(x.rank, 1, len(sizes))
    x = spread(s, x, [1 if d is None else d for d in sizes])
    for axis, size in enumerate(sizes):
        if size is None:
            turns = turns_of(s, s.slice_axis(shape, axis=0, begin=axis, end=axis + 1))
            x = times_ones(s, x, turns, rank - len(sizes) + axis, rank, kind)
    return x


@writes("Reshape", only=AT_ONCE)
def write_reshape(s, x, shape=None, *, sizes: Sizes | None = None):
    """0 and -1 mean the same to both; named sizes are said in MXNet's other codes.

    What these cannot say is made like a tensor of those sizes.
    """
    if sizes is None:
        return reshaped(s, x, elements_of(shape))
    full = shape_functions.reshaped(x.known, sizes, allowzero=False)
    require(None not in full, f"a shape {list(sizes)} of {list(x.known)}")
    found = codes(x.known, full)
    if found is not None:
        return s.Reshape(x, shape=tuple(found))
    one = s["_ones"](shape=(1,) * len(full), dtype="float32")
    one.dtype, one.shape = DType.FLOAT32, (1,) * len(full)
    return s.reshape_like(x, spread(s, one, full))


def reshaped(s, x: Value, sizes: Sizes | None):
    """Numbers stand for themselves, and one size that only the run tells is the rest."""
    require(sizes is not None, COMPUTED)
    open_ = [at for at, d in enumerate(sizes) if not isinstance(d, int)]
    kept = [
        at for at in open_ if at < x.rank and sizes[at] is not None and sizes[at] == x.known[at]
    ]
    plain = [0 if at in kept else d for at, d in enumerate(sizes)]
    if rest := [at for at in open_ if at not in kept]:
        require(len(rest) == 1 and -1 not in sizes, COMPUTED)
        plain[rest[0]] = -1
    return s.Reshape(x, shape=tuple(plain) or (1,))


def codes(own: Sequence[Dim], sizes: Sequence[Dim], inferred: bool = False) -> list[int] | None:
    """How ``Reshape`` says ``sizes``: 0 keeps a size, -3 joins two, -4 parts one, -1 is the rest.

    A number stands for itself; each code but -3 is about the next size of ``own``.
    """
    if not sizes:
        return []
    first, second = sizes[0], sizes[1] if len(sizes) > 1 else None
    ways: list[tuple[list[int], int, int]] = []
    if own and own[0] == first:
        ways.append(([0], 1, 1))
    if len(own) > 1 and combine("*", own[0], own[1]) == first:
        ways.append(([-3], 2, 1))
    if own and second is not None and combine("*", first, second) == own[0]:
        parts = [d if isinstance(d, int) else -1 for d in (first, second)]
        ways += [([-4, *parts], 1, 2)] * (parts != [-1, -1])
    if isinstance(first, int):
        ways.append(([first], 1, 1))
    ways += [([-1], 1, 1)] * (not inferred)
    for code, read, said in ways:
        rest = codes(own[read:], sizes[said:], inferred or code == [-1])
        if rest is not None:
            return code + rest
    return None


@writes("Shape")
def write_shape(s, x, *, start: int = 0, end: int | None = None):
    require(x.rank > 0, "the shape of a tensor of no axes")
    begin, last, _ = slice(start, end).indices(x.rank)
    require(begin < last, "no part of a shape")
    found = s.shape_array(x)
    found.shape = (x.rank,)
    return s.slice_axis(found, axis=0, begin=begin, end=last) if last - begin < x.rank else found


@writes("Size")
def write_size(s, x):
    return s.size_array(x)


@writes("Range")
def write_range(s, start, limit, delta, *, sizes: Sizes | None = None):
    """Steps up to a size that tensors have; ``sizes`` is the limit. Others are counted first."""
    first, step = number(start), number(delta)
    if sizes is None:
        return _range_of(s, start, limit, delta)
    whole = isinstance(first, int) and isinstance(step, int) and step > 0
    require(whole, "steps to a size of a tensor that are no integers")
    above = combine("+", combine("-", sizes[0], first), step - 1)
    steps = s["_mul_scalar"](extent(s, combine("/", above, step)), scalar=step)
    return s.Cast(s["_plus_scalar"](steps, scalar=first), dtype=start.type.value)


def _range_of(s, start: Value, limit: Value, delta: Value):
    """``start + i · delta`` below ``limit``."""
    kind = start.type.value
    first, last, step = (
        s.Reshape(s.Cast(v, dtype="float64"), shape=(1,)) for v in (start, limit, delta)
    )
    turns = turns_of(s, s.ceil(s.broadcast_div(s.broadcast_sub(last, first), step)))
    return s.Cast(s.broadcast_add(s.broadcast_mul(turns, step), first), dtype=kind)


def turns_of(s, count: Value) -> Value:
    """``0, 1, 2 … count - 1`` as floats: there are as many counts of numbers as the last one has
    before it, and one more.
    """
    top = s.Cast(s["_minus_scalar"](count, scalar=1), dtype="int64")
    return _counted(s, s["_npi_bincount"](top, has_weights=False))
