"""Boxes that NonMaxSuppression chose, found where they are marked."""

from __future__ import annotations

import pytest

from serde.ir.graph import DType
from serde.passes.suppression import find_marked
from serde.spec.onnx_builder import OnnxBuilder


@pytest.mark.parametrize(
    ("columns", "axis", "mark", "is_found"),
    [([0, 2], 1, 1.0, True), ([0, 1], 1, 1.0, False), ([0, 2], 0, 1.0, False),
     ([0, 2], 1, [1.0, 2.0], False)],
)  # fmt: skip
def test_marks_at_the_batch_and_box_of_each_row(columns, axis, mark, is_found):
    g = OnnxBuilder("g")
    boxes, scores = g.input("b", DType.FLOAT32, (2, 6, 4)), g.input("s", DType.FLOAT32, (2, 1, 6))
    rows = g.NonMaxSuppression(boxes, scores, [3])
    index = g.Gather(rows, columns, axis=axis)
    number = g.const(mark, DType.FLOAT32)
    updates = g.Expand(number, g.Shape(rows, start=0, end=1) if mark == 1.0 else [7, 2])
    found = find_marked(g.producer, index, updates)
    assert found == ((g.producer(rows), number) if is_found else None)
    assert find_marked(g.producer, rows, updates) is find_marked(g.producer, index, boxes) is None
