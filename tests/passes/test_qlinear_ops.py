"""Products of integers, against ONNX Runtime's own kernels: of weights with a scale for each channel
before opset 13, and of data and results in units of 1.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from testing.onnx_live import LEVELS, run_at

Array = np.ndarray
RANDOM = np.random.default_rng(0)
DTYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8}
IMAGES, ROWS = (4, 6, 9, 8), (50, 30)
CONV = {"kernel_shape": [3, 3], "pads": [1, 0, 0, 1], "strides": [2, 1]}
PRODUCTS = {
    "Conv": (IMAGES, (8, 6, 3, 3), 0, CONV),
    "grouped": (IMAGES, (9, 2, 3, 3), 0, {**CONV, "group": 3}),
    "MatMul": (ROWS, (30, 7), 1, {}),
    "Gemm": (ROWS, (30, 7), 1, {}),
    "turned": (ROWS, (7, 30), 0, {"transB": 1}),
}
OPERATORS = {"grouped": "Conv", "turned": "Gemm"}


def model(
    kind,
    dtype="uint8",
    bias=True,
    relu=False,
    unit=1.0,
    zero=3,
    alpha=None,
    scales=(0.037, 0.21),
    by_channel=True,
):
    """Quantised data, a product with quantised weights, and its quantisation, at opset 13."""
    shape, weights, axis, attrs = PRODUCTS[kind]
    attrs = attrs if alpha is None else {**attrs, "alpha": alpha}
    count = weights[axis]
    steps = RANDOM.uniform(0.001, 0.02, count if by_channel else ()).astype(np.float32)
    of_data, of_result = np.float32(scales)
    low = 0 if dtype == "uint8" else -128
    zeros = np.array(low if relu else zero, dtype)
    held = {
        "s": of_data, "z": np.array(zero, dtype),
        "w": RANDOM.integers(-127, 128, weights).astype(np.int8), "ws": steps,
        "wz": np.zeros(steps.shape, np.int8), "ys": of_result, "yz": zeros,
        "b": RANDOM.integers(-3000, 3000, count).astype(np.int32),
        "bs": (of_data * steps * np.float32(unit)).astype(np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=axis),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["bf"], axis=0),
    ]
    operands = ["xf", "wf", *(["bf"] if bias else [])]
    nodes.append(helper.make_node(OPERATORS.get(kind, kind), operands, ["y"], **attrs))
    if relu:
        nodes.append(helper.make_node("Relu", ["y"], ["r"]))
    nodes.append(helper.make_node("QuantizeLinear", ["r" if relu else "y", "ys", "yz"], ["q"]))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", DTYPES[dtype], shape)],
        [helper.make_tensor_value_info("q", DTYPES[dtype], None)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in held.items()],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    info = np.iinfo(dtype)
    return proto, RANDOM.integers(info.min, info.max + 1, shape).astype(dtype)


def lower(proto, opset, folder):
    onnx.save(proto, folder / "given.onnx")
    serde.convert(folder / "given.onnx", folder / "made.onnx", opset=opset)
    return onnx.load(folder / "made.onnx")


def run(proto, x: Array) -> Array:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("opset", [10, 11, 12])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "kind, bias", [(k, b) for k in PRODUCTS for b in (True, False) if not (b and k == "MatMul")]
)
def test_kernel(kind, bias, dtype, opset, tmp_path) -> None:
    for relu in (False, True):
        proto, x = model(kind, dtype, bias, relu)
        result = lower(proto, opset, tmp_path)
        ops = {node.op_type for node in result.graph.node}
        assert ("QLinearMatMul" if kind == "MatMul" else "QLinearConv") in ops
        assert not ops & {"Conv", "MatMul", "Gemm", "QuantizeLinear", "DequantizeLinear"}
        np.testing.assert_array_equal(run(result, x), run(proto, x))


@pytest.mark.parametrize(
    "kind, changes",
    [("Conv", {"unit": 1.5}), ("Gemm", {"alpha": 0.5}), ("Gemm", {"unit": 0.5, "relu": True})],
)
def test_what_is_none_stays(kind, changes, tmp_path) -> None:
    """A bias in another unit, and a multiple of a product."""
    proto, _ = model(kind, **changes)
    assert kind in {node.op_type for node in lower(proto, 11, tmp_path).graph.node}


def test_scales_have_axes_from_opset_13_on(tmp_path) -> None:
    proto, x = model("Conv")
    result = lower(proto, 13, tmp_path)
    assert "QLinearConv" not in {node.op_type for node in result.graph.node}
    np.testing.assert_array_equal(run(result, x), run(proto, x))


@pytest.mark.parametrize("opset", [10, 13, 21])
@pytest.mark.parametrize("by_channel", [True, False])
@pytest.mark.parametrize("kind", PRODUCTS)
def test_units_of_one(kind, by_channel, opset, tmp_path) -> None:
    """The optimizers have nothing left to do."""
    proto, x = model(kind, bias=kind != "MatMul", scales=(1, 1), by_channel=by_channel)
    result = lower(proto, opset, tmp_path)
    ops = {node.op_type for node in result.graph.node}
    assert ("QLinearMatMul" if kind == "MatMul" else "QLinearConv") in ops
    assert not ops & {"Conv", "MatMul", "Gemm", "QuantizeLinear", "DequantizeLinear"}
    expected = run(proto, x)
    for level in LEVELS:
        np.testing.assert_array_equal(run_at(level, result, {"x": x})[0], expected, level)


@pytest.mark.parametrize("scales", [(1, 0.21), (0.037, 1)])
def test_other_units_stay(scales, tmp_path) -> None:
    proto, _ = model("Conv", scales=scales)
    ops = {node.op_type for node in lower(proto, 17, tmp_path).graph.node}
    assert "QLinearConv" not in ops


@pytest.mark.parametrize(
    ("profile", "form"),
    [("tensorrt", {"dtype": "int8", "zero": 0}), ("openvino", {}), ("npu-static", {})],
)
def test_profiles_that_read_pairs_keep_them(profile, form, tmp_path) -> None:
    proto, _ = model("Conv", scales=(1, 1), **form)
    onnx.save(proto, tmp_path / "given.onnx")
    serde.convert(tmp_path / "given.onnx", tmp_path / "made.onnx", profile=profile)
    ops = {node.op_type for node in onnx.load(tmp_path / "made.onnx").graph.node}
    assert {"DequantizeLinear", "Conv", "QuantizeLinear"} <= ops and "QLinearConv" not in ops
