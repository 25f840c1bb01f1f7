"""Activations that older opsets lack, for every kind of number and of attribute."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.version_converter.adapters import activation
from testing.onnx_live import ir_of, model_of, run_model
from testing.version_converter.old import C, Old
from testing.version_converter.old import X as P
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, Single

X = np.array([np.nan, -2, 0.0, 0.3, 3, -np.inf, np.inf], np.float32)
NODES = (
    "Celu<alpha=-0.5>(x)",
    "Celu<alpha=2.0>(x)",
    "Shrink<bias=1.5, lambd=-0.5>(x)",
    "Shrink<bias=1.0>(x)",
    "ThresholdedRelu<alpha=0.5>(x)",
    "ThresholdedRelu<alpha=-1.0>(x)",
)


@pytest.mark.parametrize(("version", "op"), rules_of(activation))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("opset", [7, 9, 11])
@pytest.mark.parametrize("node", NODES)
def test_decomposed_activations(node, opset):
    body = f"g (float[7] x) => (float[7] y) {{ y = {node} }}"
    (expected,) = run_model(model_of(body), {"x": X})
    (got,) = run_model(to_proto(from_ir(ir_of(body), opset)), {"x": X})
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("op", ["Acosh", "Asinh"])
def test_far_from_zero(op: str) -> None:
    """There is no Acosh below 1; and no square of what is large is a float64."""
    inf = np.inf
    Single(op, (np.float32([-3e38, 0.5, 1, 2, 3e38, -inf, inf, np.nan]),)).check([8], [STATIC])
    Single(op, ([-1e300, 1.0, 1e300, inf],)).check([8], [STATIC])


@pytest.mark.parametrize("case", [
    Old("PRelu", 6, (P, C), {}, np.where(P < 0, C[:, None, None] * P, P)),
    Old("PRelu", 1, (P, C[:1]), {}, np.where(P < 0, C[0] * P, P)),
], ids=lambda c: c.id)  # fmt: skip
def test_slopes_by_channel(case: Old) -> None:
    case.check()
