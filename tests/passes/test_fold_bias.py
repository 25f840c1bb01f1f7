"""A sum with a constant for each channel becomes the bias of the convolution before it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from tests.onnx_live import error, model_of, run_model

CASES = {  # the nodes, the shape of what is added, and the operators that are left
    "a convolution": ("a = Conv(x, w) y = Add(a, c)", "6,1,1", ["Conv"]),
    "as the first operand": ("a = Conv(x, w) y = Add(c, a)", "1,6,1,1", ["Conv"]),
    "transposed": ("a = ConvTranspose(x, v) y = Add(a, c)", "6,1,1", ["ConvTranspose"]),
    "with a bias": ("a = Conv(x, w, b) y = Add(a, c)", "6,1,1", ["Conv", "Add"]),
    "along another axis": ("a = Conv(x, w) y = Add(a, c)", "6", ["Conv", "Add"]),
    "a number for each element": ("a = Conv(x, w) y = Add(a, c)", "6,6,6", ["Conv", "Add"]),
    "another reader": (
        "a = Conv(x, w) m = Add(a, c) y = Mul(m, a)", "6,1,1", ["Conv", "Add", "Mul"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_sums(name, tmp_path):
    body, added, left = CASES[name]
    model = model_of(f"g (float[N,4,8,8] x) => (float[M,6,P,Q] y) {{ {body} }}", 17, 8)
    draws = np.random.default_rng(0)
    shapes = {"w": (6, 4, 3, 3), "v": (4, 6, 3, 3), "b": (6,), "c": map(int, added.split(","))}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(draws.standard_normal(tuple(s), np.float32), n)
        for n, s in shapes.items() if f"{n})" in body or f"{n}," in body
    )  # fmt: skip
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx")
    made = onnx.load(tmp_path / "b.onnx")
    assert [n.op_type for n in made.graph.node] == left
    feeds = {"x": draws.standard_normal((2, 4, 8, 8), np.float32)}
    assert error(run_model(made, feeds)[0], run_model(model, feeds)[0]) < 1e-6
