"""Products with two constants become one, where nothing rounds what comes of them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.numpy_helper import from_array

import serde
from testing.onnx_live import error, run_model

CHAINS = {  # nodes, shapes of the constants, and how many products are left
    "two": ("t = Mul(x, a) y = Mul(t, b)", (1,), (3, 4), 1),
    "three, from the left": ("t = Mul(a, x) u = Mul(b, t) y = Mul(u, a)", (4,), (1, 4), 1),
    "a sum with zero between": ("t = Mul(x, a) u = Add(t, zero) y = Mul(u, b)", (1,), (4,), 1),
    "larger merged": ("t = Mul(x, a) y = Mul(t, b)", (3, 1), (4,), 2),
    "read twice": ("t = Mul(x, a) u = Mul(t, b) y = Add(t, u)", (1,), (4,), 2),
    "rounded": ("t = Mul(x, a) u = Mul(t, b) v = Neg(u) y = Round(v)", (1,), (4,), 2),
    "rounded behind a function": (
        "t = Mul(x, a) u = Mul(t, b) v = Tanh(u) y = Ceil(v)",
        (1,),
        (4,),
        2,
    ),
    "no constant": ("t = Mul(x, x) y = Mul(t, b)", (), (4,), 2),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CHAINS)
def test_chains(name, dtype, tmp_path):
    nodes, a, b, left = CHAINS[name]
    draws = np.random.default_rng(0)
    model = convert_chain(nodes, draws.normal(size=a), draws.normal(size=b), dtype, tmp_path)
    source = onnx.load(tmp_path / "a.onnx")
    assert [n.op_type for n in model.graph.node].count("Mul") == left
    feeds = {"x": draws.normal(scale=9, size=(2, 3, 4)).astype(dtype)}
    for before, after in zip(run_model(source, feeds), run_model(model, feeds), strict=True):
        assert error(after, before) < 1e-6


@pytest.mark.parametrize("factors", [(1e30, 1e30), (1e-30, 1e-30), (0.0, 2.0), (np.inf, 2.0)])
def test_factors_without_a_normal_product_stay(factors, tmp_path):
    a, b = (np.asarray([f]) for f in factors)
    model = convert_chain("t = Mul(x, a) y = Mul(t, b)", a, b, np.float32, tmp_path)
    assert [n.op_type for n in model.graph.node] == ["Mul", "Mul"]


def convert_chain(nodes, a, b, dtype, folder):
    """Save the nodes with the constants as a.onnx, and convert them with factors merged."""
    kind = "float" if dtype is np.float32 else "double"
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g ({kind}[N,3,4] x) => ({kind}[N,3,4] y) {{ {nodes} }}"""
    model = parser.parse_model(text)
    used = {i for n in model.graph.node for i in n.input}
    model.graph.initializer.extend(
        from_array(np.asarray(array, dtype), n)
        for n, array in (("a", a), ("b", b), ("zero", 0))
        if n in used
    )
    onnx.save(model, folder / "a.onnx")
    serde.convert(folder / "a.onnx", folder / "b.onnx", fold_batchnorm=True)
    return onnx.load(folder / "b.onnx")
