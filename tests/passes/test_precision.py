"""Weights and arithmetic in fewer bits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array, to_array

import serde
from serde.errors import UsageError
from tests.onnx_live import error, model_of, run_model

NETWORK = """g (float[2,3,8,8] x, int64[2] i) => (float[2,80] y, float[2,64] z, int64[2] j) {
    c = Conv<pads = [2, 2, 2, 2]>(x, k)
    b = BatchNormalization(c, s, t, m, u)
    r = Relu(b)
    g = GlobalAveragePool(r)
    f = Flatten(g)
    h = MatMul(f, w)
    q = ReduceSumSquare<keepdims = 1>(h)
    n = Div(h, q)
    y = Softmax(n)
    z = Gather(e, i)
    j = Identity(i)
}"""
SHAPES = {"k": (64, 3, 5, 5), "w": (64, 80), "s": (64,), "t": (64,), "m": (64,), "u": (64,),
          "e": (80, 64)}  # fmt: skip


@pytest.fixture
def network(tmp_path):
    """A model in a file, with inputs and outputs."""
    draws = np.random.default_rng(0)
    model = model_of(NETWORK, opset=17, ir_version=8)
    for name, shape in SHAPES.items():
        array = draws.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(from_array(array, name))
    onnx.save(model, tmp_path / "a.onnx")
    feeds = {"x": draws.standard_normal((2, 3, 8, 8)).astype(np.float32), "i": np.array([1, 4])}
    return tmp_path / "a.onnx", feeds, run_model(model, feeds)


def convert(network, **options):
    """What is made of the model, verified, and how far its outputs are off."""
    path, feeds, expected = network
    report = serde.convert(path, path.with_name("b.onnx"), verify=True, **options)
    assert report.ok
    model = onnx.load(path.with_name("b.onnx"))
    for entry in model.graph.input:
        is_half = entry.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
        feeds = {
            **feeds,
            entry.name: feeds[entry.name].astype(
                np.float16 if is_half else feeds[entry.name].dtype
            ),
        }
    got = run_model(model, feeds)
    return model, max(error(a.astype(b.dtype), b) for a, b in zip(got, expected, strict=True)), got


def test_half_precision(network):
    model, off, got = convert(network, fp16=True)
    assert 0 < off < 2e-2
    kinds = Counter(to_array(t).dtype for t in model.graph.initializer)
    assert kinds[np.dtype(np.float32)] == 0 and kinds[np.dtype(np.float16)] == len(SHAPES)
    assert [a.dtype for a in got] == [np.float32, np.float32, np.int64]
    kept = next(n for n in model.graph.node if n.op_type == "ReduceSumSquare")
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.value_info}
    assert types[kept.output[0]] == onnx.TensorProto.FLOAT


def test_ends_in_half_precision(network):
    model, off, got = convert(network, fp16=True, fp16_io=True)
    assert off < 2e-2 and [a.dtype for a in got] == [np.float16, np.float16, np.int64]
    assert [v.name for v in model.graph.output] == ["y", "z", "j"]


def test_operators_that_are_kept(network):
    model, _, _ = convert(network, fp16=True, fp16_keep=["Conv", "BatchNormalization"])
    single = {t.name for t in model.graph.initializer if to_array(t).dtype == np.float32}
    assert single == {"k", "s", "t", "m", "u"}


@pytest.mark.parametrize("kind, bound", [("fp16", 1e-3), ("bf16", 1e-2), ("int8", 1e-2)])
def test_weights(kind, bound, network):
    model, off, _ = convert(network, weights=kind)
    assert 0 < off < bound
    counts = Counter(n.op_type for n in model.graph.node)
    assert counts["DequantizeLinear" if kind == "int8" else "Cast"] == 3


def test_numbers_beyond_the_range(tmp_path):
    """A mask of -1e9 and an epsilon of 1e-12 become the next numbers that float16 has."""
    text = "g (float[2] x) => (float[2] y) { a = Add(x, m) b = Mul(a, e) y = Div(b, e) }"
    model = model_of(text, opset=17, ir_version=8)
    held = {"m": np.array([-1e9, 0], np.float32), "e": np.array([1e-12], np.float32)}
    model.graph.initializer.extend(from_array(a, n) for n, a in held.items())
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True)
    arrays = {t.name: to_array(t) for t in onnx.load(tmp_path / "b.onnx").graph.initializer}
    assert arrays["m"].tolist() == [-65504, 0] and arrays["e"].tolist() == [2.0**-24]


def test_subgraphs_stay(tmp_path):
    """A value that a branch reads is there in float32."""
    text = """g (float[2] x, bool c) => (float[2] y) {
        a = Mul(x, x)
        y = If(c) <then_branch = t () => (float[2] p) { p = Add(a, x) },
                   else_branch = e () => (float[2] q) { q = Sub(a, x) }>
    }"""
    model = model_of(text, opset=17, ir_version=8)
    onnx.save(model, tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True, verify=True)
    assert report.ok
    assert "Mul" in {n.op_type for n in onnx.load(tmp_path / "b.onnx").graph.node}


@pytest.mark.parametrize(
    "options", [{"fp16_io": True}, {"fp16": True, "weights": "int8"},
                {"fp16": True, "fp16_keep": ["Convolution"]}]
)  # fmt: skip
def test_options_that_mean_nothing(options, network):
    with pytest.raises(UsageError):
        serde.load(network[0], **options)
