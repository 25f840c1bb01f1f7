"""A model of quantised numbers as one of floats."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import DType
from serde.passes import tidy
from serde.passes.dequantize import dequantize
from serde.spec.onnx_builder import OnnxBuilder

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
