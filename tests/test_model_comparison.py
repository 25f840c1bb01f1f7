"""``serde.compare`` compares models of any formats."""

import numpy as np
import onnx
import pytest

import serde
from serde.api.model_comparison import compare
from testing.onnx_live import model_of

TEXT = '<ir_version: 8, opset_import: ["": 17]> g (float[N,3] x) => (float[N,3] y) {{ {} }}'


def write(folder, name, body):
    path = folder / name
    onnx.save(onnx.parser.parse_model(TEXT.format(body)), path)
    return path


def test_equal_models_agree_and_others_do_not(tmp_path):
    first = write(tmp_path, "a.onnx", "z = Relu(x) y = Exp(z)")
    same = write(tmp_path, "b.onnx", "r = Relu(x) y = Exp(r)")
    other = write(tmp_path, "c.onnx", "z = Abs(x) y = Exp(z)")
    assert compare(first, same).ok
    differing = compare(first, other)
    assert not differing.ok
    assert "Abs" in str(differing) or "z" in str(differing)


def test_a_tolerance_lets_models_differ(tmp_path):
    first = write(tmp_path, "a.onnx", "y = Relu(x)")
    shift = "c = Constant<value_float = 0.001>() r = Relu(x) y = Add(r, c)"
    second = write(tmp_path, "b.onnx", shift)
    data = {"x": np.ones((2, 3), np.float32)}
    assert not serde.compare(first, second, data=data, layers=False).ok
    assert serde.compare(first, second, data=data, layers=False, atol=0.01).ok


def test_models_of_other_inputs_are_refused(tmp_path):
    first = write(tmp_path, "a.onnx", "y = Relu(x)")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[3] x, float[3] z) => (float[3] y) '
        "{ y = Add(x, z) }"
    )
    onnx.save(model, tmp_path / "b.onnx")
    with pytest.raises(serde.UsageError):
        compare(first, tmp_path / "b.onnx")


def test_shapes_of_the_second_model(tmp_path):
    model = model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    onnx.save(model, tmp_path / "a.onnx")
    path = tmp_path / "a.onnx"
    assert serde.compare(path, path, other_inputs={"x": (3, 3)}).ok
    assert serde.compare(path, path, inputs={"x": (3, 3)}, other_inputs={"x": (3, 3)}).ok
    with pytest.raises(serde.UsageError, match=r"\(2, 3\) in the first model and \(3, 3\)"):
        serde.compare(path, path, inputs={"x": (2, 3)}, other_inputs={"x": (3, 3)})
