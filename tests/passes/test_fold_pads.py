"""A Pad of zeros becomes the pads of the convolution after it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import serde
from tests.onnx_live import error, model_of, run_model

SPATIAL = [0, 0, 1, 2, 0, 0, 0, 3]
CASES = {  # the nodes, the pads, and the operators that are left
    "zeros": ("p = Pad(x, a) y = Conv(p, w)", SPATIAL, ["Conv"]),
    "pads of its own": ("p = Pad(x, a) y = Conv<pads = [1,1,0,2]>(p, w)", SPATIAL, ["Conv"]),
    "two readers": ("p = Pad(x, a) c = Conv(p, w) d = Conv(p, w) y = Mul(c, d)", SPATIAL,
                    ["Conv", "Mul"]),
    "another number": ("f = Constant<value_float = 1.0>() p = Pad(x, a, f) y = Conv(p, w)", SPATIAL,
                       ["Pad", "Conv"]),
    "edges": ('p = Pad<mode = "edge">(x, a) y = Conv(p, w)', SPATIAL, ["Pad", "Conv"]),
    "of samples": ("p = Pad(x, a) y = Conv(p, w)", [1, 0, 0, 0, 0, 0, 0, 0], ["Pad", "Conv"]),
    "that cut": ("p = Pad(x, a) y = Conv(p, w)", [0, 0, -1, 0, 0, 0, 0, 0], ["Pad", "Conv"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pads(name, tmp_path):
    body, pads, left = CASES[name]
    model = model_of(f"g (float[N,4,8,8] x) => (float[M,6,P,Q] y) {{ {body} }}", 17, 8)
    draws = np.random.default_rng(0)
    held = {"a": np.array(pads), "w": draws.standard_normal((6, 4, 3, 3), np.float32)}
    model.graph.initializer.extend(from_array(a, n) for n, a in held.items())
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx")
    made = onnx.load(tmp_path / "b.onnx")
    assert [n.op_type for n in made.graph.node] == left
    feeds = {"x": draws.standard_normal((2, 4, 8, 8), np.float32)}
    assert error(run_model(made, feeds)[0], run_model(model, feeds)[0]) < 1e-6
