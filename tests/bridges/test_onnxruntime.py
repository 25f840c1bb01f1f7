"""ModelProto objects, and models run in ONNX Runtime."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest

import serde
from serde.bridges import onnxruntime as bridge
from serde.errors import MissingDependency, SerdeError
from tests.onnx_live import model_of

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


def test_without_the_runtime_the_pip_line_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependency, match=r"pip install 'serde-hub\[verify\]'"):
        bridge.run(model_of(BODY, 17, 8), {"x": X})
