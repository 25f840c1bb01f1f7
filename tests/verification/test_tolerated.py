"""Differences that roundings decide, and those that they do not."""

import numpy as np
import onnx
import pytest

import serde
from conformance.options.models import build_model
from serde.verification.compare_models import compare_models
from tests.passes.batches import model_with

FLOAT64 = """(float[1,64] x) => (double[1,8] y) {
  m = MatMul(x, w) d = Cast<to=11>(m) y = Add(d, o) }"""
MODELS = {
    "an output of float64": lambda: model_with(FLOAT64, w=(64, 8), o=np.float64([1])),
    "the largest of near numbers in a body": lambda: build_model("if/image/45", 1).proto,
}


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("ends", [False, True])
def test_roundings_of_float16_are_no_faults(ends, build, tmp_path):
    onnx.save(build(), tmp_path / "a.onnx")
    report = serde.convert(
        tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True, fp16_io=ends, verify=True
    )
    assert report.verification.done and report.verification.ok
    assert not ends or compare_models(tmp_path / "a.onnx", tmp_path / "b.onnx", layers=False).ok


def test_another_index_is_a_fault_in_float16_too(tmp_path):
    body = "(float[1,64] x) => (int64[1] y) { m = MatMul(x, w) y = ArgMax<axis=1, keepdims=0>(m) }"
    wrong = body.replace("ArgMax", "ArgMin")
    for name, text in (("a", body), ("c", wrong)):
        onnx.save(model_with(text, w=(64, 50)), tmp_path / f"{name}.onnx")
    serde.convert(tmp_path / "c.onnx", tmp_path / "b.onnx", fp16=True)
    found = serde.verify(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True)
    assert found.done and not found.ok


def test_extremes_of_nan_are_not_compared(tmp_path):
    body = (
        "(float[1,9,32] x) => (float[1,16] y) { m = MatMul(x, w) y = ReduceMax<keepdims=0>(m, a) }"
    )
    onnx.save(model_with(body, w=(32, 16), a=[1]), tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", rebatch=3, verify=True)
    assert report.verification.done and report.verification.ok
