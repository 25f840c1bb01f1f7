"""Sizes that must be equal for a model to run: those that meet in one axis of a tensor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from serde.ir.graph import Dim, Node, Shape, Value

from .merge_shapes import is_size
from .propagate import Propagation

NAME = re.compile(r"[A-Za-z_]\w*")  # of a size, and no expression


def find_equal_sizes(nodes: Iterable[Node], shapes: dict[Value, Shape]) -> list[list[str]]:
    """The names of sizes in groups that operators need equal, where ``shapes`` are of inputs.

    The data of a recurrent layer and its begin states have one batch, operands of a sum one shape.
    """
    meetings = _Meetings(nodes, dict(shapes))
    meetings.run()
    return [group for group in meetings.groups.values() if len(group) > 1]


class _Meetings(Propagation):
    """A propagation that notes where two names of sizes are of one axis."""

    def __init__(self, nodes: Iterable[Node], shapes: dict[Value, Shape]) -> None:
        super().__init__(nodes, shapes)
        self.groups: dict[str, list[str]] = {}  # by the first name of each
        self._first: dict[str, str] = {}

    def _learn(
        self, value: Value, shape: Shape, changed: dict[Value, Shape | None] | None
    ) -> bool:  # fmt: skip
        for one, other in _list_pairs(self.shape_of(value), shape):
            self._join(one, other)
        return super()._learn(value, shape, changed)

    def _join(self, one: str, other: str) -> None:
        first, second = (self._first.setdefault(name, name) for name in (one, other))
        if first != second:
            group = self.groups.setdefault(first, [first])
            group += self.groups.pop(second, [second])
            self._first.update(dict.fromkeys(group, first))


def _list_pairs(known: Shape | None, shape: Shape) -> Iterator[tuple[str, str]]:
    """The two names of each axis that has two."""
    if known is not None and len(known) == len(shape):
        for one, other in zip(known, shape, strict=True):
            if one != other and _is_name(one) and _is_name(other):
                yield str(one), str(other)


def _is_name(size: Dim) -> bool:
    return isinstance(size, str) and is_size(size) and NAME.fullmatch(size) is not None
