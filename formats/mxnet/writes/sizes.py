"""Shapes: those of other tensors, and tensors brought to them.

A size without a number is known by its name; MXNet takes it from a tensor that has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import ConversionError, require
from serde.graph import Dim, Value
from serde.symbolic import combine, elements_of

from .table import number, writes

AT_ONCE = {"allowzero": (0,)}
Sizes = tuple[Dim, ...]
COMPUTED = "a shape computed while the model runs"


def place_of(s, size: str) -> tuple[Value, int]:
    """A value that has the named size, and the axis it has it on."""
    values = (*s.inputs, *(v for node in s.nodes for v in node.outputs))
    found = next((v for v in values if size in (v.shape or ())), None)
    if found is None:
        raise ConversionError(f"needs the size {size}, which no tensor before it has")
    return found, found.known.index(size)


def spread(s, x: Value, sizes: Sequence[Dim]):
    """``x`` repeated along its axes of size 1, and new ones in front, up to ``sizes``."""
    own = list(x.known) or [1]
    for _ in range(len(sizes) - len(own)):
        x = s.expand_dims(x, axis=0)
        own.insert(0, 1)
    wanted = [1] * (len(own) - len(sizes)) + list(sizes)
    pairs = list(zip(own, wanted, strict=True))
    told = all(new in (1, old) or (old == 1 and new is not None) for old, new in pairs)
    require(told, COMPUTED)
    fixed = tuple(new if isinstance(new, int) and new != 1 else 0 for new in wanted)
    fixed = tuple(0 if new == old else new for new, old in zip(fixed, own, strict=True))
    some = [axis for axis, size in enumerate(fixed) if size]
    for pair in (some[i : i + 2] for i in range(0, len(some), 2)):  # MXNet takes few axes at once
        x = s.broadcast_to(x, shape=tuple(d if a in pair else 0 for a, d in enumerate(fixed)))
    for axis, (old, new) in enumerate(pairs):
        if isinstance(new, str) and old != new:
            like, at = place_of(s, new)
            x = s.broadcast_like(x, like, lhs_axes=(axis,), rhs_axes=(at,))
    return x


def common(shapes: Sequence[Sequence[Dim]]) -> list[Dim]:
    """The shape that shapes broadcast to."""
    rank = max(map(len, shapes))
    sizes: list[set[Dim]] = [set() for _ in range(rank)]
    for shape in shapes:
        for at, size in enumerate(reversed(shape), 1):
            sizes[-at] |= {size} - {1}
    require(all(len(s) <= 1 and None not in s for s in sizes), COMPUTED)
    return [next(iter(s), 1) for s in sizes]


@writes("Expand")
def write_expand(s, x, shape=None, *, sizes: Sizes | None = None):
    """ONNX's shape broadcasts with the operand's own: 1 keeps an axis as it is."""
    sizes = elements_of(shape) if sizes is None else sizes
    require(sizes is not None, COMPUTED)
    return spread(s, x, sizes)


@writes("Reshape", only=AT_ONCE)
def write_reshape(s, x, shape=None, *, sizes: Sizes | None = None):
    """0 and -1 mean the same to both; named sizes are said in MXNet's other codes."""
    if sizes is None:
        known = elements_of(shape)
        require(known is not None and all(isinstance(d, int) for d in known), COMPUTED)
        return s.Reshape(x, shape=known or (1,))
    found = codes(x.known, sizes)
    require(found is not None, f"a shape {list(sizes)} of {list(x.known)}")
    return s.Reshape(x, shape=tuple(found))


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
    """Whole steps from 0 up to a size that a tensor has."""
    plain = sizes is not None and number(start) == 0 and number(delta) == 1
    require(plain and isinstance(sizes[0], str), "a range computed while the model runs")
    like, at = place_of(s, sizes[0])
    steps = s["_contrib_arange_like"](s.Cast(like, dtype="float32"), axis=at)
    return s.Cast(steps, dtype=start.type.value)
