"""The real numbers that integers stand for, where they are moved or quantized otherwise."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import serde
from serde.ir.graph import DType
from serde.passes import tidy
from serde.passes.dequantize import dequantize
from serde.passes.quantized_values import Quantization, dequantize_constant
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import run_model

F32 = DType.FLOAT32
MOVES = {  # what is between QuantizeLinear of x and a DequantizeLinear, of scale s, zero point z
    "Reshape": "r = Reshape(q, h)",
    "Transpose": "r = Transpose<perm=[1,0]>(q)",
    "Slice": "r = Slice(q, o, h)",
    "MaxPool": "a = Reshape(q, j) r = MaxPool<kernel_shape=[2], strides=[2]>(a)",
    "Split": "a, r = Split<axis=1>(q)",
    "Concat": "r = Concat<axis=0>(q, w)",
    "Concat with an input": "r = Concat<axis=0>(q, k)",
    "Max": "r = Max(q, w)",
    "ReduceMin": "r = ReduceMin<axes=[1]>(q)",
    "Expand of a Gather": "a = Gather(q, o) r = Expand(a, h)",
}
TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,4] x, int8[2,4] k) => (float y) <float s = {0.02}, int8 z = {3}, int64[2] h = {4, 2},
    int64[2] o = {1, 0}, int64[3] j = {1, 2, 4}, int8[2,4] w = {1, 2, 3, 4, -5, -6, -7, -8}> {
    q = QuantizeLinear(x, s, z) MOVE y = DequantizeLinear(r, s, z)
}"""


def convert_text(text, tmp_path):
    """The model of a text, its floats, and the operators of these."""
    model = parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", dequantize=True)
    floats = onnx.load(tmp_path / "b.onnx")
    return model, floats, [n.op_type for n in floats.graph.node]


@pytest.mark.parametrize("name", MOVES)
def test_moved_integers(tmp_path, name):
    move = MOVES[name]
    if name == "Expand of a Gather":
        move = move.replace("(a, h)", "(a, j)")
    if name == "Slice":
        move = move.replace("(q, o, h)", "(q, o, h)")
    model, floats, ops = convert_text(TEXT.replace("MOVE", move), tmp_path)
    assert "QuantizeLinear" not in ops
    assert ops.count("DequantizeLinear") == (name == "Concat with an input")
    rng = np.random.default_rng(0)
    feeds = {"x": rng.uniform(-2, 2, (2, 4)).astype(np.float32),
             "k": rng.integers(-9, 9, (2, 4), np.int8)}  # fmt: skip
    (expected,), (got,) = (run_model(m, feeds) for m in (model, floats))
    assert np.abs(got - expected).max() <= 0.011


@pytest.mark.parametrize("form", ["s, u", "t, z", "t, u", "t"])
def test_read_by_another_scale_or_zero_point(tmp_path, form):
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[5] x) => (float y)
    <float s = {{0.02}}, float t = {{0.05}}, int8 z = {{3}}, int8 u = {{-4}}> {{
        q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, {form})
    }}"""
    model, floats, ops = convert_text(text, tmp_path)
    assert not {"QuantizeLinear", "DequantizeLinear"} & set(ops)
    feeds = {"x": np.array([-1.4, -0.3, 0, 0.7, 1.9], np.float32)}
    (expected,), (got,) = (run_model(m, feeds) for m in (model, floats))
    assert np.abs(got - expected).max() <= 0.026


def test_weights_in_blocks():
    rng = np.random.default_rng(0)
    q, zero = rng.integers(-8, 8, (2, 5), np.int8), rng.integers(-2, 2, (2, 2), np.int8)
    scale = rng.uniform(1, 2, (2, 2)).astype(np.float32)
    g = OnnxBuilder("g")
    form = Quantization(g.const(scale), g.const(zero), 1, 3)
    got = dequantize_constant(g.const(q), form, F32).load()
    at = [0, 0, 0, 1, 1]
    np.testing.assert_allclose(got, (q - zero[:, at]) * scale[:, at])


@pytest.mark.parametrize("scale", [0.1, -0.1])
def test_a_negative_scale_turns_a_largest_element_around(scale):
    g = OnnxBuilder("g")
    step, zero = g.const(np.float32(scale)), g.const(np.int8(0))
    q = g.QuantizeLinear(g.input("x", F32, (1, 1, 4)), step, zero)
    y = g.DequantizeLinear(g.MaxPool(q, kernel_shape=(2,)), step, zero)
    ops = [n.op for n in tidy(dequantize(g.build([y]))).nodes]
    assert ("QuantizeLinear" in ops) is (scale < 0)


def test_a_table_that_is_cast(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]> g (int64[N] x) => (float y)
    <int8[3,2] w = {1, -2, 3, -4, 5, -6}, float[3,1] s = {0.5, 0.25, 0.125}> {
        e = Gather(w, x) f = Cast<to=1>(e) h = Gather(s, x) y = Mul(f, h)
    }"""
    model, floats, ops = convert_text(text, tmp_path)
    assert "Cast" not in ops
    feeds = {"x": np.array([2, 0], np.int64)}
    (expected,), (got,) = (run_model(m, feeds) for m in (model, floats))
    np.testing.assert_array_equal(got, expected)
