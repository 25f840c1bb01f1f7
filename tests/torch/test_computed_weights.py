"""Weights that are computed of others, as those of weight norm, are computed in ``forward``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.bridges.torch import TorchWorker
from tests.torch.test_training import step_torch
from tests.torch.torch_live import why_not

MODELS = {  # those of arrays v and g, which are trained
    "weight norm": "n = ReduceL2<axes = [1, 2, 3]>(v) u = Div(v, n) w = Mul(u, g) y = Conv(x, w, b)",
    "a scale of a weight": "h = Constant<value_float = 0.3>() n = Mul(g, h) w = Mul(v, n) "
    "y = Conv(x, w, b)",
    "a weight in a product": "s = Constant<value_ints = [4, 27]>() t = Constant<value_ints = [-1, 27]>() "
    "q = Tanh(v) r = Reshape(q, s) c = Reshape(g, t) m = Transpose<perm = [1, 0]>(r) "
    "f = Constant<value_ints = [1, 4]>() k = Reshape(g, f) l = Mul(m, k) "
    "e = Reshape(x, t) p = MatMul(e, l) y = Identity(p)",
    "arrays turned, and in two shapes": "s = Constant<value_ints = [4, 27]>() "
    "t = Constant<value_ints = [-1, 27]>() f = Constant<value_ints = [1, 4]>() w = Reshape(v, s) "
    "c = Constant<value_ints = [4, 1]>() m = Transpose<perm = [1, 0]>(w) k = Reshape(g, f) "
    "u = Reshape(g, c) e = Reshape(x, t) p = MatMul(e, m) h = Mul(p, k) a = Tanh(w) "
    "l = Mul(a, u) q = MatMul(h, l) y = Identity(q)",
}  # fmt: skip


def make_model(body: str) -> onnx.ModelProto:
    """A model with the arrays v, g and b."""
    body = body.replace("c = Reshape(g, t) ", "")
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1,3,9,9] x) => (float[M,K] y) {{ {body} }}'
    )
    if "Conv" in body:
        model.graph.output[0].CopyFrom(
            onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 4, 7, 7])
        )
    generator = np.random.default_rng(4)
    for name, shape in (("v", (4, 3, 3, 3)), ("g", (4, 1, 1, 1)), ("b", (4,))):
        array = generator.standard_normal(shape, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


def compute_loss(model: onnx.ModelProto, x: np.ndarray, name: str, change: np.ndarray) -> float:
    """The mean of squares in ONNX Runtime where an array is changed."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        if tensor.name == name:
            array = onnx.numpy_helper.to_array(tensor) + change
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, name))
    (y,) = onnxruntime.InferenceSession(changed.SerializeToString()).run(None, {"x": x})
    return float((y.astype(np.float64) ** 2).mean())


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
@pytest.mark.parametrize(
    ("name", "options"), [*((name, {}) for name in MODELS), ("weight norm", {"static": {"N": 1}})]
)
def test_they_train_what_they_are_computed_of(name: str, options, tmp_path: Path) -> None:
    model = make_model(MODELS[name])
    if options:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    serde.convert(model, tmp_path / "net.py", to_format="torch", **options)
    x = np.random.default_rng(6).standard_normal((1, 3, 9, 9), np.float32)
    gradients = step_torch(tmp_path / "net.py", {"x": x}).gradients
    keys = json.loads((tmp_path / "net.names.json").read_text())
    for array, shape in (("v", (4, 3, 3, 3)), ("g", (4, 1, 1, 1))):
        (key,) = keys[array]
        way = np.random.default_rng(7).standard_normal(shape, np.float32) * np.float32(1e-2)
        ends = [compute_loss(model, x, array, s * way) for s in (np.float32(1), np.float32(-1))]
        expected = (ends[0] - ends[1]) / 2
        got = float((gradients[key].reshape(shape) * way).sum())
        assert got == pytest.approx(expected, rel=1e-2, abs=1e-6)  # differences of float32


def test_the_form_of_inference_has_them_folded(tmp_path: Path) -> None:
    model = make_model(MODELS["weight norm"])
    serde.convert(model, tmp_path / "net.py", to_format="torch", inference=True)
    source = (tmp_path / "net.py").read_text()
    assert "nn.Conv2d(3, 4, 3)" in source and "nn.Parameter" not in source


NUMBERS = {  # those of an array of one element, ``m.scale``
    "a scale": "y = Mul(x, s)",
    "a temperature": "t = Exp(s) y = Mul(x, t)",
    "a slope": "y = PRelu(x, s)",
    "a share": "t = Sigmoid(s) a = Mul(x, t) b = Tanh(x) y = Add(a, b)",
}


def make_number_model(body: str, producer: str) -> onnx.ModelProto:
    """A model with an array of one element, as PyTorch names it in a module."""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1,3,9,9] x) => (float[1,3,9,9] y) {{ {body} }}'
    )
    model.producer_name = producer
    for node in model.graph.node:
        node.input[:] = ["m.scale" if name == "s" else name for name in node.input]
    array = np.array([0.4], np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "m.scale"))
    return model


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
@pytest.mark.parametrize("name", NUMBERS)
def test_an_array_of_one_element_is_trained(name: str, tmp_path: Path) -> None:
    model = make_number_model(NUMBERS[name], "pytorch")
    serde.convert(model, tmp_path / "net.py", to_format="torch")
    x = np.random.default_rng(6).standard_normal((1, 3, 9, 9), np.float32)
    ((key,),) = json.loads((tmp_path / "net.names.json").read_text()).values()
    gradient = step_torch(tmp_path / "net.py", {"x": x}).gradients[key]
    step = np.float32(1e-2)
    ends = [compute_loss(model, x, "m.scale", s * step) for s in (np.float32(1), np.float32(-1))]
    expected = (ends[0] - ends[1]) / (2 * float(step))
    assert float(gradient.sum()) == pytest.approx(expected, rel=1e-2)


def test_other_numbers_are_no_parameters(tmp_path: Path) -> None:
    serde.convert(
        make_number_model("y = Mul(x, s)", "tf2onnx"), tmp_path / "net.py", to_format="torch"
    )
    assert "x * 0.4" in (tmp_path / "net.py").read_text()


def test_dequantized_weights_are_those_of_a_layer(tmp_path: Path) -> None:
    """They train, and are known by the array of integers that they stand for."""
    text = """<ir_version: 8, opset_import: ["": 17]> q (float[2,3] x) => (float[2,4] y) {
      s = Constant<value_float = 0.5>() w = DequantizeLinear(wq, s) y = MatMul(x, w)
    }"""
    model = onnx.parser.parse_model(text)
    integers = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    model.graph.initializer.append(onnx.numpy_helper.from_array(integers, "wq"))
    serde.convert(model, tmp_path / "n.py", to_format="torch", dequantize=True)
    assert "nn.Linear(3, 4, bias=False)" in (tmp_path / "n.py").read_text()
    ((name, keys),) = json.loads((tmp_path / "n.names.json").read_text()).items()
    assert name == "wq" and len(keys) == 1 and keys[0].endswith(".weight")


def test_masks_of_an_array_are_no_constants(tmp_path: Path) -> None:
    body = (
        "z = Constant<value_float = 0.0>() g = Greater(w, z) c = Cast<to = 1>(g) y = MatMul(x, c)"
    )
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[2,4] x) => (float[2,4] y) {{ {body} }}'
    )
    w = np.random.default_rng(4).standard_normal((4, 4), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    serde.convert(model, tmp_path / "net.py", to_format="torch")
    assert "self.w > 0" in (tmp_path / "net.py").read_text()
    if not why_not():
        x = np.random.default_rng(5).standard_normal((2, 4), np.float32)
        (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        (got,) = TorchWorker().run(str(tmp_path / "net.py"), [x])
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
