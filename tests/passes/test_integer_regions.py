"""Sums of quantized layers as integers in floats, beside ONNX Runtime's integer kernels.

Two steps of a sum are one of the result: each second sum is halfway between two integers, where
floats that are near it fall to either side.
"""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import DType
from serde.passes.integer_regions import LINEAR, compute_with_integers
from serde.passes.regions import Quantization, Quantized, emit_region, find_regions
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import OPTIMIZED, PLAIN, run

RANDOM = np.random.default_rng(0)
IMAGES, ROWS, MATRICES = (2, 6, 9, 8), (50, 30), (2, 4, 5, 30)
STEP, WEIGHT_STEP = np.float32(0.037), np.float32(0.0021)
FRAME = {"kernel_shape": (3, 3), "pads": (1, 0, 0, 1), "strides": (2, 1)}
TURNED = (0, 2, 3, 1)
WEIGHTED = {  # shapes of data and weights, the axis of channels, the layer
    "Conv": (IMAGES, (8, 6, 3, 3), 0, lambda g, *v: g.Conv(*v, **FRAME)),
    "grouped Conv": (IMAGES, (9, 2, 3, 3), 0, lambda g, *v: g.Conv(*v, group=3, **FRAME)),
    "Conv of moved data": (
        (2, 9, 8, 6), (8, 6, 3, 3), 0,
        lambda g, x, *v: g.Conv(g.Transpose(x, perm=(0, 3, 1, 2)), *v, **FRAME),
    ),
    "Gemm": (ROWS, (30, 7), 1, lambda g, *v: g.Gemm(*v)),
    "Gemm of turned weights": (ROWS, (7, 30), 0, lambda g, *v: g.Gemm(*v, transB=1)),
    "MatMul": (MATRICES, (30, 7), 1, lambda g, *v: g.MatMul(*v)),
}  # fmt: skip
RESULT_STEP, RESULT_ZERO = STEP * WEIGHT_STEP * np.float32(16), 128  # a power of 2, which is exact
ACTIVATIONS = {  # and the integers that they end at
    "": (lambda g, y: y, (0, 255)),
    "Relu": (lambda g, y: g.Relu(y), (RESULT_ZERO, 255)),
    "Clip": (lambda g, y: g.Clip(y, 0.0, 50 * RESULT_STEP), (RESULT_ZERO, RESULT_ZERO + 50)),
}


def emit(layer, shape, weights, axis, bias=True, by_channel=True, after=""):
    """A region whose sums are often halfway, and bytes for it."""
    g, drawn, count = OnnxBuilder("g"), np.random.default_rng(1), weights[axis]
    steps = WEIGHT_STEP * (2.0 ** drawn.integers(0, 3, count) if by_channel else 1)
    steps = np.asarray(steps, np.float32)
    data = Quantized(g.input("x", DType.UINT8, shape),
                     Quantization(g.const(STEP), g.const(np.uint8(3))))  # fmt: skip
    q = drawn.integers(-16, 17, weights).astype(np.int8)
    operands = [data, Quantized(g.const(q), Quantization(g.const(steps), None, axis))]
    if bias:
        b = drawn.integers(-300, 300, count).astype(np.int32)
        operands.append(Quantized(g.const(b), Quantization(g.const(STEP * steps), None, 0)))
    result = Quantization(g.const(RESULT_STEP), g.const(np.uint8(RESULT_ZERO)))
    y = emit_region(g, lambda *v: ACTIVATIONS[after][0](g, layer(g, *v)), operands, result)
    return g.build([y]), drawn.integers(0, 256, shape).astype(np.uint8)


def multiply(graph, x):
    """A Gemm or MatMul in integers, which ONNX Runtime's kernel multiplies in another order."""
    ((_, region),) = find_regions(graph).items()
    _, weights, *bias = region.operands
    q = weights.value.array().astype(np.int64)
    turns = region.layer.attrs.get("transB", 0)
    sums = (x.astype(np.int64) - 3) @ (q.T if turns else q)
    sums += sum(b.value.array() for b in bias)
    steps = STEP * weights.form.scale.array() / RESULT_STEP
    return np.clip(np.rint(sums * steps.astype(np.float64)) + RESULT_ZERO, 0, 255)


@pytest.mark.parametrize("after", ACTIVATIONS)
@pytest.mark.parametrize("by_channel", [True, False])
@pytest.mark.parametrize("name", WEIGHTED)
def test_sums_are_those_of_integer_kernels(name, by_channel, after):
    """Without optimizers ONNX Runtime computes with floats, which hold the integers."""
    shape, weights, axis, layer = WEIGHTED[name]
    plain, x = emit(layer, shape, weights, axis, name != "MatMul", by_channel)
    graph, _ = emit(layer, shape, weights, axis, name != "MatMul", by_channel, after)
    summed = compute_with_integers(graph)
    assert "DequantizeLinear" not in summed.operators()
    (kernel,) = run(plain, {"x": x}, level=OPTIMIZED) if "Conv" in name else [multiply(plain, x)]
    (got,) = run(summed, {"x": x}, level=PLAIN)
    np.testing.assert_array_equal(got, np.clip(kernel, *ACTIVATIONS[after][1]))


MEANS = {
    "AveragePool": lambda g, x: g.AveragePool(x, kernel_shape=(2, 2), strides=(2, 2)),
    "GlobalAveragePool": lambda g, x: g.GlobalAveragePool(x),
    "ReduceMean": lambda g, x: g.ReduceMean(x, [2, 3]),
    "ReduceSum": lambda g, x: g.ReduceSum(x, [3]),
}


@pytest.mark.parametrize("name", MEANS)
def test_means_round_halves_to_even(name):
    g = OnnxBuilder("g")
    form = Quantization(g.const(np.float32(0.1)), g.const(np.int8(0)))
    data = Quantized(g.input("x", DType.INT8, (2, 3, 4, 4)), form)
    graph = g.build([emit_region(g, lambda x: MEANS[name](g, x), [data], form)])
    x = RANDOM.integers(-20, 20, (2, 3, 4, 4)).astype(np.int8)
    summed = compute_with_integers(graph)
    (got,) = run(summed, {"x": x}, level=PLAIN)
    blocks = x.reshape(2, 3, 2, 2, 2, 2) if name == "AveragePool" else x[:, :, None, :, None]
    exact = blocks.mean((3, 5), dtype=np.float64).reshape(2, 3, -1)
    if name == "ReduceSum":
        exact = x.sum(3, dtype=np.float64)
    np.testing.assert_array_equal(got.ravel(), np.clip(np.rint(exact), -128, 127).ravel())


def test_two_computed_operands():
    g = OnnxBuilder("g")
    form = Quantization(g.const(np.float32(0.1)), g.const(np.uint8(7)))
    parts = [Quantized(g.input(n, DType.UINT8, (3, 5, 5)), form) for n in "ab"]
    result = Quantization(g.const(np.float32(0.02)), g.const(np.uint8(90)))
    graph = g.build([emit_region(g, g.MatMul, parts, result)])
    feeds = {n: RANDOM.integers(0, 20, (3, 5, 5)).astype(np.uint8) for n in "ab"}
    (got,) = run(compute_with_integers(graph), feeds, level=PLAIN)
    (expected,) = run(graph, feeds, level=OPTIMIZED)
    np.testing.assert_array_equal(got, expected)


def test_a_transposed_convolution_by_channel():
    g = OnnxBuilder("g")
    x = Quantized(g.input("x", DType.UINT8, (1, 4, 5, 5)),
                  Quantization(g.const(STEP), g.const(np.uint8(3))))  # fmt: skip
    w = g.const(RANDOM.integers(-9, 9, (4, 2, 3, 3)).astype(np.int8))
    weights = Quantized(w, Quantization(g.const(np.float32([0.01, 0.02])), None, 1))
    result = Quantization(g.const(np.float32(0.0511)), g.const(np.uint8(100)))
    graph = g.build([emit_region(g, g.ConvTranspose, [x, weights], result)])
    feeds = {"x": RANDOM.integers(0, 30, (1, 4, 5, 5)).astype(np.uint8)}
    summed = compute_with_integers(graph)
    assert "DequantizeLinear" not in summed.operators()
    (got,), (expected,) = (run(v, feeds, level=PLAIN) for v in (summed, graph))
    np.testing.assert_array_equal(got, expected)


def begin():
    g = OnnxBuilder("g")
    form = Quantization(g.const(np.float32(0.1)), g.const(np.int8(0)))
    return g, form, Quantized(g.input("x", DType.INT8, (2, 3, 4)), form)


def test_what_is_no_one_sum_stays():
    """Sums that something else reads, functions, scales of the model, and other units of a bias."""
    graphs = []
    g, form, x = begin()
    y = g.ReduceMean(x.dequantize(g), [2])
    graphs.append(g.build([y, g.QuantizeLinear(y, *form[:2])]))
    g, form, x = begin()
    graphs.append(g.build([emit_region(g, g.Tanh, [x], form)]))
    g, form, x = begin()
    scale = Quantization(g.input("scale", DType.FLOAT32, ()), form.zero)
    graphs.append(g.build([emit_region(g, lambda v: g.ReduceMean(v, [2]), [x], scale)]))
    g, form, x = begin()
    w, b = (g.const(RANDOM.integers(-9, 9, s).astype(t)) for s, t in
            (((4, 3, 3), np.int8), (4, np.int32)))  # fmt: skip
    bias = Quantized(b, Quantization(g.const(np.float32(0.5))))
    graphs.append(g.build([emit_region(g, g.Conv, [x, Quantized(w, form), bias], form)]))
    for graph in graphs:
        assert compute_with_integers(graph).operators() == graph.operators()


def test_each_layer_is_tried():
    assert {*LINEAR} == {*MEANS, "Conv", "ConvTranspose", "Gemm", "MatMul"}
