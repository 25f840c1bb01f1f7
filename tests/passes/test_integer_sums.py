"""Sums of products of integers, times their scales, as floats."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import serde
from testing.onnx_live import run_model

SCALED = {  # what is made of the sums t of products of q (scale d, zero point e) with w
    "one scale": "t = MatMulInteger(q, w, e, u) f = Cast<to=1>(t) g = Mul(d, s) y = Mul(f, g)",
    "one after another": "t = MatMulInteger(q, w, e, u) f = Cast<to=1>(t) "
    "g = Mul(f, v) y = Mul(d, g)",
    "columns and a bias": "t = MatMulInteger(q, w, e, z) h = Add(b, t) f = Cast<to=1>(h) "
    "g = Mul(v, d) y = Mul(g, f)",
    "a bias that is divided as the model runs": "t = MatMulInteger(q, w, e, u) "
    "m = Mul(d, s) c = Div(o, m) i = Floor(c) j = Cast<to=6>(i) k = Reshape(j, l) "
    "h = Add(t, k) f = Cast<to=1>(h) y = Mul(f, m)",
    "a scale of rows": "t = MatMulInteger(q, w, e) f = Cast<to=1>(t) g = Mul(f, d) y = Mul(g, r)",
    "DequantizeLinear": "t = MatMulInteger(q, w, e, u) g = Mul(d, s) y = DequantizeLinear(t, g)",
    "float16": "t = MatMulInteger(q, w, e, u) f = Cast<to=10>(t) i = Cast<to=10>(d) "
    "j = Mul(f, i) k = Cast<to=1>(j) y = Mul(k, s)",
}


@pytest.mark.parametrize("name", SCALED)
def test_a_product_is_that_of_the_numbers(tmp_path, name):
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[4,2] x) => (float[4,3] y)
    <int8[2,3] w = {{3, -4, 5, 6, -7, 8}}, int8 u = {{1}}, int8[3] z = {{1, 0, -2}},
     float s = {{0.5}}, float[3] v = {{0.5, 0.25, 0.125}}, float[4,1] r = {{1.0, 2.0, 4.0, 8.0}},
     int32[3] b = {{30, -20, 700}}, float[3,1] o = {{3.0, -2.0, 5.0}},
     int64[2] l = {{1, 3}}> {{
        q, d, e = DynamicQuantizeLinear(x) {SCALED[name]}
    }}"""
    model = parser.parse_model(text)
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", dequantize=True)
    ops = [n.op for n in serde.load(tmp_path / "b.onnx").nodes]
    feeds = {"x": np.random.default_rng(0).uniform(-1, 1, (4, 2)).astype(np.float32)}
    (expected,), (got,) = (run_model(onnx.load(tmp_path / f"{n}.onnx"), feeds) for n in "ab")
    assert "MatMulInteger" not in ops
    assert np.abs(got - expected).max() < 0.02 * np.abs(expected).max()
    if name == "a bias that is divided as the model runs":
        assert ops == ["Gemm"]
    if name in ("one scale", "one after another", "DequantizeLinear"):  # part of the weights
        assert ops == ["MatMul"]


@pytest.mark.parametrize("padding", [0, 1])
def test_a_convolution_of_integers_that_nothing_quantized(tmp_path, padding):
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (uint8[1,1,4,4] x) => (float y)
    <int8[2,1,3,3] w = {{1,2,3,4,5,6,7,8,9,-1,-2,-3,-4,-5,-6,-7,-8,-9}}, uint8 e = {{7}},
     float[1,2,1,1] s = {{0.5, 0.25}}> {{
        t = ConvInteger<pads=[{padding},{padding},{padding},{padding}]>(x, w, e)
        f = Cast<to=1>(t) y = Mul(f, s)
    }}"""
    model = parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", dequantize=True)
    assert "ConvInteger" not in {n.op for n in serde.load(tmp_path / "b.onnx").nodes}
    feeds = {"x": np.random.default_rng(0).integers(0, 255, (1, 1, 4, 4), np.uint8)}
    (expected,), (got,) = (run_model(onnx.load(tmp_path / f"{n}.onnx"), feeds) for n in "ab")
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("zero", ["", ", k"])
def test_another_zero_point_than_that_of_the_numbers_stays(tmp_path, zero):
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[4,2] x, uint8 k) => (float[4,3] y)
    <int8[2,3] w = {{3, -4, 5, 6, -7, 8}}> {{
        q, d, e = DynamicQuantizeLinear(x) t = MatMulInteger(q, w{zero})
        f = Cast<to=1>(t) y = Mul(f, d)
    }}"""
    onnx.save(parser.parse_model(text), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", dequantize=True)
    assert "MatMulInteger" in {n.op for n in serde.load(tmp_path / "b.onnx").nodes}
