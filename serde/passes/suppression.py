"""Boxes that NonMaxSuppression chose, found where a ScatterND marks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from serde.ir.graph import Attr, Node, Value
from serde.spec.expressions import number

Producer = Callable[[Any], Node | None]


def find_marked(producer: Producer, index: Any, updates: Any) -> tuple[Node, Value] | None:
    """The NonMaxSuppression of whose rows ``index`` has batch and box, and the mark.

    ``updates`` is that one number throughout.
    """

    def find(value: Any, op: str) -> Node | None:
        node = producer(value)
        return node if node is not None and node.op == op and not node.domain else None

    pairs, spread = find(index, "Gather"), find(updates, "Expand")
    if pairs is None or spread is None or pairs.attrs.get("axis") != 1:
        return None
    (rows, columns), mark = pairs.inputs, spread.inputs[0]
    chosen = find(rows, "NonMaxSuppression")
    if chosen is None or columns is None or columns.tensor is None or mark is None:
        return None
    is_one = mark.ranked_shape in ((), (1,))
    return (chosen, mark) if is_one and columns.ints() == (0, 2) else None


def strict_bound(overlap: Value | None) -> np.float32:
    """The bound where boxes that overlap as much are suppressed: ONNX's asks for more."""
    bound = np.float32(number(overlap) or 0)
    return max(np.nextafter(bound, np.float32(np.inf)), np.finfo(np.float32).tiny)


class ClassMarks(NamedTuple):
    """Boxes that suppress those of their class, the mark of those that are kept, and the rest."""

    boxes: Value
    scores: Value
    ids: Value
    overlap: Value
    least: Value
    rest: Value
    mark: Value
    attrs: Mapping[str, Attr]


class _OtherForm(Exception):
    """A part of the graph is not of the form that is looked for."""


def find_class_marks(producer: Producer, node: Node) -> ClassMarks | None:
    """What a ScatterND marks where a NonMaxSuppression has an axis of the classes in the data."""
    if node.op != "ScatterND" or node.domain or node.attrs.get("reduction", "none") != "none":
        return None
    try:
        return _read_class_marks(producer, node)
    except _OtherForm:
        return None


def _read_class_marks(producer: Producer, node: Node) -> ClassMarks:
    x, index, updates = node.inputs
    marked_boxes = find_marked(producer, index, updates)
    if marked_boxes is None:
        raise _OtherForm
    (chosen, update), name = marked_boxes, "NonMaxSuppression"
    boxes, of_classes, most, overlap, least = _inputs(producer, name, chosen.outputs[0], 5)
    of_class, spread, rest = _inputs(producer, "Where", of_classes, 3)
    scores, ids = _inputs(producer, "Unsqueeze", spread, 2)[0], _classes(producer, of_class)
    _expect(all(v.is_static for v in (boxes, scores, ids)))
    _expect(scores.ranked_shape == ids.ranked_shape == x.ranked_shape == boxes.ranked_shape[:2])  # type: ignore[union-attr]
    _expect(spread.ranked_shape == (scores.ranked_shape[0], 1, scores.ranked_shape[1]))
    _expect(of_classes.rank == 3)
    limits = [n for v in (most, overlap, least, rest) if (n := number(v)) is not None]
    _expect(len(limits) == 4)
    _expect(limits[0] >= scores.static_shape[1] and limits[3] <= limits[2])
    return ClassMarks(boxes, scores, ids, overlap, least, x, update, chosen.attrs)  # type: ignore[arg-type]


def _classes(producer: Producer, of_class: Value) -> Value:
    """Whose elements are compared with all integers from the least to the largest of them."""
    spread, integers = _inputs(producer, "Equal", of_class, 2)
    ids = _inputs(producer, "Unsqueeze", spread, 2)[0]
    _expect(ids.rank == 2 and spread.ranked_shape[1] == 1 and integers.ranked_shape[1:] == (1,))
    column = _inputs(producer, "Unsqueeze", _uncast(producer, integers), 2)[0]
    first, end, step = _inputs(producer, "Range", _uncast(producer, column), 3)
    last, one = _inputs(producer, "Add", end, 2)
    _expect(number(one) == number(step) == 1)
    for op, value in (("ReduceMin", first), ("ReduceMax", last)):
        _expect(value.ranked_shape == ())
        _expect(_uncast(producer, _inputs(producer, op, value, 2)[0]) is ids)
    return ids


def _inputs(producer: Producer, op: str, value: Value | None, count: int) -> tuple[Value, ...]:
    """The inputs of the ``op`` that makes a value, ``count`` of them, all given."""
    node = producer(value) if value is not None else None
    is_match = node is not None and not node.domain and node.op == op
    if node is None or not is_match or len(node.inputs) != count or None in node.inputs:
        raise _OtherForm
    return node.inputs  # type: ignore[return-value]


def _uncast(producer: Producer, value: Value) -> Value:
    """What a Cast, if there is one, is of."""
    node = producer(value)
    is_cast = node is not None and not node.domain and node.op == "Cast"
    return node.inputs[0] if is_cast else value  # type: ignore[union-attr, return-value]


def _expect(condition: object) -> None:
    if not condition:
        raise _OtherForm
