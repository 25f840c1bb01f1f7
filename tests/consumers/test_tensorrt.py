"""The rules of TensorRT's documentation, on the graphs that its profile writes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnx.numpy_helper import from_array

import serde
from serde.bridges.mxnet import run as run_mxnet
from testing.mxnet.quantised_networks import quantise_network
from testing.onnx_live import PLAIN, error, run_at, run_model


def model_of(signature: str, body: str, **held) -> onnx.ModelProto:
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g {signature} {{ {body} }}'
    )
    model.graph.initializer.extend(from_array(np.asarray(a), n) for n, a in held.items())
    return model


def test_integer_layers_are_signed_and_symmetric(tmp_path):
    prefix, feeds = quantise_network("resnet18_v1", "calibrated", tmp_path)
    (expected,) = run_mxnet(str(prefix), feeds)
    serde.convert(prefix, tmp_path / "m.onnx", inputs=feeds, profile="tensorrt")
    graph = onnx.load(tmp_path / "m.onnx").graph
    held = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    pairs = [n for n in graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear")]
    assert len(pairs) > 40
    for node in pairs:
        assert node.input[1] in held
        assert held[node.input[2]].dtype == np.int8 and not held[node.input[2]].any()
    (got,) = run_at(PLAIN, tmp_path / "m.onnx", feeds)
    assert error(got, expected) < 0.05  # a range of 255 steps in 127


@pytest.mark.parametrize("moves", ["Transpose(q)", "Gather<axis = 1>(q, i)", "Expand(q, e)"])
def test_uint8_of_zero_point_128_is_the_same(moves, tmp_path):
    body = f"""q = QuantizeLinear(x, s, z) t = {moves}
               m = DequantizeLinear(t, s, z) y = Relu(m)"""
    model = model_of("(float[3,4] x) => (float[] y)", body, s=np.float32(0.02), z=np.uint8(128),
                     i=np.array([2, 0]), e=np.array([2, 3, 4]))  # fmt: skip
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="tensorrt")
    result = onnx.load(tmp_path / "b.onnx")
    types = {t.name: t.data_type for t in result.graph.initializer}
    assert {types[n] for node in result.graph.node if "Q" in node.op_type or "Deq" in node.op_type
            for n in node.input[1:]} == {1, 3}  # fmt: skip
    feeds = {"x": np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)}
    np.testing.assert_array_equal(run_model(result, feeds)[0], run_model(model, feeds)[0])


@pytest.mark.parametrize(
    "signature, body, held, reason",
    [
        ("(float[1,2,8] x) => (float[1,2,7] y)", "y = MaxPool<kernel_shape = [2]>(x)", {},
         "TensorRT has no MaxPool with 'X' of another rank than 4 or 5: 'x' has the shape (1, 2, 8). Reshape the data"),
        ("(float[8] x) => (float[2] y)", "y, i = TopK<sorted = 0>(x, k)",
         {"k": np.array([2])}, "TensorRT has no TopK with 'sorted' other than 1: 0. Change sorted where the model is exported"),
        ("(float[1,1,8,8] x) => (float[1,1,4,4] y)",
         "y = MaxPool<kernel_shape = [2,2], dilations = [2,2], strides = [2,2]>(x)", {},
         "TensorRT has no MaxPool with 'dilations' other than 1: [2, 2]. Change dilations where the model is exported"),
        ("(float[1,1,8,8] x) => (float[1,1,16,16] y)",
         'y = Resize<mode = "cubic">(x, , r)', {"r": np.array([1, 1, 2, 2], np.float32)},
         "TensorRT has no Resize with 'mode' other than nearest or linear: 'cubic'. Change mode where the model is exported"),
        ("(float[4] x, float s) => (uint8[4] y)", "y = QuantizeLinear(x, s, z)",
         {"z": np.uint8(0)},
         "a scale that is not constant: TensorRT takes calibrated models only"),
    ],
)  # fmt: skip
def test_forms_that_it_excludes(signature, body, held, reason, tmp_path):
    onnx.save(model_of(signature, body, **held), tmp_path / "m.onnx")
    problems = serde.check(tmp_path / "m.onnx", to="tensorrt").problems
    assert reason in [p.reason for p in problems]
