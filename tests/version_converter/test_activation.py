"""Activations that older opsets lack, for every kind of number and of attribute."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from testing.onnx_live import ir_of, model_of, run_model

X = np.array([np.nan, -2, 0.0, 0.3, 3, -np.inf, np.inf], np.float32)
NODES = (
    "Celu<alpha=-0.5>(x)",
    "Celu<alpha=2.0>(x)",
    "Shrink<bias=1.5, lambd=-0.5>(x)",
    "Shrink<bias=1.0>(x)",
    "ThresholdedRelu<alpha=0.5>(x)",
    "ThresholdedRelu<alpha=-1.0>(x)",
)


@pytest.mark.parametrize("opset", [7, 9, 11])
@pytest.mark.parametrize("node", NODES)
def test_decomposed_activations(node, opset):
    body = f"g (float[7] x) => (float[7] y) {{ y = {node} }}"
    (expected,) = run_model(model_of(body), {"x": X})
    (got,) = run_model(to_proto(from_ir(ir_of(body), opset)), {"x": X})
    np.testing.assert_allclose(got, expected, rtol=1e-6)
