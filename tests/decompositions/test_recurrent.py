"""Recurrent layers unrolled and as loops, compared with ONNX Runtime's own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from serde.decompositions import recurrent
from serde.decompositions.recurrent import NUMBERS, make_activation, unroll_recurrent
from serde.errors import ConversionError
from serde.ir.graph import DType
from serde.spec.onnx_builder import OnnxBuilder
from testing.decomposed import check_decomposed, compute, operators_of

STEPS, SAMPLES, FEATURES, HIDDEN = 4, 2, 3, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DRAWS = np.random.default_rng(0)


@pytest.mark.parametrize("op", operators_of(recurrent))
def test_decomposed(op: str) -> None:
    check_decomposed(op)


def draw(*shape: int) -> np.ndarray:
    return DRAWS.standard_normal(shape).astype(np.float32) * np.float32(0.5)


def arrays_of(op: str, ways: int) -> list[np.ndarray]:
    rows = GATES[op] * HIDDEN
    operands = [draw(STEPS, SAMPLES, FEATURES), draw(ways, rows, FEATURES), draw(ways, rows, HIDDEN),
                draw(ways, 2 * rows), np.int32([4, 2]), draw(ways, SAMPLES, HIDDEN)]  # fmt: skip
    more = [draw(ways, SAMPLES, HIDDEN), draw(ways, 3 * HIDDEN)] if op == "LSTM" else []
    return operands + more


FORMS: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {"direction": "bidirectional"}), ("RNN", {"clip": 0.3, "direction": "reverse"}),
    ("GRU", {"linear_before_reset": 1}), ("GRU", {"direction": "bidirectional"}),
    ("LSTM", {"input_forget": 1}), ("LSTM", {"direction": "bidirectional", "clip": 0.4}),
    ("LSTM", {"activations": ("HardSigmoid", "Softsign", "LeakyRelu"),
              "activation_alpha": (0.3, 0.2), "activation_beta": (0.4,)}),
]  # fmt: skip


@pytest.mark.parametrize("most_steps", [9, 1], ids=["unrolled", "looped"])
@pytest.mark.parametrize(("op", "form"), FORMS, ids=lambda v: str(v))
def test_lengths_and_states(op: str, form: dict[str, Any], most_steps: int) -> None:
    """Of sequences of two lengths, with states to begin with, biases and peepholes."""
    arrays = arrays_of(op, 2 if form.get("direction") == "bidirectional" else 1)
    form, count = {**form, "hidden_size": HIDDEN}, 3 if op == "LSTM" else 2
    expected = compute(lambda g, *v: g[op](*v, outputs=count, **form), *arrays)
    unroll = partial(unroll_recurrent, op, most_steps=most_steps, outputs=count, **form)
    for a, b in zip(compute(unroll, *arrays), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_steps_of_unknown_number_are_a_loop() -> None:
    arrays = arrays_of("GRU", 1)[:4]
    expected = compute(lambda g, *v: g.GRU(*v, hidden_size=HIDDEN), *arrays)
    got = compute(partial(unroll_recurrent, "GRU", hidden_size=HIDDEN), *arrays, named=True)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [*NUMBERS, "Relu", "TANH", "softplus"])
def test_activations_have_their_usual_numbers(name: str) -> None:
    x = np.float32([-2, -0.5, 0, 0.3, 4])
    usual = {
        "Affine": x, "Elu": np.where(x > 0, x, np.expm1(x)),
        "HardSigmoid": np.clip(0.2 * x + 0.5, 0, 1), "LeakyRelu": np.where(x < 0, 0.01 * x, x),
        "ScaledTanh": np.tanh(x), "ThresholdedRelu": np.where(x > 1, x, 0),
        "Relu": np.maximum(x, 0), "TANH": np.tanh(x), "softplus": np.log1p(np.exp(x)),
    }  # fmt: skip
    (got,) = compute(lambda g, x: make_activation(name, iter(()), iter(()))(g, x), x)
    np.testing.assert_allclose(got, usual[name], rtol=1e-6, atol=1e-7)


def test_an_activation_that_is_none_is_refused() -> None:
    with pytest.raises(ConversionError, match="activation 'Swish'"):
        make_activation("Swish", iter(()), iter(()))


@pytest.mark.parametrize(("steps", "reason"), [
    ("T", "a RNN over a sequence of dynamic length: give its size"),
    (999, "a RNN of 999 steps, of 512 at most"),
])  # fmt: skip
def test_without_loops_steps_are_few(steps: Any, reason: str) -> None:
    g = OnnxBuilder("g")
    g.loops = False
    x = g.input("x", DType.FLOAT32, (steps, 2, 3))
    with pytest.raises(ConversionError, match=reason):
        unroll_recurrent("RNN", g, x, None, None, hidden_size=4)
