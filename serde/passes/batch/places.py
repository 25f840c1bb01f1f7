"""The place of the batch in a tensor, and where a Reshape moves it.

Sizes are products: a number and names, so that those of two shapes are compared exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from serde.ir.dim_expr import combine, split_operands
from serde.ir.graph import Dim, Shape


class Size(NamedTuple):
    """A size as a product of a number and of names, which are sorted."""

    number: int
    names: tuple[str, ...] = ()

    def __mul__(self, other: Size) -> Size:  # type: ignore[override]
        return Size(self.number * other.number, tuple(sorted(self.names + other.names)))

    def divide(self, other: Size) -> Size | None:
        """The quotient, where it is one whatever the names stand for."""
        if not other.number or self.number % other.number:
            return None
        if not other.names:
            return Size(self.number // other.number, self.names)
        rest = Counter(self.names)
        rest.subtract(other.names)
        if any(n < 0 for n in rest.values()):
            return None
        return Size(self.number // other.number, tuple(sorted(rest.elements())))

    @property
    def dim(self) -> Dim:
        """The size as shapes have it."""
        dim: Dim = 1
        for name in self.names:
            dim = combine("*", dim, name)
        return combine("*", dim, self.number)


ONE = Size(1)


class Place(NamedTuple):
    """The axis that has the batch: ``outer`` × batch × ``inner`` indices, in row-major order."""

    axis: int
    outer: Size = ONE
    inner: Size = ONE

    @property
    def is_alone(self) -> bool:
        """Whether the axis has nothing but the batch."""
        return self.outer == ONE == self.inner

    def size(self, batch: int | str) -> Size:
        """The size of the axis at a batch."""
        factor = Size(batch) if isinstance(batch, int) else Size(1, (batch,))
        return self.outer * factor * self.inner

    def move(self, axis: int) -> Place:
        """The same along another axis."""
        return Place(axis, self.outer, self.inner)


def read_size(dim: Dim) -> Size | None:
    """A dimension as a product; None where it is unknown."""
    if dim is None:
        return None
    if isinstance(dim, int):
        return Size(dim)
    parts = split_operands(dim)
    if parts is None or parts[0] != "*":
        return Size(1, (dim,))
    left, right = read_size(parts[1]), read_size(parts[2])
    return None if left is None or right is None else left * right


def multiply(dims: Iterable[Dim]) -> Size | None:
    """The product of dimensions; None where one is unknown."""
    total = ONE
    for dim in dims:
        size = read_size(dim)
        if size is None:
            return None
        total *= size
    return total


def has_size(dim: Dim, size: Size) -> bool:
    """Whether a dimension is of a size."""
    return read_size(dim) == size


def find_reshaped_places(before: Shape, place: Place, after: Shape, batch: int) -> list[Place]:
    """Where a Reshape may have moved the batch, what is most natural first.

    Elements keep their order, so that the elements outside the batch, and those inside, stay. At
    a batch of 1 several axes of the result may be it.
    """
    above = multiply(before[: place.axis])
    below = multiply(before[place.axis + 1 :])
    outside = None if above is None else above * place.outer
    inside = None if below is None else below * place.inner
    candidates = (
        _split_axis(after, axis, outside, inside, Size(batch)) for axis in range(len(after))
    )
    places = [p for p in candidates if p is not None]
    return sorted(places, key=lambda p: _rank_place(before, place, after, p))


def find_moved_places(after: Shape, exact: Sequence[Place], is_thorough: bool) -> list[Place]:
    """Axes to which a Transpose before the Reshape has to move a batch of 1.

    Tools that simplify models write a Transpose of an axis of 1 as a Reshape, and then two as one.
    Axes of 1 are natural; ``is_thorough`` adds those where the batch is in front of other sizes.
    """
    sizes = ((axis, dim) for axis, dim in enumerate(after) if isinstance(dim, int))
    places = (Place(axis, ONE, Size(dim)) for axis, dim in sizes if dim == 1 or is_thorough)
    return [place for place in places if place not in exact]


def _split_axis(
    shape: Shape, axis: int, outside: Size | None, inside: Size | None, batch: Size
) -> Place | None:
    """The batch along an axis, where so many elements may be outside and inside of it."""
    size, above = read_size(shape[axis]), multiply(shape[:axis])
    if size is None:
        return None
    if outside is not None and above is not None:
        outer = outside.divide(above)
        inner = None if outer is None else size.divide(outer * batch)
    else:
        below = multiply(shape[axis + 1 :])
        inner = None if inside is None or below is None else inside.divide(below)
        outer = None if inner is None else size.divide(inner * batch)
    return None if outer is None or inner is None else Place(axis, outer, inner)


def _rank_place(before: Shape, old: Place, after: Shape, new: Place) -> tuple[int, bool, bool, int]:
    """Lower is more natural: the batch alone, behind or before the axes it was with."""
    factors = (new.outer != ONE) + (new.inner != ONE)
    is_behind = old.axis == new.axis and before[: old.axis] == after[: new.axis]
    is_before = _are_merged(before[old.axis + 1 :], after[new.axis + 1 :])
    return factors, not is_before, not is_behind, new.axis


def _are_merged(before: Shape, after: Shape) -> bool:
    """Whether axes stay, or become fewer by being joined."""
    if before == after:
        return True
    sizes = [read_size(d) for d in before]
    for dim in after:
        total, size = ONE, read_size(dim)
        while sizes and total != size:
            total *= sizes.pop(0) or Size(0)
        if total != size:
            return False
    return all(size == ONE for size in sizes)
