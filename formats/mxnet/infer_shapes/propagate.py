"""Propagate shapes between values along the relations of the nodes around them.

A worklist: a node is evaluated again when more became known of a value it reads or computes. What
is known of a value only grows, by a rank, then for each axis by a name and by a number, so that a
value changes a few times at most. Nodes of many operands are split into parts of two values around
a hub, or each change of one operand would cost an evaluation of all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from serde.errors import ConversionError
from serde.ir.geometry import may_be_same
from serde.ir.graph import Node, Shape, Value

from ..operators import ALL, describe
from .bodies import find_links
from .guesses import is_contradicted
from .merge_shapes import merge_shapes
from .relations import infer_relations

MOST_VALUES = 8  # of a node that is evaluated whole
ERRORS = (ConversionError, KeyError, IndexError, ZeroDivisionError)


class Contradiction(Exception):
    """An assumed shape contradicts what ``node`` can take."""

    def __init__(self, node: Node) -> None:
        super().__init__(node.name)
        self.node = node


class Propagation:
    """What is known of the shapes of values. ``evaluations`` counts the relations asked."""

    def __init__(self, nodes: Iterable[Node], shapes: dict[Value, Shape]) -> None:
        self.shapes = shapes
        self.parts = [part for node in nodes for part in split_node(node)]
        self.near: dict[Value, list[Node]] = {}
        for part in self.parts:
            inside = (link.inside for link in find_links(part))
            for value in dict.fromkeys((*part.inputs, *part.outputs, *inside)):
                if value is not None:
                    self.near.setdefault(value, []).append(part)
        self.evaluations = 0
        self._broken: set[Node] = set()

    def shape_of(self, value: Value) -> Shape | None:
        """What is known of a shape: a size that is not is None, or the name of the axis."""
        return value.shape if value.shape is not None else self.shapes.get(value)

    def run(self, is_done: Callable[[], bool] = lambda: False) -> None:
        """Propagate what is known until nothing is added, or ``is_done``."""
        self._propagate(self.parts, None, is_done)

    def learn(self, value: Value, shape: Shape) -> None:
        """Propagate a shape that is a fact."""
        if self._learn(value, shape, None):
            self._propagate(self.near.get(value, ()), None)

    def assume(self, value: Value, shape: Shape) -> None:
        """Propagate a shape that may be wrong; where it contradicts a node, forget all of it.

        Raises:
            Contradiction: naming that node.
        """
        changed: dict[Value, Shape | None] = {}
        try:
            self._learn(value, shape, changed)
            self._propagate(self.near.get(value, ()), changed)
        except Contradiction:
            for known, before in changed.items():
                if before is None:
                    del self.shapes[known]
                else:
                    self.shapes[known] = before
            raise

    def _propagate(
        self, parts: Iterable[Node], changed: dict[Value, Shape | None] | None,
        is_done: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """``changed`` is None where what is propagated are facts, which are not compared."""
        queue = deque(parts)
        waiting = set(queue)
        while queue and not is_done():
            part = queue.popleft()
            waiting.discard(part)
            for value, shape in self._evaluate(part, changed is not None):
                if changed is not None and is_conflict(self.shape_of(value), shape):
                    raise Contradiction(part)
                if self._learn(value, shape, changed):
                    again = [p for p in self.near.get(value, ()) if p not in waiting]
                    waiting.update(again)
                    queue.extend(again)

    def _evaluate(self, part: Node, is_assumed: bool) -> list[tuple[Value, Shape]]:
        self.evaluations += 1
        try:
            shapes = infer_relations(part, self.shape_of)
            if is_assumed and is_contradicted(part, self.shape_of):
                raise Contradiction(part)
        except ERRORS:  # a node that is not as it should be; its rule will say so
            if is_assumed and part not in self._broken:
                raise Contradiction(part) from None
            self._broken.add(part)
            return []
        return shapes

    def _learn(
        self, value: Value, shape: Shape, changed: dict[Value, Shape | None] | None
    ) -> bool:  # fmt: skip
        """Whether ``shape`` tells more of ``value`` than was known."""
        known = self.shape_of(value)
        more = merge_shapes(known, shape)
        if value.shape is not None or more is None or more == known:
            return False
        if changed is not None:
            changed.setdefault(value, known)
        self.shapes[value] = more
        return True


def is_conflict(a: Shape | None, b: Shape | None) -> bool:
    """Whether two shapes cannot be of one value."""
    if a is None or b is None:
        return False
    return len(a) != len(b) or not all(map(may_be_same, a, b))


def split_node(node: Node) -> Iterator[Node]:
    """The parts of a node, and of those in its subgraphs."""
    yield from split_wide(node)
    for body in node.graphs():
        for inner in body.nodes:
            yield from split_node(inner)


def split_wide(node: Node) -> Iterator[Node]:
    """The node, or parts of two values each that relate as those of the node do.

    Operands of ``Concat`` and of elementwise sums are related to a hub, and the hub to the result;
    so are the outputs of ``SliceChannel``.
    """
    alike = describe(node.op).shaped == ALL or node.op == "Concat"
    if len(node.inputs) + len(node.outputs) <= MOST_VALUES or None in node.inputs:
        yield node
    elif alike:
        hub = Value(f"{node.name} (hub)")
        yield from (Node(node.op, (v,), (hub,), node.attrs, name=node.name) for v in node.inputs)
        yield Node(node.op, (hub,), node.outputs, node.attrs, name=node.name)
    elif node.op == "SliceChannel":
        hub = Value(f"{node.name} (hub)")
        yield Node(node.op, node.inputs, (hub,), node.attrs, name=node.name)
        yield from (Node("_copy", (hub,), (v,), name=node.name) for v in node.outputs)
    else:
        yield node
