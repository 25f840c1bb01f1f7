"""Reversals of images behind what computes element by element."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import numpy_helper

from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import raise_to_ir
from serde.passes.sink_reversals import sink_reversals
from testing.onnx_live import PLAIN, model_of, run, run_at

DRAWS = np.random.default_rng(0)
X = DRAWS.standard_normal((2, 3, 4, 5)).astype(np.float32)
HELD = {
    "back": np.array([-1, -1]), "all": np.array([-(2**63)] * 2), "axes": np.array([2, 3]),
    "other": np.array([1, 2]),
    "row": np.float32([[[2.0]], [[0.5]], [[-1.0]]]), "one": np.float32(0.3),
    "image": X[0] + 1, "line": X[0, 0, 0], "s": np.float32([0.1, 0.2, 0.3]),
    "z": np.uint8([3, 4, 5]), "point": X[:2, :, :1, :1], "kernel": X[:2, :, :3, :3],
    "low": np.float32(0), "four": np.float32([0.1, 0.2, 0.3, 0.4]), "t": np.uint8([1, 2, 3, 4]),
}  # fmt: skip


def turn(x: str, y: str) -> str:
    return f"{y} = Slice({x}, back, all, axes, back) "


def ops_of(body: str) -> list[str]:
    """The operators after the pass, which changes no result."""
    model = model_of(f"g (float[N,3,H,W] x) => (float[A,B,C,D] y) {{ {body} }}")
    words = re.findall(r"\w+", body)
    used = [(n, a) for n, a in HELD.items() if n in words]
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in used)
    graph = sink_reversals(raise_to_ir(decode(model)))
    for got, expected in zip(run(graph, {"x": X}), run_at(PLAIN, model, {"x": X}), strict=True):
        np.testing.assert_allclose(got, expected, 1e-5, 1e-6)
    proto = to_proto(graph)
    assert [o.name for o in proto.graph.output] == ["y"]
    names = [o for n in proto.graph.node for o in n.output]
    assert len(names) == len(set(names))
    return [n.op for n in graph.nodes]


@pytest.mark.parametrize(
    "steps",
    [
        "b = Relu(a)", "b = Erf(a)", "b = Softplus(a)", "b = Pow(a, row)", "b = Mul(a, row)", "b = Sub(a, one)", "b = Clip(a, low)",
        "q = QuantizeLinear<axis = 1>(a, s, z) b = DequantizeLinear<axis = 1>(q, s, z)",
        "b = Conv<kernel_shape = [1, 1]>(a, point)", "c = Add(a, row) b = Max(c, one)",
    ],
)  # fmt: skip
def test_two_reversals_cancel(steps):
    assert "Slice" not in ops_of(turn("x", "a") + steps + " " + turn("b", "y"))


@pytest.mark.parametrize(
    "steps",
    [
        "b = Mul(a, image)", "b = Add(a, line)",
        "b = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(a, kernel)",
        "b = Conv<kernel_shape = [1, 1], strides = [2, 2]>(a, point)",
        "b = Conv<kernel_shape = [1, 1], pads = [1, 0, 0, 0]>(a, point)",
        "b = Softmax<axis = 3>(a)", "b = Mul(a, a)",
        "q = QuantizeLinear<axis = 2>(a, four, t) b = DequantizeLinear<axis = 2>(q, four, t)",
    ],
)  # fmt: skip
def test_others_are_not_crossed(steps):
    assert ops_of(turn("x", "a") + steps + " " + turn("b", "y")).count("Slice") == 2


def test_a_reversal_comes_last():
    assert ops_of(turn("x", "a") + "b = Relu(a) y = Mul(b, row)") == ["Relu", "Mul", "Slice"]


def test_what_is_read_twice_is_reversed_once():
    body = turn("x", "a") + "b = Relu(a) c = Neg(b) y = Mul(b, c)"
    assert ops_of(body) == ["Relu", "Slice", "Neg", "Mul"]


def test_other_axes_and_steps_are_no_reversals():
    body = turn("x", "a").replace("axes", "other") + "y = Relu(a)"
    assert ops_of(body) == ["Slice", "Relu"]


def test_two_operands_that_are_reversed():
    body = (
        turn("x", "a") + "p = ReduceMax<keepdims = 1>(x, axes) " + turn("p", "b") + "y = Add(a, b)"
    )
    assert ops_of(body) == ["ReduceMax", "Slice", "Add", "Slice"]


def test_an_output_that_is_an_input_turned_twice_is_made():
    assert ops_of(turn("x", "a") + turn("a", "y")) == ["Slice", "Slice"]
