"""Weights of uint8 as int8: the same products, of the operators that have faster kernels for them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from testing.mxnet.int8 import needs_exact_int8
from testing.onnx_live import LEVELS, run_at

RANDOM = np.random.default_rng(0)
PLACES = {"MatMulInteger": 1, "ConvInteger": 1, "QLinearConv": 3, "QLinearMatMul": 3}
BYTES = {np.dtype("uint8"): TensorProto.UINT8, np.dtype("int8"): TensorProto.INT8}


def model(op, zero=128, by_channel=False, constant=True):
    """A product of uint8 and weights of uint8, whose zero point is ``zero``."""
    images = op.endswith("Conv") or op == "ConvInteger"
    shape, weights = ((2, 6, 9, 8), (8, 6, 3, 3)) if images else ((50, 30), (30, 8))
    scales = RANDOM.uniform(0.001, 0.02, 8 if by_channel else ()).astype(np.float32)
    held = {
        "s": np.float32(0.3), "z": np.uint8(3), "ws": scales,
        "w": RANDOM.integers(1, 256, weights).astype(np.uint8),
        "wz": np.full(scales.shape, zero, np.uint8), "ys": np.float32(0.7), "yz": np.uint8(120),
    }  # fmt: skip
    integer = op.endswith("Integer")
    operands = "x w z wz" if integer else "x s z w ws wz ys yz"
    inputs = {"x": RANDOM.integers(0, 256, shape).astype(np.uint8)}
    if not constant:
        inputs["w"] = held.pop("w")
    output = TensorProto.INT32 if integer else TensorProto.UINT8
    graph = helper.make_graph(
        [helper.make_node(op, operands.split(), ["y"], name="layer")], "g",
        [helper.make_tensor_value_info(n, BYTES[v.dtype], v.shape) for n, v in inputs.items()],
        [helper.make_tensor_value_info("y", output, None)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in held.items()
         if n in operands.split()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), inputs


def weight_types(model: onnx.ModelProto) -> set[int]:
    """The element types of the weights and zero points of products."""
    types = {t.name: t.data_type for t in model.graph.initializer}
    types |= {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    places = [(n, PLACES[n.op_type]) for n in model.graph.node if n.op_type in PLACES]
    assert places
    return {types[n.input[at + more]] for n, at in places for more in (0, 2)}


def write(source, folder, **options) -> onnx.ModelProto:
    serde.convert(source, folder / "made.onnx", **options)
    return onnx.load(folder / "made.onnx")


@needs_exact_int8
@pytest.mark.parametrize("by_channel", [True, False])
@pytest.mark.parametrize("op", ["MatMulInteger", "QLinearConv", "QLinearMatMul"])
def test_the_products_are_the_same(op, by_channel, tmp_path) -> None:
    source, feeds = model(op, by_channel=by_channel)
    new_model = write(source, tmp_path, int8_weights=True)
    assert weight_types(new_model) == {TensorProto.INT8}
    for level in LEVELS:
        for got, expected in zip(
            run_at(level, new_model, feeds), run_at(level, source, feeds), strict=True
        ):
            np.testing.assert_array_equal(got, expected, level)


@pytest.mark.parametrize(
    "source",
    [
        model("ConvInteger")[0],
        model("QLinearConv", zero=127)[0],
        model("MatMulInteger", constant=False)[0],
    ],
    ids=["ConvInteger", "another zero point", "weights that are an input"],
)
def test_others_stay(source, tmp_path) -> None:
    assert weight_types(write(source, tmp_path, int8_weights=True)) == {TensorProto.UINT8}


def test_weights_are_uint8_unless_asked(tmp_path) -> None:
    source, _ = model("QLinearConv")
    assert weight_types(write(source, tmp_path)) == {TensorProto.UINT8}


def test_weights_of_two_layers_are_one_constant(tmp_path) -> None:
    source, _ = model("MatMulInteger")
    again = helper.make_node("MatMulInteger", ["x", "w", "z", "wz"], ["y2"], name="again")
    source.graph.node.append(again)
    source.graph.output.append(helper.make_tensor_value_info("y2", TensorProto.INT32, None))
    source.graph.node[0].input[2:] = ["z", "wz"]
    new_model = write(source, tmp_path, int8_weights=True)
    large = [t for t in new_model.graph.initializer if len(t.dims) == 2]
    assert [t.data_type for t in large] == [TensorProto.INT8]


@pytest.mark.parametrize(("op", "zero", "noted"), [
    ("QLinearConv", 128, True), ("MatMulInteger", 128, True), ("QLinearConv", 127, False),
    ("ConvInteger", 128, False),
])  # fmt: skip
def test_a_note_names_the_option_where_it_changes_weights(op, zero, noted, tmp_path) -> None:
    source, _ = model(op, zero=zero)
    report = serde.convert(source, tmp_path / "made.onnx")
    assert any("profile='onnxruntime'" in note for note in report.notes) == noted
    report = serde.convert(source, tmp_path / "signed.onnx", int8_weights=True)
    assert not any("profile='onnxruntime'" in note for note in report.notes)
