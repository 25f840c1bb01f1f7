"""One broken file per defect; each loads and computes what was meant afterwards."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from serde.errors import MalformedFile
from serde.formats.onnx.repair import repair

rng = np.random.default_rng(0)
IMAGE = (2, 4, 4, 4)  # channels and width are equal: a slope along the wrong axis would not fail


def hold(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def model(nodes, tensors=(), shape=IMAGE, opset=7, ir=3, listed=True, domain=""):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    if listed:
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in tensors]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", inputs, [output], list(tensors))
    imports = [helper.make_opsetid(domain, opset)] if opset else []
    proto = helper.make_model(graph, ir_version=ir)
    del proto.opset_import[:]
    proto.opset_import.extend(imports)
    return proto


SLOPE, SCALE = np.float32([0.1, 0.2, 0.3, 0.4]), [f32(4) for _ in range(3)]
STATISTICS = [hold(n, a) for n, a in zip("gbm", SCALE, strict=True)] + [
    hold("v", np.float32([1, 2, 3, 4]))
]
WEIGHT = f32(64, 5)


def prelu(x):
    return np.where(x >= 0, x, x * SLOPE[:, None, None])


def normalise(x):
    g, b, m = (a[:, None, None] for a in SCALE)
    return g * (x - m) / np.sqrt(np.float32([1, 2, 3, 4])[:, None, None] + 1e-5) + b


node = helper.make_node


def choose(op, name):
    """An If whose branches read a value of the graph around them."""
    output = helper.make_tensor_value_info("o", TensorProto.FLOAT, None)
    body = helper.make_graph([node(op, [name], ["o"])], "body", [], [output])
    return node("If", ["c"], ["y"], then_branch=body, else_branch=body)


NORM = ["x", "g", "b", "m", "v"]
CASES = {  # name: model, what it means, what is said
    "slope": (model([node("PRelu", ["x", "s"], ["y"])], [hold("s", SLOPE)]), prelu, "slope of"),
    "spelling": (
        model([node("PReLU", ["x", "s"], ["y"])], [hold("s", SLOPE)]), prelu, "spelled PRelu",
    ),
    "spatial": (
        model([node("BatchNormalization", NORM, ["y"], spatial=0)], STATISTICS),
        normalise,
        "spatial is dropped",
    ),
    "consumed": (
        model([node("Relu", ["x"], ["y"], consumed_inputs=[0])]),
        lambda x: np.maximum(x, 0),
        "consumed_inputs is dropped",
    ),
    "opset": (model([node("Relu", ["x"], ["y"])], opset=None), lambda x: np.maximum(x, 0), "fits"),
    "domain": (
        model([node("Relu", ["x"], ["y"])], domain="onnx"),
        lambda x: np.maximum(x, 0),
        "is the default domain",
    ),
    "ir": (model([node("Relu", ["x"], ["y"])], ir=0), lambda x: np.maximum(x, 0), "IR version 0"),
    "double": (
        model([node("Mul", ["x", "two"], ["y"])], [hold("two", np.array(2.0))]),
        lambda x: x * 2,
        "becomes float32",
    ),
    "gemm": (
        model([node("Gemm", ["x", "w", "c"], ["y"])], [hold("w", WEIGHT), hold("c", f32(5) * 0)]),
        lambda x: x.reshape(2, 64) @ WEIGHT,
        "is flattened",
    ),
    "node names": (
        model([node("Relu", ["x"], ["t"], name="n"), node("Neg", ["t"], ["y"], name="n")]),
        lambda x: -np.maximum(x, 0),
        "a second node called 'n'",
    ),
    "value names": (
        model([node("Relu", ["x"], ["t"]), node("Neg", ["t"], ["t"]), node("Abs", ["t"], ["y"])]),
        lambda x: np.maximum(x, 0),
        "a second value called 't'",
    ),
    "value names in a body": (
        model(
            [node("Relu", ["x"], ["t"]), node("Neg", ["t"], ["t"]), choose("Abs", "t")],
            [hold("c", np.array(True))], opset=11, ir=6,
        ),
        lambda x: np.maximum(x, 0),
        "a second value called 't'",
    ),
    "spelling in a body": (
        model([choose("ABS", "x")], [hold("c", np.array(True))], opset=11, ir=6),
        np.abs,
        "spelled Abs",
    ),
    "initializers": (
        model([node("Mul", ["x", "two"], ["y"])], [hold("two", np.float32(2))] * 2, ir=4,
              listed=False),
        lambda x: x * 2,
        "initializer 'two' is there twice",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_repair(tmp_path, name):
    broken, meant, change = CASES[name]
    onnx.save(broken, tmp_path / "old.onnx")
    changes = repair(tmp_path / "old.onnx", tmp_path / "new.onnx")
    assert any(change in line for line in changes), changes
    onnx.checker.check_model(tmp_path / "new.onnx", full_check=True)
    x = f32(*IMAGE)
    (got,) = onnxruntime.InferenceSession(tmp_path / "new.onnx").run(None, {"x": x})
    np.testing.assert_allclose(got, meant(x), rtol=1e-4, atol=1e-5)


def test_a_sound_file_is_left_alone(tmp_path):
    sound = model([node("Relu", ["x"], ["y"], name="r")], opset=17, ir=8)
    onnx.save(sound, tmp_path / "old.onnx")
    assert repair(tmp_path / "old.onnx", tmp_path / "new.onnx") == []


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "old.onnx").write_bytes(b"<html>not found</html>")
    with pytest.raises(MalformedFile, match=r"old\.onnx"):
        repair(tmp_path / "old.onnx", tmp_path / "new.onnx")
    assert not (tmp_path / "new.onnx").exists()
