"""A model of quantised numbers as one of floats."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import serde
from serde.ir.graph import DType
from serde.passes import tidy
from serde.passes.dequantize import dequantize
from serde.spec.onnx_builder import OnnxBuilder
from tests.onnx_live import run_model

F32 = DType.FLOAT32


def pair(g, x, scale=0.1):
    zero = g.const(np.int8(0))
    step = g.const(np.float32(scale))
    return g.DequantizeLinear(g.QuantizeLinear(x, step, zero), step, zero)


def test_pairs_go_and_weights_become_floats():
    g = OnnxBuilder("g")
    x = g.input("x", F32, ("N", 2))
    steps = np.array([0.5, 0.25], "float32")
    zeros = np.array([1, 0], "int8")
    w = g.DequantizeLinear(np.array([[3, -4], [5, 6]], "int8"), steps, zeros, axis=0)
    graph = tidy(dequantize(g.build([g.Relu(pair(g, g.MatMul(pair(g, x), w)))])))
    assert [n.op for n in graph.nodes] == ["MatMul", "Relu"]
    weight = graph.nodes[0].inputs[1]
    np.testing.assert_array_equal(weight.array(), [[1, -2.5], [1.25, 1.5]])


def test_an_output_keeps_its_name():
    g = OnnxBuilder("g")
    y = pair(g, g.input("x", F32, (3,)))
    y.name = "y"
    graph = tidy(dequantize(g.build([y])))
    assert [(n.op, n.inputs[0].name) for n in graph.nodes] == [("Identity", "x")]
    assert [v.name for v in graph.outputs] == ["y"]


@pytest.mark.parametrize("known", [True, False])
def test_integers_that_are_computed_with_stay(known):
    g = OnnxBuilder("g")
    x = g.input("x", DType.INT8, (3,))
    scale = g.const(np.float32(0.1)) if known else g.input("scale", F32, ())
    graph = dequantize(g.build([g.DequantizeLinear(g.Max(x, np.int8(0)), scale, np.int8(0))]))
    assert [n.op for n in graph.nodes] == ["Max", "DequantizeLinear"]


RANGES = {  # integers, zero point, what is before the pair, and the bounds that stay
    "uint8 from 0": (np.uint8(0), "Neg", (0, 25.5)),
    "int8 from its least": (np.int8(-128), "Neg", (0, 25.5)),
    "int8 to its largest": (np.int8(127), "Neg", (-25.5, 0)),
    "uint8 behind a Relu": (np.uint8(0), "Relu", None),
    "uint8 behind a Sigmoid": (np.uint8(0), "Sigmoid", None),
    "uint8 with a middle": (np.uint8(128), "Neg", None),
    "int8 around 0": (np.int8(0), "Neg", None),
}


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("name", RANGES)
def test_a_range_that_ends_at_0_is_kept(name, is_known):
    zero, before, bounds = RANGES[name]
    g = OnnxBuilder("g")
    x, scale = g.input("x", F32, (4,)), g.input("scale", F32, ())
    step = g.const(np.float32(0.1)) if is_known else scale
    q = g.QuantizeLinear(g[before](x), step, g.const(zero))
    graph = dequantize(g.build([g.Exp(g.DequantizeLinear(q, step, g.const(zero)))]))
    graph = tidy(graph)
    clips = [n for n in graph.nodes if n.op == "Clip"]
    assert len(clips) == (bounds is not None)
    for clip in clips:
        low, high = (None if v is None else float(v.array()) for v in clip.inputs[1:])
        expected = bounds if is_known else tuple(b if b == 0 else None for b in bounds)
        assert (low, high) == pytest.approx(expected)


def test_a_relu_that_a_quantizer_left_out(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 19]>
    g (float[N,3] x) => (float[N,2] y) <float s = {0.02}, uint8 z = {0}, float t = {0.05},
        int8 p = {0}, int8[3,3] w = {10, -20, 30, -7, 5, 4, 90, -80, 2}, float u = {0.01},
        int8[3,2] v = {50, -60, 70, 20, -30, 40}> {
        a = QuantizeLinear(x, t, p) b = DequantizeLinear(a, t, p)
        c = DequantizeLinear(w, u, p) d = MatMul(b, c)
        e = QuantizeLinear(d, s, z) f = DequantizeLinear(e, s, z)
        h = DequantizeLinear(v, u, p) y = MatMul(f, h)
    }"""
    model = parser.parse_model(text)
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", dequantize=True)
    feeds = {"x": np.random.default_rng(0).uniform(-6, 6, (40, 3)).astype(np.float32)}
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    (got,) = run_model(onnx.load(tmp_path / "b.onnx"), feeds)
    assert np.abs(got - expected).max() < 0.05
