"""Nodes that stay in float32, on inputs beyond those that float16 squares or adds up."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import serde
from tests.passes.batches import model_with, random

# name: (text of the model, constants, what the inputs are multiplied with)
LOUD = {
    "a LayerNormalization": ("(float[2,8] x) => (float[2,8] y) { y = LayerNormalization(x, w) }", {"w": (8,)}, 500),
    "an InstanceNormalization": ("(float[2,3,9] x) => (float[2,3,9] y) { y = InstanceNormalization(x, w, b) }", {"w": (3,), "b": (3,)}, 500),
    "a BatchNormalization of its batch": ("(float[4,3,9] x) => (float[4,3,9] y) { y, m, v = BatchNormalization<training_mode=1>(x, w, b, b, w) }", {"w": np.float32([1, 2, 3]), "b": (3,)}, 500),
    "a mean of an image": ("(float[1,3,16,16] x) => (float[1,3] y) { p = Abs(x) y = ReduceMean<keepdims=0>(p, a) }", {"a": [2, 3]}, 1000),
    "a mean of all": ("(float[4,3,16] x) => (float y) { p = Abs(x) y = ReduceMean<keepdims=0>(p) }", {}, 1000),
    "a mean of any number": ("(float[1,3,T] x) => (float[1,3] y) { p = Abs(x) y = ReduceMean<keepdims=0>(p, a) }", {"a": [2]}, 1000),
    "codes of a codebook": ("(float[64,8] x) => (float[64,8] y) { q = Mul(x, x) s = ReduceSum(q, a) m = MatMul(x, t) n = Mul(m, two) d = Sub(s, n) e = Add(d, l) i = ArgMin<axis=1, keepdims=0>(e) y = Gather(c, i) }", {"a": [1], "t": random(16, 8, seed=3).T, "c": random(16, 8, seed=3), "l": (random(16, 8, seed=3) ** 2).sum(1), "two": np.float32(2)}, 60),
    "distances of points": ("(float[1,24,3] x) => (float[1,24,24] y) { q = Pow(x, two) s = ReduceSum(q, a) t = Transpose<perm=[0,2,1]>(x) m = MatMul(x, t) n = Mul(m, two) u = Transpose<perm=[0,2,1]>(s) v = Add(s, u) d = Sub(v, n) y = Sqrt(d) }", {"a": [2], "two": np.float32(2)}, 100),
    "linear attention": ("(float[1,24,8] x) => (float[1,24,8] y) { k = Relu(x) t = Transpose<perm=[0,2,1]>(k) c = MatMul(t, x) n = MatMul(k, c) s = ReduceSum(t, a) d = MatMul(k, s) e = Add(d, one) y = Div(n, e) }", {"a": [2], "one": np.float32(1)}, 100),
}  # fmt: skip


@pytest.mark.parametrize(("body", "constants", "loudness"), LOUD.values(), ids=LOUD)
@pytest.mark.parametrize("ends", [False, True])
def test_loud_inputs_are_held(ends, body, constants, loudness, tmp_path):
    source, target = tmp_path / "source.onnx", tmp_path / "target.onnx"
    onnx.save(model_with(body, **constants), source)
    x = onnx.load(source).graph.input[0]
    shape = [d.dim_value or 128 for d in x.type.tensor_type.shape.dim]
    feed = (random(*shape, seed=5) * loudness).astype(np.float16)
    serde.convert(source, target, fp16=True, fp16_io=ends, inputs={"x": shape})
    expected = ReferenceEvaluator(onnx.load(source)).run(None, {"x": feed.astype(np.float32)})[0]
    model = onnx.load(target)
    result = ReferenceEvaluator(model).run(None, {"x": feed if ends else feed.astype(np.float32)})
    bound = 2e-2 * max(np.abs(expected).max(), 1e-3)
    np.testing.assert_allclose(result[0].astype(np.float32), expected, 0, bound)


def test_short_means_and_products_alone_are_float16(tmp_path):
    body = "(float[2,8] x) => (float[2,1] y) { m = MatMul(x, w) y = ReduceMean(m, a) }"
    onnx.save(model_with(body, w=(8, 8), a=[1]), tmp_path / "a.onnx")
    graph = serde.load(tmp_path / "a.onnx", fp16=True)
    halves = {n.op for n in graph.nodes if n.outputs[0].dtype is serde.DType.FLOAT16}
    assert {"MatMul", "ReduceMean"} <= halves
