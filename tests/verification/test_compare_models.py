"""Two models of other element types on the same inputs."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx.numpy_helper import from_array

import serde
from serde.cli.commands import main
from serde.errors import SerdeError, UsageError
from serde.verification.compare_models import compare_models
from testing.onnx_live import model_of

TEXT = (
    "g (float[N,8] x, int64[N] i) => (float[N,8] y, float[N,8] z) "
    "{ y = MatMul(x, w) z = Gather(w, i) }"
)


@pytest.fixture
def models(tmp_path):
    """The files of a model: in float32, with ends of float16, with another weight, of int32."""
    weight = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    paths = {n: tmp_path / f"{n}.onnx" for n in ("float32", "float16", "other", "int32", "bool")}
    for name, text in {
        "float32": TEXT, "other": TEXT, "int32": TEXT.replace("int64[N] i", "int32[N] i"),
        "bool": TEXT.replace("int64[N] i", "bool[N] c").replace(
            "z = ", "i = Cast<to = 7>(c) z = "),
    }.items():  # fmt: skip
        model = model_of(text, opset=18, ir_version=8)
        scale = np.float32(1.5 if name == "other" else 1)
        model.graph.initializer.append(from_array(weight * scale, "w"))
        onnx.save(model, paths[name])
    serde.convert(paths["float32"], paths["float16"], fp16=True, fp16_io=True)
    return paths


@pytest.mark.parametrize("first, second, agree, dtype", [
    ("float32", "float16", True, "float16"), ("float16", "float32", True, "float16"),
    ("float32", "int32", True, "float32"), ("float16", "int32", True, "float16"),
    ("other", "float16", False, "float16"), ("float16", "other", False, "float16"),
])  # fmt: skip
def test_each_is_fed_its_own_type(first, second, agree, dtype, models):
    """The tolerance is that of the type of fewer bits."""
    check = compare_models(models[first], models[second])
    assert check.done and [o.passed for o in check.outputs] == [agree, agree]
    assert {o.dtype for o in check.outputs} == {dtype}
    assert check.layers.layers and all(x.outcome.passed for x in check.layers.layers) is agree


def test_given_data_are_made_both_types(models):
    data = {"x": np.full((2, 8), 0.1, np.float32), "i": np.array([1, 7])}
    assert compare_models(models["float32"], models["float16"], data=data).ok


def test_other_kinds_are_refused(models):
    with pytest.raises(UsageError, match="'c' is int64 in the first model and bool in the second"):
        compare_models(models["float32"], models["bool"])


@pytest.fixture
def deep(tmp_path):
    """A model in float64, float32 and float16, and with float16 between ends of float32."""
    weights = np.random.default_rng(1).standard_normal((16, 16))
    text = "g ({0}[N,16] x) => ({0}[N,16] y) {{ a = MatMul(x, w) b = Tanh(a) y = MatMul(b, w) }}"
    paths = {}
    for name, kind in (("double", np.float64), ("float", np.float32), ("float16", np.float16)):
        model = model_of(text.format(name), opset=18, ir_version=8)
        model.graph.initializer.append(from_array(weights.astype(kind), "w"))
        onnx.save(model, paths.setdefault(name, tmp_path / f"{name}.onnx"))
    serde.convert(paths["float"], paths.setdefault("inside", tmp_path / "i.onnx"), fp16=True)
    return paths


@pytest.mark.parametrize("first", ["double", "float", "float16", "inside"])
@pytest.mark.parametrize("second", ["double", "float", "float16", "inside"])
def test_the_tolerance_is_that_of_the_type_of_fewer_bits(first, second, deep):
    found = serde.compare(deep[first], deep[second])
    assert found.done and found.ok and found.layers.first is None
    halves = {first, second} & {"float16", "inside"}
    share = 2e-2 if halves else 1e-6 if {first, second} == {"double"} else 1e-4
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 16))
    scale = np.abs(np.tanh(x @ _weights(deep)) @ _weights(deep)).max()
    assert found.outputs[0].tolerance == pytest.approx(share * scale, rel=0.02)


def _weights(paths):
    return onnx.numpy_helper.to_array(onnx.load(paths["double"]).graph.initializer[0])


def test_it_is_printed_and_shown(deep, tmp_path):
    found = serde.compare(deep["float"], deep["float16"], layers=True)
    lines = str(found).splitlines()
    assert lines[0] == f"{deep['float']} and {deep['float16']}"
    assert lines[2].startswith("  y float16[2, 16]: max_abs ") and lines[2].endswith(": pass")
    assert lines[3] == "  layers: 3 layers compared: all agree"
    assert "<iframe" in found._repr_html_() and "MatMul" in found.to_html()
    found.save(tmp_path / "c.html")
    assert serde.compare(deep["float"], deep["float16"], layers=False).layers is None


def test_integers_are_printed_as_integers(tmp_path):
    for name, op in (("a", "Add"), ("b", "Sub")):
        text = f"g (int64[3] x) => (int64[3] y) <int64 k = {{1000}}> {{ y = {op}(x, k) }}"
        onnx.save(model_of(text, 18, 8), tmp_path / f"{name}.onnx")
    found = serde.compare(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert not found.ok and "nan" not in str(found)
    assert "max_abs 2,000" in str(found) and "not equal: 3 of 3 elements" in str(found)
    assert ">2,000</td>" in found.to_html()


def test_formats_are_named(tmp_path):
    for name in ("a-symbol.json", "b-symbol.json"):
        text = "g (float[3] x) => (float[3] y) { y = Relu(x) }"
        (tmp_path / name).write_bytes(model_of(text, 18, 8).SerializeToString())
    names = {"from_format": "onnx", "other_format": "onnx"}
    assert serde.compare(tmp_path / "a-symbol.json", tmp_path / "b-symbol.json", **names).ok
    with pytest.raises(SerdeError, match="say which with from_format="):
        serde.compare(tmp_path / "a-symbol.json", tmp_path / "b-symbol.json")


@pytest.mark.parametrize("scale", [1e-9, 1e-7, 1e-5, 1.0])
def test_float16_is_compared_by_the_steps_it_has(tmp_path, scale):
    """Numbers below 2^-14 have fewer digits in float16, and those below 2^-25 are zero."""
    text = f"g (float[4,8] x) => (float[4,8] y) <float k = {{{scale:.3e}}}> {{ y = Mul(x, k) }}"
    onnx.save(model_of(text, 17, 8), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "half.onnx", fp16=True)
    assert serde.compare(tmp_path / "a.onnx", tmp_path / "half.onnx").ok
    wrong = text.replace("Mul(x, k) }", "Neg(x) }")
    onnx.save(model_of(wrong, 17, 8), tmp_path / "wrong.onnx")
    serde.convert(tmp_path / "wrong.onnx", tmp_path / "wrong16.onnx", fp16=True)
    assert not serde.compare(tmp_path / "a.onnx", tmp_path / "wrong16.onnx").ok


@pytest.mark.parametrize("is_second", [False, True])
def test_advice_names_the_option_of_the_model_that_lacks_something(is_second, models, tmp_path):
    """FIRST and SECOND have options of their own, on the command line and in Python."""
    other = "other_" if is_second else ""
    symbol = tmp_path / "net-symbol.json"
    node = {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "3"}}
    nodes = [{"op": "null", "name": n, "inputs": []} for n in ("data", "fc_weight", "fc_bias")]
    nodes.append({**node, "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]})
    symbol.write_text(json.dumps({"nodes": nodes, "arg_nodes": [0, 1, 2], "heads": [[3, 0, 0]]}))
    paths = (models["float32"], symbol) if is_second else (symbol, models["float32"])
    with pytest.raises(SerdeError) as caught:
        serde.compare(*paths)
    assert re.findall(r"\w+=", str(caught.value)) == [f"{other}params=", f"{other}inputs="]
    result = CliRunner().invoke(main, ["compare", *map(str, paths)])
    flags = [f"--{other}{word}".replace("_", "-") for word in ("params", "input")]
    assert re.findall(r"--[\w-]+", result.stderr) == flags
