"""Model-local functions: kept where the target has them, inlined where it has not."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import serde

BODY = """
<ir_version: 8, opset_import: ["": 17, "local": 1]>
main (float[N, 4] x) => (float[N, 4] y) {
  t = local.shifted <slope = 0.3> (x)
  y = local.twice (t)
}
<domain: "local", opset_import: ["": %d]>
shifted <slope> (a) => (b) {
  c = LeakyRelu <alpha: float = @slope> (a)
  one = Constant <value = float {1.0}> ()
  d = Add (c, one)
  b = Softmax <axis = 1> (d)
}
<domain: "local", opset_import: ["": 17, "local": 1]>
twice (a) => (b) {
  c = local.shifted <slope = 0.5> (a)
  b = local.shifted <slope = 0.7> (c)
}
"""


@pytest.fixture
def feeds():
    return {"x": np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)}


def outputs(path, feeds):
    return onnxruntime.InferenceSession(path).run(None, feeds)


@pytest.mark.parametrize(
    ("body", "opset", "kept"), [(17, 17, 2), (17, 21, 2), (17, 13, 0), (11, 17, 2), (17, 8, 0)]
)
def test_functions_compute_the_same(tmp_path, feeds, body, opset, kept):
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(parser.parse_model(BODY % body), source)
    serde.convert(source, target, opset=opset)
    assert len(onnx.load(target).functions) == kept
    onnx.checker.check_model(target, full_check=True)
    for got, expected in zip(outputs(target, feeds), outputs(source, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_function_that_calls_itself_is_refused(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17, "local": 1]>
    main (float[2] x) => (float[2] y) { y = local.f (x) }
    <domain: "local", opset_import: ["": 17, "local": 1]> f (a) => (b) { b = local.f (a) }"""
    onnx.save(parser.parse_model(text), tmp_path / "a.onnx")
    with pytest.raises(serde.Unconvertible, match="calls itself"):
        serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", opset=13)
