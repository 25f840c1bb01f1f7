"""Placed graphs compute the same in ONNX Runtime, and have few Transposes left between images."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.layout.place import place, to_first, to_last
from testing.onnx_live import error, ir_of, run

IMAGES = frozenset({"Conv", "MaxPool", "AveragePool", "Resize"})
HEAD = "a = Conv<pads=[1,1,1,1]>(x, w)"
# What stands behind a convolution of 4 channels over 6 by 6, the shape of the result, and how many
# Transposes are left of those that a target does not absorb.
ROWS, PIXELS = (f"{y} = Transpose<perm=[0,2,1]>({x})" for x, y in (("b", "b1"), ("c", "c1")))
BEHIND = {
    "elementwise": ("y = Relu(a)", "N,4,6,6", 1),
    "sum of two": ("b = Conv<pads=[1,1,1,1]>(x, w) c = Add(a, b) y = Relu(c)", "N,4,6,6", 1),
    "by channel": ("y = Mul(a, s)", "N,4,6,6", 1),
    "vector along the last axis": ("y = Mul(a, r)", "N,4,6,6", 1),
    "computed weights": ("b = ReduceMean<keepdims=1>(a, hw) c = Sigmoid(b) y = Mul(a, c)", "N,4,6,6", 1),
    "choice": ("c = Greater(a, s) y = Where(c, a, s)", "N,4,6,6", 1),
    "slopes": ("y = PRelu(a, s)", "N,4,6,6", 1),
    "joined channels": ("y = Concat<axis=1>(a, a)", "N,8,6,6", 1),
    "joined rows": ("b = Relu(a) y = Concat<axis=-2>(a, b)", "N,4,12,6", 1),
    "parts": ("b, c = Split<axis=1, num_outputs=2>(a) y = Concat<axis=3>(c, b)", "N,2,6,12", 1),
    "softmax of channels": ("y = Softmax<axis=1>(a)", "N,4,6,6", 1),
    "places": ("y = ArgMax<axis=1, keepdims=0>(a)", "N,6,6", 0),
    "places of rows": ("y = ArgMax<axis=2, keepdims=0>(a)", "N,4,6", 1),
    "mean": ("y = ReduceMean<keepdims=0>(a, hw)", "N,4", 0),
    "mean of all": ("y = ReduceMean<keepdims=0>(a)", "", 0),
    "largest by channel": ("y = ReduceMax<keepdims=0>(a, channel)", "N,6,6", 0),
    "padding": ("y = Pad<mode=\"reflect\">(a, pads)", "N,4,8,7", 1),
    "cut": ("y = Slice(a, two, five, three)", "N,4,6,3", 1),
    "cut along all axes": ("y = Slice(a, cuts, ends)", "1,2,3,4", 1),
    "cut of channels": ("y = Slice(a, zero, two, channel)", "N,2,6,6", 1),
    "again an image": ("b = Relu(a) c = MaxPool<kernel_shape=[2,2]>(b) y = Neg(c)", "N,4,5,5", 1),
    "normalized rows": ("y = LayerNormalization<axis=3>(a, r)", "N,4,6,6", 1),
    "flat": ("y = Flatten(a)", "N,144", 1),
    "other order": ("b = Transpose<perm=[0,2,3,1]>(a) y = Relu(b)", "N,6,6,4", 0),
    "matrices": ("y = MatMul(a, a)", "N,4,6,6", 1),
    "picked rows": ("y = Gather<axis=2>(a, three_ones)", "N,4,3,6", 1),
    "picked channels": ("y = Gather<axis=1>(a, three_ones)", "N,3,6,6", 1),
    "picked blocks": ("b = Gather<axis=3>(a, blocks) y = Gather<axis=4>(b, zero)", "N,4,6,2,1", 1),
    "some channels": ("y = Gather<axis=1>(a, zero)", "N,1,6,6", 1),
    "some rows": ("b = Gather<axis=2>(a, hw) y = Relu(b)", "N,4,2,6", 1),
    "a table of columns": ("b = Gather<axis=3>(a, square) y = Relu(b)", "N,4,6,2,2", 1),
    "a column": ("b = Gather<axis=3>(a, scalar) y = Relu(b)", "N,4,6", 1),
    "pixels in a row": ("b = Reshape(a, row) c = Relu(b) d = Reshape(c, wide) e = MaxPool<kernel_shape=[2,2]>(d) y = Neg(e)", "N,4,3,8", 1),
    "one axis of windows": ("b = ReduceMax<keepdims=0>(a, three) c = Unsqueeze(b, two) d = MaxPool<kernel_shape=[1,2]>(c) e = Squeeze(d, two) y = Neg(e)", "N,4,5", 1),
    "samples in a row": ("b = Reshape(a, samples) y = Relu(b)", "1,8,36", 1),
    "pixels as rows and back": (f"b = Reshape(a, row) {ROWS} c = MatMul(b1, m) {PIXELS} d = Reshape(c1, wide) e = MaxPool<kernel_shape=[2,2]>(d) y = Neg(e)", "N,4,3,8", 1),
    "a sum of pixels as rows": (f"b = Reshape(a, row) {ROWS} p = MatMul(b1, m) c = Add(b1, p) {PIXELS} d = Reshape(c1, wide) e = MaxPool<kernel_shape=[2,2]>(d) y = Neg(e)", "N,4,3,8", 1),
    "repeated columns": ("b = ReduceMean<keepdims=1>(a, three) c = Expand(b, full) d = MaxPool<kernel_shape=[2,2]>(c) y = Neg(d)", "N,4,5,5", 1),
    "what is no image beside two": ("b = Relu(a) c = Reshape(a, row) d = MatMul(q, c) e = Reshape(d, back) y = Concat<axis=1>(b, a, e)", "N,12,6,6", 3),
    "one beside what is no image": ("b = Relu(a) c = Reshape(a, row) d = MatMul(q, c) e = Reshape(d, back) y = Concat<axis=1>(b, e)", "N,8,6,6", 2),
    "gathered": ("y = GatherElements<axis=1>(a, at)", "N,1,6,6", 1),
}  # fmt: skip
CONSTANTS = {
    "w": ("float[4,3,3,3]", np.random.default_rng(1).standard_normal(108).round(3)),
    "s": ("float[4,1,1]", [0.5, -1, 2, 3]),
    "r": ("float[6]", [1, 2, 3, 4, 5, 6]),
    "hw": ("int64[2]", [2, -1]), "channel": ("int64[1]", [1]), "pads": ("int64[8]", [0, 0, 1, 0, 0, 0, 1, 1]),
    "zero": ("int64[1]", [0]), "two": ("int64[1]", [2]), "five": ("int64[1]", [5]),
    "cuts": ("int64[4]", [1, 2, 3, 2]), "ends": ("int64[4]", [9, 9, 9, 9]),
    "three": ("int64[1]", [3]), "three_ones": ("int64[3]", [3, 0, 1]),
    "blocks": ("int64[2,2]", [5, 0, 1, 3]),
    "square": ("int64[2,2]", [0, 5, 3, 1]), "scalar": ("int64", [4]),
    "row": ("int64[3]", [0, 4, -1]), "wide": ("int64[4]", [2, 4, 4, 9]),
    "full": ("int64[4]", [2, 4, 6, 6]),
    "back": ("int64[4]", [0, 4, 6, 6]), "samples": ("int64[3]", [1, 8, 36]),
    "m": ("float[4,4]", [1, 0, 2, 0, 0, 3, 0, 1, 1, 0, 0, 2, 0, 1, 1, 0]),
    "q": ("float[4,4]", [0, 1, 0, 2, 1, 0, 3, 0, 1, 0, 0, 2, 0, 1, 1, 0]),
    "at": ("int64[2,1,6,6]", np.random.default_rng(2).integers(0, 4, 72)),
}  # fmt: skip


def build(body, shape, kind="float"):
    texts = [f"{t} {n} = {{{', '.join(map(str, v))}}}" for n, (t, v) in CONSTANTS.items()]
    return ir_of(f"g (float[2,3,6,6] x) => ({kind}[{shape}] y) <{', '.join(texts)}> {{ {body} }}")


@pytest.mark.parametrize("name", BEHIND)
def test_placed_graphs_compute_the_same(name):
    body, shape, count = BEHIND[name]
    kind = "int64" if name.startswith("places") else "float"
    graph = build(f"{HEAD} {body}", shape.replace("N", "2"), kind)
    placed = place(graph, IMAGES)
    feeds = {"x": np.random.default_rng(3).standard_normal((2, 3, 6, 6), np.float32)}
    expected, got = run(graph, feeds)[0], run(placed, feeds)[0]
    assert got.shape == expected.shape and error(got, expected) < 1e-6
    assert count_transposes(placed) <= count
    assert [v.name for v in placed.outputs] == ["y"]


def count_transposes(graph):
    """Those that no operator of images absorbs."""
    made = {node.outputs[0]: node for node in graph.nodes}
    readers = {v: [n for n in graph.nodes if v in n.inputs] for v in made}
    left = 0
    for node in graph.nodes:
        if node.op == "Transpose" and node.inputs[0] not in graph.inputs:
            maker = made[node.inputs[0]]
            is_read = readers[node.outputs[0]] and all(
                n.op in IMAGES for n in readers[node.outputs[0]]
            )
            left += not (maker.op in IMAGES or is_read) or node.outputs[0] in graph.outputs
        elif node.op in IMAGES:
            others = [n for n in readers[node.outputs[0]] if n.op != "Transpose"]
            left += bool([n for n in others if n.op not in IMAGES])
    return left


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_orders_are_inverse(rank):
    x = np.zeros(range(2, 2 + rank))
    assert x.transpose(to_last(rank)).transpose(to_first(rank)).shape == x.shape


def test_a_graph_without_images_is_left_alone():
    graph = build("y = Relu(x)", "2,3,6,6")
    assert place(graph, IMAGES) is graph
