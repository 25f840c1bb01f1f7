"""Branches and loops become statements of Python that compute what ONNX Runtime does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.bridges.torch import TorchWorker
from tests.torch.torch_live import why_not

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
LOOP = """g (float[2] x, int64 n, bool c) => (float[2] y, float[K,2] rows) {
    y, rows = Loop(%s) <body = b (int64 i, bool go, float[2] a) => (bool on, float[2] d, float[2] s)
    { k = Cast<to = 1>(i) d = Add(a, %s) m = ReduceMax<keepdims = 0>(d) e = Constant<value_float = 9.0>()
      %s s = Mul(d, x) }> }"""
MODELS = {
    "a branch": """g (float[2] x, int64 n, bool c) => (float[2] y, float[2] z) {
        t = Add(x, x)
        y, z = If(c) <then_branch = a () => (float[2] p, float[2] q) { p = Mul(t, x) q = Exp(p) },
                      else_branch = b () => (float[2] p, float[2] q) { q = Identity(t) p = Neg(x) }>
        }""",
    "branches of other shapes": """g (float[2] x, int64 n, bool c) => (float[M] y) {
        y = If(c) <then_branch = a () => (float[4] p) { p = Concat<axis = 0>(x, x) },
                   else_branch = b () => (float[2] q) { q = Neg(x) }> }""",
    "a count": LOOP % ("n, , x", "k", "on = Identity(go)"),
    "a count and a condition": LOOP % ("n, c, x", "k", "on = Less(m, e)"),
    "a condition": LOOP % (", c, x", "k", "on = Less(m, e)"),
    "states that change places": """g (float[2] x, int64 n, bool c) => (float[2] y, float[2] z) {
        t = Neg(x)
        y, z = Loop(n, , x, t) <body = b (int64 i, bool go, float[2] p, float[2] q) =>
            (bool on, float[2] r, float[2] s) { on = Identity(go) s = Identity(p) r = Add(q, x) }> }""",
    "a loop in a branch in a loop": """g (float[2] x, int64 n, bool c) => (float[2] y) {
        one = Constant<value = int64 {1}>()
        y = Loop(n, , x) <body = b (int64 i, bool go, float[2] p) => (bool on, float[2] r) {
            on = Identity(go) f = Greater(i, one) k = Cast<to = 1>(i)
            r = If(f) <then_branch = t () => (float[2] u) {
                u = Loop(i, , p) <body = w (int64 j, bool g2, float[2] v) => (bool o2, float[2] v2)
                    { o2 = Identity(g2) l = Cast<to = 1>(j) m = Add(l, k) v2 = Sub(v, m) }> },
              else_branch = e () => (float[2] u) { u = Add(p, x) }> }> }""",
}  # fmt: skip

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


@pytest.fixture(scope="module")
def worker() -> TorchWorker:
    """One process for all modules."""
    return TorchWorker()


@pytest.mark.parametrize("name", MODELS)
def test_it_computes_what_onnx_runtime_does(name: str, worker, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEAD + MODELS[name])
    serde.convert(model, tmp_path / "n.py", to_format="torch")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    read = {i.name for i in session.get_inputs()}
    for count, condition in ((0, True), (1, True), (4, True), (3, False)):
        feeds = {
            "x": np.array([0.5, 1.5], np.float32),
            "n": np.array(count),
            "c": np.array(condition),
        }
        expected = session.run(None, {n: a for n, a in feeds.items() if n in read})
        got = worker.run(str(tmp_path / "n.py"), [*feeds.values()])
        for actual, right in zip(got, expected, strict=True):
            assert actual.shape == right.shape
            np.testing.assert_allclose(actual, right, rtol=1e-5)
