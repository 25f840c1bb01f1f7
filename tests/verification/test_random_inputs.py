"""Sizes of random inputs: those that nothing tells fit what they meet."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.verification import make_random_inputs
from testing.onnx_live import ir_of, model_of, run_model

# Models of inputs with open sizes; the shapes that are drawn.
CASES = {
    "only broadcast": ("(float[N,5] x, float[N,?] m) => (float[N,5] y) { y = Mul(x, m) }",
                       {"x": (2, 5), "m": (2, 1)}),
    "broadcast with a constant": (
        "(float[N,?] x) => (float[N,3] y) <float[1,3] c = {1,2,3}> { y = Mul(x, c) }",
        {"x": (2, 3)}),
    "normalized": (
        """(float[N,?] x) => (float[N,3] y) <float[3] s = {1,2,3}, float[3] b = {1,2,3},
        float[3] m = {1,2,3}, float[3] v = {1,2,3}> { y = BatchNormalization(x, s, b, m, v) }""",
        {"x": (2, 3)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_open_sizes_fit(name: str) -> None:
    text, shapes = CASES[name]
    feeds = make_random_inputs(ir_of(f"g {text}"))
    assert {n: x.shape for n, x in feeds.items()} == shapes
    (y,) = run_model(model_of(f"g {text}"), feeds)
    assert np.isfinite(y).all()


def test_sizes_that_do_not_fit_are_told(tmp_path) -> None:
    """MXNet wants operands alike; nothing tells how the two inputs share the columns."""
    from testing.mxnet_live import live_mxnet

    s = live_mxnet().sym
    joined = s.Concat(s.var("a"), s.var("b"), dim=1)
    symbol = s.FullyConnected(joined, num_hidden=3, no_bias=True, name="fc")
    weight = {"fc_weight": np.ones((3, 7), "float32")}
    report = serde.convert(symbol, tmp_path / "m.onnx", params=weight, verify=True,
                           inputs={"a": ("N", None), "b": ("N", None)})  # fmt: skip
    assert not report.verification.done
    statement = report.verification.statement
    assert "inputs={'a': ('DIMS',), 'b': ('DIMS',)} sets" in statement
    report = serde.convert(symbol, tmp_path / "m.onnx", params=weight, verify=True,
                           inputs={"a": ("N", 2), "b": ("N", 5)})  # fmt: skip
    assert report.ok and report.verification.done
