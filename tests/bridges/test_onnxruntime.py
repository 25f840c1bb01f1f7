"""ModelProto objects, and models run in ONNX Runtime."""

from __future__ import annotations

import os
import sys

import numpy as np
import onnx
import pytest

import serde
from serde.bridges import int8_products
from serde.bridges import onnxruntime as bridge
from serde.errors import MissingDependency, SerdeError, UsageError
from testing.onnx_live import decode_text, model_of

BODY = """g (float[N,3] x, float[N,3] unused) => (float[N,3] y, float[N,3] z)
{ y = Relu(x)
  z = Neg(y) }"""
X = np.float32([[1, -2, 3]])


def test_a_live_model_is_read():
    graph = serde.load(model_of(BODY, 17, 8))
    assert [v.name for v in graph.inputs] == ["x", "unused"]
    assert [n.op for n in graph.nodes] == ["Relu", "Neg"]


@pytest.mark.parametrize("live", [True, False])
def test_a_model_is_run(live, tmp_path):
    model = model_of(BODY, 17, 8)
    onnx.save(model, tmp_path / "m.onnx")
    source = model if live else tmp_path / "m.onnx"
    feeds = {"x": X, "unused": X, "stray": X}
    y, z = bridge.run(source, feeds)
    assert y.tolist() == [[1, 0, 3]] and z.tolist() == [[-1, 0, -3]]
    (only,) = bridge.run(source, feeds, outputs=["z"])
    assert only.tolist() == z.tolist()


def test_what_the_runtime_refuses_is_told():
    model = model_of(BODY, 17, 8)
    model.graph.node[0].op_type = "Rellu"
    with pytest.raises(SerdeError, match="ONNX Runtime refuses the model: .*Rellu"):
        bridge.run(model, {"x": X})


def test_without_the_runtime_the_pip_line_is_told(monkeypatch, tmp_path):
    (tmp_path / "onnxruntime.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'onnxruntime'\")"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SERDE_MAX_MEMORY", "2048")  # in a process of its own
    with pytest.raises(MissingDependency, match="pip install onnxruntime"):
        bridge.run(model_of(BODY, 17, 8), {"x": X})
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependency, match="pip install onnxruntime"):
        bridge.prepare(model_of(BODY, 17, 8), apart=False)


INTEGERS = {  # nodes, and whether they multiply integers
    "as such": ("y = MatMulInteger(q, w)", True),
    "between pairs": ("f = DequantizeLinear(q, s) p = MatMul(f, v) y = QuantizeLinear(p, s)", True),
    "no layer": ("f = DequantizeLinear(q, s) y = QuantizeLinear(f, s)", False),
    "floats": ("f = Cast<to = 1>(q) y = MatMul(f, v)", False),
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("is_exact", [True, False])
def test_inexact_integer_products(name, is_exact, monkeypatch):
    body, multiplies = INTEGERS[name]
    graph = decode_text(
        "g (uint8[N,4] q, int8[4,4] w, float[4,4] v, float s) => (float[M,K] y) { " + body + " }",
        17,
    )
    monkeypatch.setattr(int8_products, "adds_int8_exactly", lambda: is_exact)
    text = int8_products.describe_inexactness(graph)
    assert text == (int8_products.INEXACT if multiplies and not is_exact else "")


@pytest.mark.parametrize("mode", ["never", "always"])
def test_names_that_are_no_utf8(tmp_path, mode):
    """On Linux the name of a file is any bytes."""
    model = model_of("g (float[2,40] x) => (float[2,40] y) { y = MatMul(x, w) }", 17)
    weights = np.random.default_rng(0).standard_normal((40, 40)).astype("f")
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    target = tmp_path / os.fsdecode(b"caf\xe9.onnx")
    if mode == "always":
        with pytest.raises(UsageError, match="names its file of weights in UTF-8"):
            serde.convert(tmp_path / "m.onnx", target, external_data=mode)
        assert os.listdir(tmp_path) == ["m.onnx"]
        return
    assert serde.convert(tmp_path / "m.onnx", target, verify=True).verification.ok
    again = serde.convert(target, tmp_path / "again.onnx", verify=True)
    assert again.verification.ok
