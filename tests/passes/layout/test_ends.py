"""Inputs and outputs get channels last where asked for, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import UsageError
from serde.formats.tflite.from_ir import from_ir
from serde.passes.layout.ends import turn_ends
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_graph

BODY = """g (float[1,2,4,5] x, float[3] b) => (float[1,3,2,4] y, float[1,2,4,5] x2, float[3] c)
    <float[3,2,3,2] w = {%s}> { y = Conv(x, w, b) x2 = Relu(x) c = Neg(b) }"""


def graph():
    numbers = np.random.default_rng(0).standard_normal(36)
    return ir_of(BODY % ", ".join(f"{n:.3f}" for n in numbers))


@pytest.mark.parametrize("names", [["all"], ["x", "y"], ["y"], ["x2", "x"]])
def test_ends_are_the_same_in_another_order(names) -> None:
    rng = np.random.default_rng(1)
    feeds = {"x": rng.standard_normal((1, 2, 4, 5), np.float32),
             "b": rng.standard_normal(3, np.float32)}  # fmt: skip
    expected = dict(zip(("y", "x2", "c"), run_graph(graph(), feeds), strict=True))
    turned = turn_ends(graph(), names)
    chosen = {"x", "y", "x2"} if names == ["all"] else set(names)
    given = {n: a.transpose(0, 2, 3, 1) if n in chosen else a for n, a in feeds.items()}
    assert [v.name for v in (*turned.inputs, *turned.outputs)] == ["x", "b", "y", "x2", "c"]
    for value, actual in zip(turned.outputs, run_graph(turned, given), strict=True):
        wanted = expected[value.name]
        wanted = wanted.transpose(0, 2, 3, 1) if value.name in chosen else wanted
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)


def test_a_layer_of_ends_with_channels_last_needs_no_transpose() -> None:
    written = from_ir(graph(), channels_last=["all"])
    assert "TRANSPOSE" not in written.operators()
    assert written.inputs[0].shape == (1, 4, 5, 2) and written.outputs[0].shape == (1, 2, 4, 3)


@pytest.mark.parametrize(("name", "why"), [("z", "called z"), ("b", "no channels")])
def test_other_names_are_refused(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        turn_ends(graph(), [name])
