"""Weights in fewer bits, from which the graph makes float32 again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import to_array

from serde.errors import ConversionError
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.passes.compress_weights import compress_weights
from testing.onnx_live import PLAIN, error, run_at, run_model
from tests.passes.precisions import convert, halve
from tests.passes.precisions import network as network

F = np.float32


@pytest.mark.parametrize("kind, bound", [("fp16", 1e-3), ("bf16", 1e-2), ("int8", 1e-2)])
def test_weights(kind, bound, network):
    model, off, _ = convert(network, weights=kind)
    assert 0 < off < bound
    counts = Counter(n.op_type for n in model.graph.node)
    assert counts["DequantizeLinear" if kind == "int8" else "Cast"] == 3


WEIGHTS = {  # text, shapes of weights, how many are compressed
    "of a look-up and products": (
        "(int64[2] i, float[3,64] x) => (float[2,64] y, float[3,64] z, float[3,64] w) "
        "{ y = Gather(e, i) z = MatMul(x, e) w = Gemm<transB = 1>(x, e) }",
        {"e": (64, 64)}, {"fp16": 1, "bf16": 1, "int8": 2}),
    "that are also added": (
        "(float[64,64] x) => (float[64,64] y) { z = MatMul(x, e) y = Add(z, e) }",
        {"e": (64, 64)}, {"fp16": 1, "bf16": 1, "int8": 1}),
    "of recurrent layers": (
        "(float[3,2,32] x) => (float[3,1,2,32] y, float[1,2,32] z) "
        "{ y, z = LSTM<hidden_size = 32>(x, w, r) }",
        {"w": (1, 128, 32), "r": (1, 128, 32)}, {"fp16": 2, "bf16": 2, "int8": 2}),
    "before the data": (
        "(float[64,3] x) => (float[80,3] y, float[64,3] z) { y = MatMul(a, x) "
        "z = Gemm<transA = 1>(b, x) }",
        {"a": (80, 64), "b": (64, 64)}, {"fp16": 2, "bf16": 2, "int8": 2}),
    "places": ("(float[64,64] x) => (float[64,64] y) { y = Add(x, e) }",
               {"e": (64, 64)}, {"fp16": 0, "bf16": 0, "int8": 0}),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["fp16", "bf16", "int8"])
@pytest.mark.parametrize("case", WEIGHTS.values(), ids=WEIGHTS)
def test_compressed_constants(case, kind, tmp_path):
    """With the bits of the kind, MatMul's data too: ONNX Runtime rounds them to int8."""
    text, shapes, counts = case
    draws = np.random.default_rng(0)
    held = {n: draws.standard_normal(s).astype(F) / 4 for n, s in shapes.items()}
    model = halve(f"g {text}", tmp_path, **held, options={"fp16": None, "weights": kind})
    original = onnx.load(tmp_path / "a.onnx")
    feeds = {v.name: draws.standard_normal([d.dim_value for d in v.type.tensor_type.shape.dim])
             .astype(F) for v in original.graph.input}  # fmt: skip
    feeds = {n: np.array([3, 60]) if n == "i" else x for n, x in feeds.items()}
    expected = run_model(original, feeds)
    for got, wanted in zip(run_at(PLAIN, model, feeds), expected, strict=True):
        assert (0 if counts[kind] else -1) < error(got, wanted) < 2e-2
    types = Counter(to_array(t).dtype for t in model.graph.initializer if len(t.dims) > 1)
    assert types.total() - types[np.dtype(F)] == counts[kind]


ODD = {
    "NaN": ({"w": np.full((64, 64), np.nan, F)}, "has NaN or infinities, which int8 cannot hold"),
    "infinity": ({"w": np.full((64, 64), np.inf, F)}, "give weights='fp16'"),
}


@pytest.mark.parametrize(("held", "why"), ODD.values(), ids=ODD)
def test_what_int8_cannot_hold_is_refused(tmp_path, held, why):
    text = "g (float[3,64] x) => (float[3,64] y) { y = MatMul(x, w) }"
    with pytest.raises(ConversionError, match=f"the weight 'w' .*{why}"):
        halve(text, tmp_path, **held, options={"fp16": None, "weights": "int8"})


@pytest.mark.parametrize(("op", "shape", "attrs", "axis"), [
    ("Conv", (64, 16, 3, 3), {}, 0), ("ConvTranspose", (16, 64, 3, 3), {}, 1),
    ("ConvTranspose", (16, 64, 3, 3), {"group": 2}, 0), ("Gemm", (64, 80), {}, 1),
    ("Gemm", (64, 80), {"transB": 1}, 0), ("MatMul", (2, 64, 80), {}, 2), ("LSTM", (1, 128, 64), {}, 1),
])  # fmt: skip
def test_scales_are_those_of_the_channels_of_the_result(op, shape, attrs, axis):
    """Each channel has steps of its own: of one with small numbers they are small."""
    array = np.random.default_rng(0).standard_normal(shape).astype(F)
    sizes = np.exp2(-np.arange(shape[axis]) % 9).astype(F)
    array *= np.expand_dims(sizes, [a for a in range(len(shape)) if a != axis])
    x, y = Value("x", DType.FLOAT32, None), Value("y", DType.FLOAT32, None)
    w = Value("w", DType.FLOAT32, shape, Tensor.of(array))
    done = compress_weights(Graph("g", (x,), (y,), (Node(op, (x, w), (y,), attrs),)), "int8")
    assert [n.op for n in done.nodes] == ["DequantizeLinear", op]
    node = done.nodes[0]
    steps, scale = (v.array() for v in node.inputs)
    assert node.attrs["axis"] == axis and scale.shape == (shape[axis],) and steps.dtype == np.int8
    shown = np.expand_dims(scale, [a for a in range(len(shape)) if a != axis])
    assert (np.abs(steps * shown - array) <= shown / 2 * 1.0001).all() and np.abs(
        steps
    ).max() == 127


def test_small_weights_stay_and_a_note_says_so():
    x, y = (Value(n, DType.FLOAT32, (4, 4)) for n in "xy")
    w = Value("w", DType.FLOAT32, (4, 4), Tensor.of(np.ones((4, 4), F)))
    graph = Graph("g", (x,), (y,), (Node("MatMul", (x, w), (y,)),))
    done = compress_weights(graph, "int8")
    assert done.nodes == graph.nodes and "weights: none became int8: no Conv, " in done.notes[-1]
