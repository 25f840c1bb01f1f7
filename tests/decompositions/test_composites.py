"""Composite operators as the standard's: a projection that changes nothing is that of an LSTM."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType, Graph
from serde.spec.composites import DOMAIN
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import run, run_model

STEPS, SAMPLES, FEATURES, HIDDEN = 5, 2, 3, 4


@pytest.mark.parametrize("with_states", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_neutral_projection_is_none(direction: str, with_states: bool) -> None:
    ways = 2 if direction == "bidirectional" else 1
    draws = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        return draws.standard_normal(shape, np.float32)

    feeds = {"x": draw(STEPS, SAMPLES, FEATURES)}
    if with_states:
        feeds |= {name: draw(ways, SAMPLES, HIDDEN) for name in ("h", "c")}
    rows = 4 * HIDDEN
    arrays = (draw(ways, rows, FEATURES), draw(ways, rows, HIDDEN), draw(ways, 2 * rows))
    neutral = np.stack([np.eye(HIDDEN, dtype=np.float32)] * ways)

    def compute(is_composite: bool) -> list[np.ndarray]:
        g = OnnxBuilder("g")
        x, *states = (g.input(name, DType.FLOAT32, a.shape) for name, a in feeds.items())
        w, r, b = map(g.const, arrays)
        if is_composite:
            operands = (x, w, r, g.const(neutral), b, *states)
            y, *last = g.composite("ProjectedLSTM", operands, {"direction": direction})
        else:
            y, *last = g.LSTM(x, w, r, b, None, *states, direction=direction, hidden_size=HIDDEN,
                              outputs=3)  # fmt: skip
            y = g.Reshape(g.Transpose(y, perm=(0, 2, 1, 3)), [0, 0, -1])
        assert y.shape == (STEPS, SAMPLES, ways * HIDDEN)
        graph = Graph("g", tuple(g.inputs), (y, *last), tuple(g.nodes))
        assert is_composite == any(n.domain == DOMAIN for n in graph.nodes)
        return run(graph, feeds)

    for actual, expected in zip(compute(True), compute(False), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


def test_whole_channels_are_dropped_in_training_only() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5), np.float32)

    g = OnnxBuilder("g")
    (y,) = g.composite("FeatureDropout", (g.input("x", DType.FLOAT32, x.shape),), {"rate": 0.5})
    graph = from_ir(Graph("g", tuple(g.inputs), (y,), tuple(g.nodes)), 17)
    (drop,) = (n for n in graph.nodes if n.op == "Dropout")
    assert drop.inputs[0] is not None and drop.inputs[0].shape == (2, 3, 1, 1)
    (got,) = run_model(to_proto(graph), {"x": x})
    np.testing.assert_array_equal(got, x)
