"""Attention at opsets that lack it, or some of its attributes and operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.ir.graph import DType, Graph
from serde.legalize.convert import lower_to
from serde.spec.onnx_builder import OnnxBuilder
from serde.version_converter.adapters import attention
from testing.onnx_live import run
from testing.version_converter.rules import check_rule, rules_of

SHAPE = (1, 2, 3, 4)


@pytest.mark.parametrize(("version", "op"), rules_of(attention))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


def make_graph(**attrs: Any) -> Graph:
    g = OnnxBuilder("one")
    return g.build([g.Attention(*(g.input(n, DType.FLOAT32, SHAPE) for n in "qkv"), **attrs)])


@pytest.mark.parametrize(("attrs", "opset", "is_expanded"), [
    ({"softcap": 0.0}, 24, False), ({"softcap": 0.0}, 22, True), ({"softcap": 2.0}, 24, False),
    ({"left_window_size": 1}, 24, True), ({"right_window_size": 1}, 24, True),
])  # fmt: skip
def test_an_attribute_without_equivalent_is_spelled_out(
    attrs: dict[str, Any], opset: int, is_expanded: bool
) -> None:
    """One of a later opset is dropped at its default only."""
    operators = [n.op for n in lower_to(make_graph(**attrs), opset).nodes]
    assert ("Attention" not in operators) == is_expanded


@pytest.mark.parametrize("opset", [18, 24])
def test_windows_hide_keys(opset: int) -> None:
    """A query sees itself and the key before it: as NumPy has it."""
    draws = np.random.default_rng(0)
    q, k, v = (draws.standard_normal(SHAPE, np.float32) for _ in range(3))
    graph = make_graph(left_window_size=1, right_window_size=0)
    (got,) = run(graph, {"q": q, "k": k, "v": v}, opset)
    apart = np.arange(3)[:, None] - np.arange(3)
    scores = np.where((apart >= 0) & (apart <= 1), q @ k.swapaxes(2, 3) / 2, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    expected = shares / shares.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
