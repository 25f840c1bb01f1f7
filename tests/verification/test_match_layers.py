"""Which layers of two models are the same, and which only have one name."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
from serde.verification.match_layers import is_generated, match_layers
from testing.onnx_live import ir_of, model_of

GENERATED = {
    ("add_2", "Add"): True, ("Add_2", "Add"): True, ("/layer1/Add_1_output_0", "Add"): True,
    ("17", "Conv"): True, ("onnx::Conv_12", "Conv"): True, ("add_2", "Mul"): False,
    ("conv1", "Conv"): True, ("conv1_output", "Convolution"): False, ("fc1", "Gemm"): False,
    ("broadcast_add0", "broadcast_add"): True, ("_plus3", "_Plus"): True,
    ("node_add_1", "Add"): True, ("add_1", "aten.add.Tensor"): True,
    ("conv2d_1", "aten.conv2d.default"): True, ("conv2d", "aten.conv2d.default"): False,
    ("scores", "Softmax"): False, ("add", "Add"): False, ("res2a_branch2a", "Conv"): False,
}  # fmt: skip
HEAD = "g (float[2,4] x) => (float[2,4] y) <float[4] b = {1,2,3,4}, float[4] c = {5,6,7,8}> "


@pytest.mark.parametrize(("name", "op"), GENERATED)
def test_names_that_tools_generate(name, op):
    assert is_generated(name, op) == GENERATED[name, op]


def pairs(first, second):
    return [(m.value.name, m.other.name) for m in match_layers(ir_of(first), ir_of(second))]


def test_generated_names_count_where_the_operands_are_the_same():
    one = HEAD + "{ add_1 = Add(x, b)\n r = Relu(add_1)\n add_2 = Add(r, c)\n y = Tanh(add_2) }"
    assert pairs(one, one) == [(n, n) for n in ("add_1", "r", "add_2", "y")]
    other = HEAD + "{ add_2 = Add(x, b)\n r = Relu(add_2)\n add_1 = Add(r, c)\n y = Tanh(add_1) }"
    assert pairs(one, other) == [("r", "r"), ("y", "y")]


def test_equal_models_with_names_that_coincide_have_no_layer_to_blame(tmp_path):
    """An export that counts otherwise: outputs are equal to the bit."""
    one = HEAD + "{ add_1 = Add(x, b)\n r = Relu(add_1)\n add_2 = Add(r, c)\n y = Tanh(add_2) }"
    other = HEAD + "{ add_2 = Add(x, b)\n r = Relu(add_2)\n add_3 = Add(r, c)\n y = Tanh(add_3) }"
    for name, body in (("a", one), ("b", other)):
        onnx.save(model_of(body, 17, 8), tmp_path / f"{name}.onnx")
    found = serde.compare(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert found.ok and found.layers.first is None and len(found.layers.layers) == 2


def test_generated_names_that_count_in_another_order_blame_no_layer(tmp_path):
    """Operands of one shape, added in another order: outputs agree, and so no number is a fault."""
    one = HEAD + "{ add_1 = Add(x, b)\n add_2 = Add(add_1, c)\n y = Neg(add_2) }"
    for name, body in (("a", one), ("b", one.replace("x, b", "x, c").replace("1, c", "1, b"))):
        onnx.save(model_of(body, 17, 8), tmp_path / f"{name}.onnx")
    found = serde.compare(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert found.ok and found.layers.first is None
    assert [x.value for x in found.layers.layers] == ["add_2", "y"]
    assert found.layers.not_compared == ["add_1: a number made the name, of another layer in the "
                                         "second"]  # fmt: skip
    onnx.save(model_of(one.replace("x, b", "x, c"), 17, 8), tmp_path / "b.onnx")
    found = serde.compare(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert not found.ok and found.layers.first == 0  # where outputs differ it may be the fault


def test_a_layer_that_was_rewritten_is_no_fault_where_outputs_agree(tmp_path):
    one = HEAD + "{ s = Add(x, b)\n y = Sub(s, b) }"
    other = HEAD + "{ s = Sub(x, b)\n y = Add(s, b) }"
    for name, body in (("a", one), ("b", other)):
        onnx.save(model_of(body, 17, 8), tmp_path / f"{name}.onnx")
    found = serde.compare(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert found.ok and found.layers.outputs_agree
    assert str(found.layers).startswith("the outputs agree; a layer that was rewritten")


def test_recorded_sources_go_before_names(tmp_path):
    """A layer whose value has the name of another: what is recorded tells."""
    model = model_of(HEAD + "{ s = Add(x, b)\n t = Relu(s)\n y = Tanh(t) }", 17, 8)
    for node, layer in zip(model.graph.node, ("first", "second", "third"), strict=True):
        node.metadata_props.add(key="serde.source", value=f"mxnet Some {layer}")
    onnx.save(model, tmp_path / "a.onnx")
    for node in model.graph.node:  # t and s change their names
        swap = {"s": "t", "t": "s"}
        node.input[:] = [swap.get(n, n) for n in node.input]
        node.output[:] = [swap.get(n, n) for n in node.output]
    onnx.save(model, tmp_path / "b.onnx")
    matched = match_layers(serde.load(tmp_path / "a.onnx"), serde.load(tmp_path / "b.onnx"))
    assert [(m.value.name, m.other.name) for m in matched] == [("s", "t"), ("t", "s"), ("y", "y")]


def test_a_layer_that_is_part_of_another_has_no_result_of_its_own(tmp_path):
    """The node before a fused one prepares an operand: it is not what the first layer computes."""
    model = model_of(HEAD + "{ s = Add(x, b)\n t = Relu(s)\n y = Tanh(t) }", 17, 8)
    layers = [["conv"], ["conv", "norm"], ["act"]]
    for node, names in zip(model.graph.node, layers, strict=True):
        for at, name in enumerate(names):
            key = f"serde.source.{at}" if at else "serde.source"
            node.metadata_props.add(key=key, value=f"mxnet Some {name}")
    onnx.save(model, tmp_path / "fused.onnx")
    graph = serde.load(tmp_path / "fused.onnx")
    body = "{ conv = Add(x, b)\n norm = Relu(conv)\n act = Tanh(norm)\n y = Abs(act) }"
    whole = ir_of(HEAD + body)
    for node in whole.nodes:
        node.name = node.outputs[0].name
    matched = [(m.value.name, m.other.name) for m in match_layers(whole, graph)]
    assert matched == [("norm", "t"), ("act", "y")]


def test_what_a_conversion_adds_is_called_by_its_own_name(tmp_path):
    weights = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    model = model_of("g (float[2,4] x) => (float[2,4] y) { y = MatMul(x, w) }", 17, 8)
    model.graph.initializer.append(weights)
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True)
    found = serde.compare(tmp_path / "b.onnx", tmp_path / "b.onnx")
    assert {layer.op for layer in found.layers.layers} == {"Cast", "MatMul"}
