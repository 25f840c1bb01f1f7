"""Constants lie in the graph that reads them where they are small, or where a loop reads them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
from testing.onnx_live import model_of, run_model

LOOP = """g (float[3,4] x) => (float[3,B] y) {
    y = Scan<num_scan_inputs = 1, body = b (float[4] row) => (float[C] z) { z = MatMul(row, w) }>(x)
}"""
BRANCHES = """g (float[3,4] x, bool c) => (float[3,B] y) {
    y = If(c) <then_branch = t () => (float[3,C] a) { a = MatMul(x, w) },
               else_branch = e () => (float[3,D] b) { b = Neg(x) }>
}"""


@pytest.mark.parametrize(
    ("text", "columns", "is_inside"),
    [
        (LOOP, 4, True), (LOOP, 2000, True), (BRANCHES, 4, True), (BRANCHES, 2000, False),
    ],
    ids=["small in a loop", "large in a loop", "small in a branch", "large in a branch"],
)  # fmt: skip
def test_homes(text, columns, is_inside, tmp_path):
    source = model_of(text, 17)
    w = np.random.default_rng(0).standard_normal((4, columns), np.float32)
    source.graph.initializer.append(numpy_helper.from_array(w, "w"))
    onnx.save(source, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx")
    made = onnx.load(tmp_path / "b.onnx")
    outside = [list(t.dims) for t in made.graph.initializer]
    bodies = [a.g for n in made.graph.node for a in n.attribute if a.HasField("g")]
    inside = [list(t.dims) for g in bodies for t in g.initializer]
    assert (inside if is_inside else outside) == [[4, columns]]
    assert not (outside if is_inside else inside)
    feeds = {"x": np.ones((3, 4), np.float32), "c": np.array(True)}
    for got, expected in zip(run_model(made, feeds), run_model(source, feeds), strict=True):
        np.testing.assert_array_equal(got, expected)
