"""What exporters spell Gelu out in, which becomes one operator."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.merge_gelu import merge_gelus
from testing.onnx_live import ir_of, run

ROOT, CUBE, TANH = 0.7978845608, 0.044715, "h = Tanh(t) a = Add(h, one)"
CASES = {  # nodes, and the approximation that they are
    "PyTorch's": ("t = Div(x, root) e = Erf(t) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)", "none"),
    "a half first": ("t = Mul(x, inverse) e = Erf(t) a = Add(one, e) m = Mul(x, half) y = Mul(m, a)", "none"),
    "a half inside": ("t = Div(x, root) e = Erf(t) a = Add(e, one) m = Mul(half, a) y = Mul(m, x)", "none"),
    "a power": (f"c = Pow(x, three) d = Mul(c, cube) s = Add(x, d) t = Mul(s, outer) {TANH} m = Mul(x, half) y = Mul(m, a)", "tanh"),
    "products": (f"b = Mul(x, x) c = Mul(b, x) d = Mul(cube, c) s = Add(d, x) t = Mul(outer, s) {TANH} m = Mul(a, x) y = Mul(half, m)", "tanh"),
    "Horner's": (f"b = Mul(x, x) d = Mul(b, cube) s = Add(d, one) u = Mul(x, outer) t = Mul(u, s) {TANH} m = Mul(x, half) y = Mul(m, a)", "tanh"),
    "no half": ("t = Div(x, root) e = Erf(t) a = Add(e, one) y = Mul(x, a)", None),
    "another divisor": ("t = Div(x, three) e = Erf(t) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)", None),
    "another summand": ("t = Div(x, root) e = Erf(t) a = Add(e, half) m = Mul(x, a) y = Mul(m, half)", None),
    "another variable": ("v = Neg(x) t = Div(v, root) e = Erf(t) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)", None),
    "a square": (f"c = Pow(x, two) d = Mul(c, cube) s = Add(x, d) t = Mul(s, outer) {TANH} m = Mul(x, half) y = Mul(m, a)", None),
    "another power": (f"c = Pow(x, half) d = Mul(c, cube) s = Add(x, d) t = Mul(s, outer) {TANH} m = Mul(x, half) y = Mul(m, a)", None),
    "more factors": ("t = Div(x, root) e = Erf(t) a = Add(e, one) m = Mul(x, a) n = Mul(m, half) y = Mul(n, x)", "inside"),
}  # fmt: skip
CONSTANTS = {"one": 1, "two": 2, "three": 3, "half": 0.5, "root": 2**0.5, "inverse": 0.5**0.5,
             "cube": CUBE, "outer": ROOT}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gelus_compute_the_same(name):
    body, kind = CASES[name]
    texts = ", ".join(f"float {n} = {{{v:.9g}}}" for n, v in CONSTANTS.items())
    graph = ir_of(f"g (float[2,300] x) => (float[2,300] y) <{texts}> {{ {body} }}")
    done = merge_gelus(graph)
    if kind is None:
        assert done is graph
        return
    (gelu,) = [node for node in done.nodes if node.op == "Gelu"]
    assert kind == "inside" or ([*done.nodes] == [gelu] and gelu.attrs["approximate"] == kind)
    feeds = {"x": np.linspace(-6, 6, 600, dtype=np.float32).reshape(2, 300)}
    for got, expected in zip(run(done, feeds), run(graph, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5)


def test_gelus_of_other_shapes_stay():
    graph = ir_of("""g (float[2,3] x, float[1,3] z) => (float[2,3] y)
        <float root = {1.41421354}, float one = {1}, float[2,1] half = {0.5, 0.5}> {
        t = Div(z, root) e = Erf(t) a = Add(e, one) m = Mul(z, a) y = Mul(m, half) }""")
    assert merge_gelus(graph) is graph
