"""Shapes and bounds that hold the batch, and sizes that are computed with."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from testing.onnx_live import run_model
from tests.passes.batches import assert_is_rebatched, model_with, random


def test_numbers_stay_where_they_are_known(tmp_path):
    body = "(float[1,16,4] x) => (float[1,64] y) { y = Reshape(x, s) }"
    onnx.save(model_with(body, s=[1, -1]), tmp_path / "a.onnx")
    (node,) = serde.load(tmp_path / "a.onnx", rebatch="N").nodes
    assert node.inputs[1].ints() == (-1, 64)
    (node,) = serde.load(tmp_path / "a.onnx", rebatch=2).nodes
    assert node.op == "Reshape" and node.outputs[0].shape == (2, 64)


SIZES = {
    "Shape": "s = Shape(x) a = ReduceProd<keepdims=0>(s) f = Cast<to=1>(a) y = Div(x, f)",
    "Size": "a = Size(x) f = Cast<to=1>(a) y = Div(x, f)",
    "a part": "s = Shape<start=1>(x) a = ReduceProd<keepdims=0>(s) f = Cast<to=1>(a) y = Div(x, f)",
    "merged": "r = Reshape(x, z) s = Shape(r) a = ReduceMax<keepdims=0>(s) f = Cast<to=1>(a) y = Div(x, f)",
    "zeros": "s = Shape(x) c = ConstantOfShape(s) d = Exp(c) e = Concat<axis=2>(c, d) f = Concat<axis=2>(x, e) g = ReduceSum(f, two) y = Mul(x, g)",
}


@pytest.mark.parametrize("body", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("batch", [1, 2])
def test_computed_sizes_are_those_of_the_old_batch(body, batch, tmp_path):
    text = f"(float[{batch},L,4] x) => (float[{batch},L,4] y) {{ {body} }}"
    model = model_with(text, z=[-1, 4], two=[2])
    onnx.save(model, tmp_path / "a.onnx")
    serde.save(serde.load(tmp_path / "a.onnx", rebatch="N"), tmp_path / "b.onnx")
    x = random(3 * batch, 5, 4)
    parts = [run_model(tmp_path / "a.onnx", {"x": p})[0] for p in np.split(x, 3)]
    (actual,) = run_model(tmp_path / "b.onnx", {"x": x})
    np.testing.assert_allclose(actual, np.concatenate(parts), rtol=1e-5, atol=1e-6)


GRID = "(float[1,2,3] x) => (float[1,4,5,2] y) { y = AffineGrid(x, s) }"
OTHER = {
    "AffineGrid": (GRID, 20, {"s": [1, 3, 4, 5]}),
    "Slice from the end": ("(float[1,4] x) => (float[1,4] y) { y = Slice(x, a, b, c) }", 18, {"a": [-1, 0], "b": [1, 4], "c": [0, 1]}),
    "Resize of two axes": ("(float[1,3,4,4] x) => (float[1,3,8,8] y) { y = Resize<mode=\"linear\", axes=[2,3]>(x, , , s) }", 18, {"s": [8, 8]}),
    "Expand of more axes": ("(float[1,4] x) => (float[3,1,4] y) { y = Expand(x, s) }", 18, {"s": [3, 1, 4]}),
    "Expand to fewer axes": ("(float[2,1,4] x) => (float[2,1,4] y) { t = Transpose<perm=[1,0,2]>(x) u = Expand(t, s) y = Transpose<perm=[1,0,2]>(u) }", 18, {"s": [4]}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "opset", "constants"), OTHER.values(), ids=OTHER)
def test_sizes_of_other_operators(body, opset, constants, tmp_path):
    targets = {"y": 1 if "float[3,1,4] y" in body else 0}
    assert_is_rebatched(model_with(body, opset, **constants), tmp_path, targets=targets)
