"""Boxes that NonMaxSuppression chose, found where a ScatterND marks them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from serde.ir.graph import Node, Value


def find_marked(
    producer: Callable[[Any], Node | None], index: Any, updates: Any
) -> tuple[Node, Value] | None:
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
