"""Pads of ``auto_pad`` become numbers where sizes have names."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.numpy_helper import from_array

import serde
from serde.passes.same_pads import settle_same_pads
from testing.onnx_live import error, ir_of, model_of, run

LAYERS = {
    "Conv": "Conv<auto_pad = {mode!r}, strides = {s}>(x, w)",
    "MaxPool": "MaxPool<auto_pad = {mode!r}, strides = {s}, kernel_shape = [{k},{k}]>(x)",
    "AveragePool": "AveragePool<auto_pad = {mode!r}, strides = {s}, kernel_shape = [{k},{k}]>(x)",
}


def build(op: str, mode: str, kernel: int, strides: list[int]):
    weights = np.random.default_rng(0).standard_normal((4, 3, kernel, kernel), np.float32)
    layer = LAYERS[op].format(mode=mode, s=strides, k=kernel).replace("'", '"')
    model = model_of(f"g (float[N,3,H,W] x) => (float[N,C,I,J] y) {{ y = {layer} }}")
    model.graph.initializer.append(from_array(weights, "w"))
    return serde.load(model)


@pytest.mark.parametrize("op", LAYERS)
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("kernel", [2, 3, 4, 5])
@pytest.mark.parametrize("strides", [[2, 2], [2, 1]])
def test_pads_are_right_for_even_and_odd_sizes(op, mode, kernel, strides):
    graph = build(op, mode, kernel, strides)
    settled = settle_same_pads(graph)
    (layer,) = (node for node in settled.nodes if node.op == op)
    assert "auto_pad" not in layer.attrs
    for sizes in [(7, 8), (8, 9), (12, 11)]:
        x = np.random.default_rng(1).standard_normal((2, 3, *sizes), np.float32)
        (y,), (expected,) = run(settled, {"x": x}), run(graph, {"x": x})
        assert y.shape == expected.shape
        assert error(y, expected) < 1e-5


def test_layers_whose_pads_may_be_several_numbers_stay():
    strided = build("Conv", "SAME_UPPER", 3, [3, 3])
    assert [n.attrs.get("auto_pad") for n in settle_same_pads(strided).nodes] == ["SAME_UPPER"]
    places = ir_of(
        'g (float[N,3,H,W] x) => (float[N,3,I,J] y, int64[N,3,I,J] i) { y, i = MaxPool<auto_pad = '
        '"SAME_UPPER", strides = [2,2], kernel_shape = [3,3]>(x) }'
    )  # fmt: skip
    assert settle_same_pads(places) is places
