"""If, Loop, Scan and optional values in their older forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.ir.graph import DType
from serde.legalize.convert import lower_to
from serde.spec.onnx_builder import OnnxBuilder
from serde.version_converter.adapters import control_flow
from testing.onnx_live import ir_of, model_of, run, run_model
from testing.version_converter.rules import check_rule, rules_of

FLOAT = DType.FLOAT32


@pytest.mark.parametrize(("version", "op"), rules_of(control_flow))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize(("shape", "other", "is_refused"), [
    ((2, 3), (2, 3), False), (("N", 3), ("M", 3), False), (("N", 3), (4, 3), False),
    ((2, 3), (2, 4), True), ((2, 3), (6,), True),
])  # fmt: skip
def test_branches_of_different_shapes(shape: Any, other: Any, is_refused: bool) -> None:
    """Older opsets ask both branches of an If for one shape."""
    g = OnnxBuilder("one")
    condition = g.input("c", DType.BOOL, ())
    a, b = g.input("a", FLOAT, shape), g.input("b", FLOAT, other)
    then, other_branch = g.child("then"), g.child("else")
    graph = g.build([
        g.If(condition, then_branch=then.build([then.Neg(a)]),
             else_branch=other_branch.build([other_branch.Abs(b)]))
    ])  # fmt: skip
    assert lower_to(graph, 11).nodes
    if not is_refused:
        assert lower_to(graph, 10).nodes
        return
    with pytest.raises(Unconvertible, match="branches that give .*; opset 11 is the lowest"):
        lower_to(graph, 10)


SCAN = """g (float[2] s, float[3,2] x) => (float[2] t, {ys} y) {{
    t, y = Scan<num_scan_inputs = 1, scan_input_directions = [{back}],
        scan_output_axes = [{axis}], scan_output_directions = [{turned}],
        body = b (float[2] a, float[2] e) => (float[2] c, float[2] d) {{
            c = Add(a, e) d = Mul(c, e) }}>(s, x) }}"""


@pytest.mark.parametrize("opset", [7, 8])
@pytest.mark.parametrize(("back", "axis", "turned"), [(0, 0, 0), (1, 1, 0), (0, -1, 1), (1, 0, 1)])
def test_scans_of_all_ways(back: int, axis: int, turned: int, opset: int) -> None:
    """Below opset 9 a Scan is one of batches, below 8 a loop."""
    text = SCAN.format(
        back=back, axis=axis, turned=turned, ys="float[2,3]" if axis else "float[3,2]"
    )
    feeds = {"s": np.float32([1, -2]), "x": np.float32([[1, 2], [3, -4], [-5, 6]])}
    expected = run_model(model_of(text, 11), feeds)
    for a, b in zip(run(ir_of(text, 11), feeds, opset), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_loop_that_carries_nothing() -> None:
    """Before opset 11 it had to carry something, and gets a state of no use."""
    text = """g (int64 n, bool g, float[2] x) => (float[m,2] y) {
        y = Loop<body = b (int64 i, bool c) => (bool d, float[2] r) {
            d = Identity(c) f = Cast<to = 1>(i) r = Mul(x, f) }>(n, g) }"""
    feeds = {"n": np.array(3), "g": np.array(True), "x": np.float32([1, -2])}
    graph = ir_of(text, 11)
    (loop,) = (n for n in lower_to(graph, 10).nodes if n.op == "Loop")
    assert len(loop.outputs) == 2
    expected = np.arange(3, dtype=np.float32)[:, None] * feeds["x"]
    np.testing.assert_array_equal(run(graph, feeds, 10)[0], expected)
