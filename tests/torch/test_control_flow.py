"""Branches and loops become statements of Python that compute what ONNX Runtime does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.bridges.torch import TorchWorker
from serde.errors import Unconvertible
from tests.torch.torch_live import VARIABLE, why_not

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
    "turns that are looked up": """g (float[2] x, int64 n, bool c) => (float[2] y, float[K] rows) {
        t = Constant<value = float[5,2] {1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0,9.0,10.0}>()
        y, rows = Loop(n, , x) <body = b (int64 i, bool go, float[2] a) =>
            (bool on, float[2] d, float s) { on = Identity(go) r = Gather(t, i) d = Mul(a, r)
            z = Constant<value = int64 {0}>() s = Gather(d, z) }> }""",
    "a number of turns that is known": """g (float[2] x, int64 n, bool c) => (float[M] y) {
        k = Constant<value = int64 {3}>()
        y = Loop(k, , x) <body = b (int64 i, bool go, float[J] a) => (bool on, float[L] d)
            { on = Identity(go) f = Cast<to = 1>(i) e = Add(a, f) d = Concat<axis = 0>(e, x) }> }""",
    "a turned result": """g (float[2] x, int64 n, bool c) => (float[2,3] y) {
        u = Constant<value = float[3,2] {1.0,2.0,3.0,4.0,5.0,6.0}>() m = Mul(u, x)
        y = If(c) <then_branch = a () => (float[2,3] p) { q = Transpose(m) p = Exp(q) },
                   else_branch = b () => (float[2,3] p) { sh = Constant<value = int64[2] {2, 3}>()
                   p = Reshape(m, sh) }> }""",
    "two names of a result": """g (float[2] x, int64 n, bool c) => (float[2] y, float[2] z) {
        y, z = If(c) <then_branch = a () => (float[2] p, float[2] q) { p = Add(x, x) q = Identity(p) },
                      else_branch = b () => (float[2] p, float[2] q) { p = Identity(x) q = Identity(x) }>
        }""",
}  # fmt: skip
# What torch.cond and while_loop do not take, with what the message says to do.
REFUSED = {
    "a condition": "Give it a number of turns",
    "branches of other ranks": "Let both be of one type and rank",
    "branches of other types": "Let both be of one type and rank",
    "a state that grows": "Keep the type and the shape",
}
UNLIKE = {
    "branches of other ranks": """g (float[2] x, int64 n, bool c) => (float y) {
        y = If(c) <then_branch = a () => (float[2] p) { p = Neg(x) },
                   else_branch = b () => (float p) { p = ReduceSum<keepdims = 0>(x) }> }""",
    "branches of other types": """g (float[2] x, int64 n, bool c) => (float[2] y) {
        y = If(c) <then_branch = a () => (float[2] p) { p = Neg(x) },
                   else_branch = b () => (int64[2] p) { p = Cast<to = 7>(x) }> }""",
    "a state that grows": """g (float[2] x, int64 n, bool c) => (float[M] y) {
        y = Loop(n, , x) <body = b (int64 i, bool go, float[J] a) => (bool on, float[L] d)
            { on = Identity(go) d = Concat<axis = 0>(a, x) }> }""",
}  # fmt: skip
RUNS = ((0, True), (1, True), (4, True), (3, False))

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


@pytest.fixture(scope="module")
def worker() -> TorchWorker:
    """One process for all modules."""
    return TorchWorker()


def make_feeds(count: int, condition: bool) -> dict[str, np.ndarray]:
    x = np.array([0.5, 1.5], np.float32)
    return {"x": x, "n": np.array(count), "c": np.array(condition)}


def run_onnxruntime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    read = {i.name for i in session.get_inputs()}
    return session.run(None, {n: a for n, a in feeds.items() if n in read})


def require_same(got: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for actual, right in zip(got, expected, strict=True):
        assert actual.shape == right.shape
        np.testing.assert_allclose(actual, right, rtol=1e-5)


@pytest.mark.parametrize("exportable", [False, True], ids=["statements", "exportable"])
@pytest.mark.parametrize("name", MODELS)
def test_it_computes_what_onnx_runtime_does(
    name: str, exportable: bool, worker, tmp_path: Path
) -> None:
    if exportable and name in REFUSED:
        pytest.skip("it is refused")
    model = onnx.parser.parse_model(HEAD + MODELS[name])
    serde.convert(model, tmp_path / "n.py", exportable=exportable)
    for run in RUNS:
        feeds = make_feeds(*run)
        got = worker.run(str(tmp_path / "n.py"), [*feeds.values()])
        require_same(got, run_onnxruntime(model, feeds))


@pytest.mark.parametrize("name", REFUSED)
def test_what_export_does_not_take_is_refused(name: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEAD + {**MODELS, **UNLIKE}[name])
    with pytest.raises(Unconvertible, match=f"'y.*{REFUSED[name]}"):
        serde.convert(model, tmp_path / "n.py", exportable=True)


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """The exported programs of all models, and what they compute of other numbers of turns."""
    place = tmp_path_factory.mktemp("exported")
    for name in MODELS.keys() - REFUSED.keys():
        path = place / f"{name.replace(' ', '_')}.py"
        serde.convert(onnx.parser.parse_model(HEAD + MODELS[name]), path, exportable=True)
        for number, run in ((1, (2, True)), (2, (4, False))):
            np.savez(path.with_suffix(f".{number}.npz"), *make_feeds(*run).values())
    script = Path(__file__).with_name("export_step.py")
    command = [os.environ.get(VARIABLE) or sys.executable, script, place]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return place


@pytest.mark.parametrize("name", [n for n in MODELS if n not in REFUSED])
def test_the_exported_program_computes_it(name: str, exported: Path) -> None:
    path = exported / f"{name.replace(' ', '_')}.py"
    reason = path.with_suffix(".txt")
    assert not reason.exists(), reason.read_text()
    model, feeds = onnx.parser.parse_model(HEAD + MODELS[name]), make_feeds(4, False)
    with np.load(path.with_suffix(".out.npz")) as got:
        require_same([*got.values()], run_onnxruntime(model, feeds))
    serde.convert(path.with_suffix(".pt2"), path.with_suffix(".onnx"))
    again = onnx.load(path.with_suffix(".onnx"))
    assert {n.op_type for n in again.graph.node} & {"If", "Loop"} or "known" in name
    require_same(run_onnxruntime(again, feeds), run_onnxruntime(model, feeds))
