"""Weights of uint8 as int8: the same products, of the operators that have faster kernels for them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from tests.mxnet.int8 import needs_exact_int8
from tests.onnx_live import LEVELS, run_at

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


def weight_types(made: onnx.ModelProto) -> set[int]:
    """The element types of the weights and zero points of products."""
    types = {t.name: t.data_type for t in made.graph.initializer}
    types |= {i.name: i.type.tensor_type.elem_type for i in made.graph.input}
    places = [(n, PLACES[n.op_type]) for n in made.graph.node if n.op_type in PLACES]
    assert places
    return {types[n.input[at + more]] for n, at in places for more in (0, 2)}


def written(source, folder, **options) -> onnx.ModelProto:
    serde.convert(source, folder / "made.onnx", **options)
    return onnx.load(folder / "made.onnx")


@needs_exact_int8
@pytest.mark.parametrize("by_channel", [True, False])
@pytest.mark.parametrize("op", ["MatMulInteger", "QLinearConv", "QLinearMatMul"])
def test_the_products_are_the_same(op, by_channel, tmp_path) -> None:
    given, feeds = model(op, by_channel=by_channel)
    made = written(given, tmp_path, int8_weights=True)
    assert weight_types(made) == {TensorProto.INT8}
    for level in LEVELS:
        for got, wanted in zip(
            run_at(level, made, feeds), run_at(level, given, feeds), strict=True
        ):
            np.testing.assert_array_equal(got, wanted, level)


@pytest.mark.parametrize(
    "given",
    [
        model("ConvInteger")[0],
        model("QLinearConv", zero=127)[0],
        model("MatMulInteger", constant=False)[0],
    ],
    ids=["ConvInteger", "another zero point", "weights that are an input"],
)
def test_others_stay(given, tmp_path) -> None:
    assert weight_types(written(given, tmp_path, int8_weights=True)) == {TensorProto.UINT8}


def test_weights_are_uint8_unless_asked(tmp_path) -> None:
    given, _ = model("QLinearConv")
    assert weight_types(written(given, tmp_path)) == {TensorProto.UINT8}


def test_weights_of_two_layers_are_one_constant(tmp_path) -> None:
    given, _ = model("MatMulInteger")
    again = helper.make_node("MatMulInteger", ["x", "w", "z", "wz"], ["y2"], name="again")
    given.graph.node.append(again)
    given.graph.output.append(helper.make_tensor_value_info("y2", TensorProto.INT32, None))
    given.graph.node[0].input[2:] = ["z", "wz"]
    made = written(given, tmp_path, int8_weights=True)
    large = [t for t in made.graph.initializer if len(t.dims) == 2]
    assert [t.data_type for t in large] == [TensorProto.INT8]
