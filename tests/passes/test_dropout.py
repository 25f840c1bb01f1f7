"""Dropout at inference whose mask nothing reads is dropped; others stay."""

from __future__ import annotations

import pytest

from serde.passes import tidy
from testing.onnx_live import ir_of

CASES = {
    "an unread mask": ("float[2] y", "d, m = Dropout(x) y = Relu(d)", ["Relu"]),
    "in a row": ("float[2] y", "d, m = Dropout(x) e, n = Dropout(d) y = Relu(e)", ["Relu"]),
    "a mask that is read": (
        "float[2] y, bool[2] z", "d, m = Dropout(x) y = Relu(d) z = Not(m)",
        ["Dropout", "Relu", "Not"]),
    "a mask that is an output": ("float[2] y, bool[2] m", "d, m = Dropout(x) y = Relu(d)",
                                 ["Dropout", "Relu"]),
    "in training": (
        "float[2] y", "r = Constant<value_float = 0.5>() t = Constant<value = bool {1}>()"
        " d, m = Dropout(x, r, t) y = Relu(d)", ["Dropout", "Relu"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_nodes_that_are_left(name):
    outputs, body, left = CASES[name]
    graph = tidy(ir_of(f"g (float[2] x) => ({outputs}) {{ {body} }}", 21))
    assert [n.op for n in graph.nodes] == left


@pytest.mark.parametrize("opset", [7, 10, 12])
def test_older_masks_that_nothing_reads(opset):
    """Masks of floats are cast for the IR, which keeps none that is not read."""
    graph = ir_of("g (float[2] x) => (float[2] y) { d, m = Dropout(x) y = Relu(d) }", opset)
    assert [n.op for n in graph.nodes] == ["Relu"]
