"""Bodies whose inputs the file does not type take the types of what enters them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from testing.onnx_live import ir_of, model_of, run, run_model

# How a turn changes what enters: not in shape, in one size, in rank.
STATES = {
    "same": "s2 = Add(s, x)",
    "grows": "s2 = Concat<axis=0>(s, x)",
    "rank": "s2 = Unsqueeze(s, zero)",
}
LOOP = """g (float[2,3] x, int64 turns) => (float[K,M] y, float[T] z) {{
  zero = Constant<value = int64[1] {{0}}>()
  go = Constant<value = bool {{1}}>()
  last, z = Loop(turns, go, x) <body = body (int64 i, bool c, s) => (c2, s2, out) {{
    c2 = Identity(c)
    {state}
    n = Cast<to=1>(i)
    t = ReduceMax<keepdims=0>(s)
    out = Mul(t, n)
  }}>
  rows = Constant<value = int64[2] {{-1, 3}}>()
  y = Reshape(last, rows)
}}"""
SCAN = """g (float[3] start, float[2,4,3] x) => (float[3] y, float[4,3] z) {
  y, z = Scan<num_scan_inputs = 1, scan_input_axes = [1], body = body (s, e) => (s2, out) {
    m = ReduceMax<keepdims=0, axes=[0]>(e)
    s2 = Add(s, m)
    out = Neg(s2)
  }>(start, x)
}"""
X = np.arange(24, dtype="float32").reshape(2, 4, 3)


def assert_the_same(text: str, feeds: Mapping[str, np.ndarray], opset: int) -> None:
    expected = run_model(model_of(text, 17, 8), feeds)
    for a, b in zip(run(ir_of(text, 17), feeds, opset), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("opset", [11, 17, 21])
@pytest.mark.parametrize("state", STATES)
def test_a_loop(state: str, opset: int) -> None:
    feeds = {"x": X[:, 0], "turns": np.array(3)}
    assert_the_same(LOOP.format(state=STATES[state]), feeds, opset)


@pytest.mark.parametrize("opset", [9, 17, 21])
def test_a_scan(opset: int) -> None:
    assert_the_same(SCAN, {"start": np.float32([1, 2, 3]), "x": X}, opset)


def test_what_no_turn_changes_keeps_its_shape() -> None:
    (loop,) = (n for n in ir_of(LOOP.format(state=STATES["same"]), 17).nodes if n.op == "Loop")
    assert [(v.dtype.value, v.shape) for v in loop.attrs["body"].inputs] == [
        ("int64", ()), ("bool", ()), ("float32", (2, 3)),
    ]  # fmt: skip
    (loop,) = (n for n in ir_of(LOOP.format(state=STATES["grows"]), 17).nodes if n.op == "Loop")
    assert loop.attrs["body"].inputs[2].shape == (None, 3)
