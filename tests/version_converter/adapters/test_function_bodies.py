"""Operators that the standard defines by functions, decomposed into those."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import defs

from serde.ir.graph import DType
from serde.spec.onnx_builder import OnnxBuilder
from serde.version_converter.adapters import downgrades, function_bodies
from serde.version_converter.adapters.function_bodies import EXPANDED
from testing.onnx_live import run
from testing.version_converter.rules import check_rule, rules_of

X = np.random.default_rng(0).standard_normal((2, 3), np.float32)


@pytest.mark.parametrize(("version", "op"), rules_of(function_bodies))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


def test_what_is_expanded_has_a_body_where_it_began() -> None:
    for version, operators in EXPANDED.items():
        for op in operators.split():
            schema = defs.get_schema(op, version)
            assert schema.since_version == version and op in downgrades[version]
            assert schema.has_function or schema.has_context_dependent_function, op


def test_attributes_of_a_call_reach_the_body() -> None:
    """One that is given, and one that is left to its default."""
    for alpha in (None, 2.5):
        g = OnnxBuilder("one")
        x = g.input("x", DType.FLOAT32, X.shape)
        (got,) = run(g.build([g.Swish(x, alpha=alpha)]), {"x": X}, 21)
        np.testing.assert_allclose(got, X / (1 + np.exp(-X * (alpha or 1))), rtol=1e-6)


def test_a_body_that_depends_on_its_operands() -> None:
    """SoftmaxCrossEntropyLoss has another body with weights, and with a second output."""
    labels, weights = np.int64([2, 0]), np.float32([1, 2, 3])
    share = X - np.log(np.exp(X).sum(1, keepdims=True))
    lost = -share[[0, 1], labels]
    for is_weighted in (False, True):
        g = OnnxBuilder("one")
        operands = [g.input("x", DType.FLOAT32, X.shape), g.const(labels)]
        operands += [g.const(weights)] if is_weighted else []
        graph = g.build(g.SoftmaxCrossEntropyLoss(*operands, outputs=2))
        factors = weights[labels] if is_weighted else np.float32([1, 1])
        loss, logs = run(graph, {"x": X}, 11)
        np.testing.assert_allclose(loss, (lost * factors).sum() / factors.sum(), rtol=1e-6)
        np.testing.assert_allclose(logs, share, rtol=1e-5)
