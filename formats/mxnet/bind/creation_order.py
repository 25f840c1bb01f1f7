"""The order in which Gluon made the blocks of a symbol's variables, found with the saved arrays.

A block's parameters lie side by side in a file of ``save_parameters``, those of one class in the
order of their numbers (``dense0``, ``dense1``). Blocks of different classes may come in any order:
that in which layers fit in kinds and shapes, and blocks begin and end where those of the file do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

MOST_STEPS = 20_000
EXAMPLES = 4  # orders that are equally good

Path = tuple[str, ...]


class Order(NamedTuple):
    """Layers as a linked list, last first, and how many blocks and words fit besides."""

    score: int
    last: Any  # (the layers before, a layer), or None

    def layers(self) -> list[Path]:
        backwards, rest = [], self.last
        while rest is not None:
            rest, layer = rest
            backwards.append(layer)
        return backwards[::-1]


class _Block:
    """A layer of its own, if it has one, and the blocks in it, by the name without the number."""

    def __init__(self) -> None:
        self.layer: Path | None = None
        self.children: dict[str, _Block] = {}
        self.size = 0

    def families(self) -> list[list[_Block]]:
        return [[self.children[name] for name in some] for some in _group_numbered(self.children)]


def _group_numbered(names: Iterable[str]) -> list[list[str]]:
    """Names that differ in the number at their end, by that number."""
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.rstrip("0123456789"), []).append(name)
    return [sorted(some, key=lambda n: (len(n), n)) for some in families.values()]


class CreationOrders:
    """The best orders of layers; none where no order fits, or the search takes too long.

    ``places`` are the paths of the file's layers; ``fit`` tells how well a layer fits at a place,
    None where it does not.
    """

    def __init__(
        self, layers: Iterable[Path], places: Sequence[Path],
        fit: Callable[[Path, int], int | None],
    ) -> None:  # fmt: skip
        self.root: _Block = _Block()
        self.fit, self.steps = fit, 0
        self.placed: dict[tuple[_Block, int], list[Order]] = {}
        for path in layers:
            self._add(path)
        ranges: dict[Path, tuple[int, int]] = {}
        for at, place in enumerate(places):
            for depth in range(1, len(place) + 1):
                start, _ = ranges.get(place[:depth], (at, at))
                ranges[place[:depth]] = start, at + 1
        self.ranges = {(a, b) for a, b in ranges.values() if b > a + 1}

    def _add(self, path: Path) -> None:
        block = self.root
        block.size += 1
        for name in path:
            block = block.children.setdefault(name, _Block())
            block.size += 1
        block.layer = path

    def find(self) -> list[list[Path]]:
        """Orders that are equally good, a few of them."""
        orders = self._place(self.root, 0)
        return [] if self.steps > MOST_STEPS else [order.layers() for order in orders]

    def _place(self, block: _Block, start: int) -> list[Order]:
        """The best orders of a block whose first layer is at ``start``."""
        if (block, start) not in self.placed:
            self.placed[block, start] = self._find_orders(block, start)
        return self.placed[block, start]

    def _find_orders(self, block: _Block, start: int) -> list[Order]:
        end = start + block.size
        if any(a < start < b < end or start < a < end < b for a, b in self.ranges):
            return []
        score = int((start, end) in self.ranges)
        orders, at = [Order(score, None)], start
        if block.layer is not None:
            fit = self.fit(block.layer, start)
            if fit is None:
                return []
            orders, at = [Order(score + fit, (None, block.layer))], start + 1
        families = block.families()
        states = {(0,) * len(families): (at, orders)}
        for _ in block.children:
            states = self._append_child(families, states)
        return [order for _, orders in states.values() for order in orders]

    def _append_child(
        self, families: Sequence[Sequence[_Block]],
        states: dict[tuple[int, ...], tuple[int, list[Order]]],
    ) -> dict[tuple[int, ...], tuple[int, list[Order]]]:  # fmt: skip
        """All ways to go on with the next block of a family; of those that meet, the best."""
        following: dict[tuple[int, ...], tuple[int, list[Order]]] = {}
        for progress, (at, orders) in states.items():
            for i, family in enumerate(families):
                self.steps += 1
                if progress[i] == len(family) or self.steps > MOST_STEPS:
                    continue
                child = family[progress[i]]
                joined = [_join(a, b) for b in self._place(child, at) for a in orders]
                if joined:
                    key = (*progress[:i], progress[i] + 1, *progress[i + 1 :])
                    _, others = following.get(key, (0, []))
                    following[key] = at + child.size, _keep_best([*others, *joined])
        return following


def _join(first: Order, second: Order) -> Order:
    last = first.last
    for layer in second.layers():
        last = (last, layer)
    return Order(first.score + second.score, last)


def _keep_best(orders: Sequence[Order]) -> list[Order]:
    best = max(order.score for order in orders)
    return [order for order in orders if order.score == best][:EXAMPLES]


def sort_by_numbers(paths: Sequence[Path]) -> dict[Path, int]:
    """Places of layers: those of a class by the number, the classes as they come in ``paths``."""
    order: dict[Path, int] = {}

    def visit(members: Sequence[Path], depth: int) -> None:
        order.update((m, len(order)) for m in members if len(m) == depth)
        children: dict[str, list[Path]] = {}
        for m in members:
            if len(m) > depth:
                children.setdefault(m[depth], []).append(m)
        families = _group_numbered(children)
        following = {n: iterator for some in families for iterator in (iter(some),) for n in some}
        for name in children:
            visit(children[next(following[name])], depth + 1)

    visit([*dict.fromkeys(paths)], 0)
    return order
