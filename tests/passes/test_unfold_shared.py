"""Constants that were folded from weights which others read as well."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
from serde import pipeline
from testing.onnx_live import model_of, run_model

SIZE = 64 * 48 * 4  # bytes of the weight
MODELS = {  # the model, what is computed of the weight w anew, and its bytes
    "tied embeddings": (
        "g (int64[N,S] x) => (float[N,S,64] y)"
        "{ e = Gather(w, x) t = Transpose<perm=[1,0]>(w) y = MatMul(e, t) }", "Transpose", SIZE),
    "an autoencoder": (
        "g (float[N,64] x) => (float[N,64] y)"
        "{ a = MatMul(x, w) t = Transpose<perm=[1,0]>(w) b = Relu(a) y = MatMul(b, t) }",
        "Transpose", SIZE),
    "a row": (
        "g (float[N,64] x, float[3072] r) => (float[N,48] y, float[3072] z) <int64[1] s = {-1}>"
        "{ y = MatMul(x, w) a = Reshape(w, s) z = Add(r, a) }", "Reshape", SIZE),
    "other elements": (
        "g (float[N,64] x, float16[N,64] r) => (float[N,48] y, float16[N,48] z)"
        "{ y = MatMul(x, w) a = Cast<to=10>(w) z = MatMul(r, a) }", "Cast", SIZE),
    "a multiple": (
        "g (int64[N,S] x, float[N,S,48] r) => (float[N,S,48] y, float[N,S,64] z) <float s = {3}>"
        "{ m = Mul(w, s) y = Gather(m, x) t = Transpose<perm=[1,0]>(w) z = MatMul(r, t) }",
        "", 2 * SIZE),
    "a multiple, and itself": (
        "g (int64[N,S] x, float[N,64] r) => (float[N,S,48] y, float[N,48] z) <float s = {3}>"
        "{ m = Mul(w, s) y = Gather(m, x) z = MatMul(r, w) }", "Mul", SIZE),
    "more rows": (
        "g (int64[N,S] x, float[N,64] r) => (float[N,S,48] y, float[N,48] z) <int64[1] a = {0}>"
        "{ m = Concat<axis=0>(w, w) y = Gather(m, x) z = MatMul(r, w) }", "Concat", SIZE),
    "alone": (
        "g (float[N,48] x) => (float[N,64] y)"
        "{ t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }", "", SIZE),
    "in a branch": (
        "g (float[2,64] x, bool c) => (float[2,64] y) { a = MatMul(x, w) y = If(c) <then_branch ="
        "t () => (float[2,64] p) { t = Transpose<perm=[1,0]>(w) p = MatMul(a, t) }, else_branch ="
        "e () => (float[2,64] q) { q = Neg(x) }> }", "Transpose", SIZE),
}  # fmt: skip
WAYS = {
    "plain": {}, "opset 9": {"opset": 9}, "opset 21": {"opset": 21}, "fp16": {"fp16": True},
    "onnxruntime": {"profile": "onnxruntime"}, "openvino": {"profile": "openvino"},
}  # fmt: skip


def write(name, path):
    model = model_of(MODELS[name][0])
    array = np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(array, "w"))
    onnx.save(model, path)
    rng, feeds = np.random.default_rng(1), {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [d.dim_value or 2 for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        feeds[value.name] = rng.integers(0, 2, shape).astype(dtype)
    return model, feeds


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_a_weight_is_in_the_file_once(name, way, tmp_path):
    model, feeds = write(name, tmp_path / "a.onnx")
    _, op, size = MODELS[name]
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", **WAYS[way])
    done = onnx.load(tmp_path / "b.onnx")
    weights = sum(numpy_helper.to_array(t).nbytes for t in done.graph.initializer)
    assert weights < 1.1 * (size / 2 if way == "fp16" else size)
    ops = [n.op_type for n in done.graph.node]
    assert not op or op in ops or way == "fp16"
    expected, got = run_model(model, feeds), run_model(done, feeds)
    for a, b in zip(expected, got, strict=True):
        scale = 0.01 if way == "fp16" or b.dtype == np.float16 else 1e-5
        assert np.abs(a - b).max() <= scale * max(1, np.abs(a).max())


def test_other_formats_keep_what_is_folded(tmp_path):
    write("an autoencoder", tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.relay")
    assert pipeline.format_name(tmp_path / "b.relay") == "relay"
