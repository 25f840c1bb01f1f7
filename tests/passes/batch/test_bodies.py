"""The batch through the bodies of ``If``, ``Loop`` and ``Scan``."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from testing.onnx_live import run_model
from tests.passes.batches import assert_is_rebatched, model_with

NO_BATCH = {"*": "N", "k": None}
BRANCHES = """(float[1,4] x, int64 k) => (float[1,{size}] y) {{ z = Constant<value_int=0>() c = Greater(k, z)
  y = If(c) <then_branch = a () => (float[1,{size}] u) {{ {then} }},
             else_branch = b () => (float[1,{size}] v) {{ {other} }}> }}"""
IFS = {
    "both": ("u = Relu(x)", "v = Neg(x)", 4),
    "a constant branch": ("u = Relu(x)", "v = Identity(w)", 4),
    "a Reshape inside": ("a = Relu(x) b = MatMul(a, m) u = Reshape(b, s)", "v = MatMul(x, m)", 3),
}


@pytest.mark.parametrize("k", [0, 3])
@pytest.mark.parametrize(("then", "other", "size"), IFS.values(), ids=IFS)
def test_branches(then, other, size, k, tmp_path):
    text = BRANCHES.format(then=then, other=other, size=size)
    model = model_with(text, w=(1, 4), m=(4, 3), s=[1, -1])
    assert_is_rebatched(model, tmp_path, NO_BATCH, {"x": 0}, values={"k": k})


LOOP = """(float[1,4] x, int64 k) => (float[1,4] y, float[T,1,4] z) {{ c = Constant<value = bool {{1}}>()
  y, z = Loop(k, c, {begin}) <body = b (int64 i, bool t, float[1,4] h) => (bool g, float[1,4] n, float[1,4] o)
  {{ g = Identity(t) a = Add(h, x) {operators} }}> }}"""
LOOPS = {
    "a state of the batch": ("x", "n = Tanh(a) o = Relu(a)"),
    "a state that begins as one for all": ("w", "n = Tanh(a) o = Relu(a)"),
    "a constant result": ("x", "n = Identity(w) o = Relu(a)"),
    "a product": ("w", "b = MatMul(a, m) n = Tanh(b) r = Reshape(b, s) o = Softmax(r)"),
}


@pytest.mark.parametrize("batch", ["N", 3])
@pytest.mark.parametrize(("begin", "operators"), LOOPS.values(), ids=LOOPS)
def test_turns_of_a_loop(begin, operators, batch, tmp_path):
    text = LOOP.format(begin=begin, operators=operators)
    model = model_with(text, w=(1, 4), m=(4, 4), s=[1, -1])
    request = {"*": batch, "k": None}
    assert_is_rebatched(model, tmp_path, request, {"x": 0}, {"z": 1}, values={"k": 3})


SCAN = """(float[1,5,4] x) => (float[1,4] y, float[{out}] z) {{
  y, z = Scan(w, x) <num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[{axis}],
  body = b (float[1,4] h, float[1,4] v) => (float[1,4] n, float[1,4] o)
  {{ a = Add(h, v) n = Tanh(a) o = Relu(a) }}> }}"""


@pytest.mark.parametrize(
    ("axis", "out", "target"), [(0, "5,1,4", 1), (1, "1,5,4", 0), (2, "1,4,5", 0)]
)
def test_a_scan(axis, out, target, tmp_path):
    model = model_with(SCAN.format(axis=axis, out=out), w=(1, 4))
    assert_is_rebatched(model, tmp_path, "N", targets={"z": target})


SAMPLES = """(float[2,4] x, int64 k) => (float[2,4] y, float[T,2,4] z) {{ c = Constant<value = bool {{1}}>()
  y, z = Loop(k, c, w) <body = b (int64 i, bool t, float[2,4] h) => (bool g, float[2,4] n, float[2,4] o)
  {{ g = Identity(t) {operators} }}> }}"""


def write_samples(operators, folder):
    """A model of two samples, whose state begins with as many equal rows."""
    rows = np.array([[1, 2, 3, 4]] * 2, np.float32)
    model = model_with(SAMPLES.format(operators=operators), w=rows, f=rows * rows.cumsum(0))
    onnx.save(model, folder / "a.onnx")
    return model


@pytest.mark.parametrize("operators", ["n = Add(h, x) o = Relu(n)", "n = Tanh(h) o = Add(h, x)"])
def test_a_state_of_equal_samples_is_expanded(operators, tmp_path):
    model = write_samples(operators, tmp_path)
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", rebatch=NO_BATCH)
    x = np.random.default_rng(0).standard_normal((6, 4), np.float32)
    k = np.array(3)
    y, z = run_model(tmp_path / "b.onnx", {"x": x, "k": k})
    pairs = [run_model(model, {"x": x[i : i + 2], "k": k}) for i in (0, 2, 4)]
    np.testing.assert_allclose(y, np.concatenate([a for a, _ in pairs]), rtol=1e-5)
    np.testing.assert_allclose(z, np.concatenate([b for _, b in pairs], 1), rtol=1e-5)


def test_a_state_that_tells_samples_apart_later_is_refused(tmp_path):
    write_samples("n = Mul(h, f) o = Add(h, x)", tmp_path)
    with pytest.raises(serde.Unconvertible, match="is for a batch of 2"):
        serde.load(tmp_path / "a.onnx", rebatch=NO_BATCH)


REFUSED = {
    "a decision for each sample": ("(float[1] x) => (float[1] y) { z = Constant<value = float {0}>() c = Greater(x, z) y = If(c) <then_branch = a () => (float[1] u) { u = Relu(x) }, else_branch = b () => (float[1] v) { v = Neg(x) }> }", "If ×1"),
    "samples mixed in a branch": ("(float[1,4] x, int64 k) => (float[1,4] y) { z = Constant<value_int=0>() c = Greater(k, z) y = If(c) <then_branch = a () => (float[1,4] u) { u = Softmax<axis=0>(x) }, else_branch = b () => (float[1,4] v) { v = Neg(x) }> }", "Softmax ×1"),
    "another axis in a branch": ("(float[1,1,4] x, int64 k) => (float[1,1,4] y) { z = Constant<value_int=0>() c = Greater(k, z) y = If(c) <then_branch = a () => (float[1,1,4] u) { u = Transpose<perm=[1,0,2]>(x) }, else_branch = b () => (float[1,1,4] v) { v = Neg(x) }> }", "If ×1"),
    "another axis in the next turn": ("(float[1,1,4] x, int64 k) => (float[1,1,4] y) { c = Constant<value = bool {1}>() y = Loop(k, c, x) <body = b (int64 i, bool t, float[1,1,4] h) => (bool g, float[1,1,4] n) { g = Identity(t) n = Transpose<perm=[1,0,2]>(h) }> }", "Loop ×1"),
    "as long as a sample says": ("(float[1] x, int64 k) => (float[1] y) { c = Constant<value = bool {1}>() z = Constant<value = float {0}>() y = Loop(k, c, x) <body = b (int64 i, bool t, float[1] h) => (bool[1] g, float[1] n) { g = Greater(h, z) n = Neg(h) }> }", "Loop ×1"),
    "a scan over samples": ("(float[1,4] x) => (float[1,4] y) { y = Scan(x) <num_scan_inputs=1, body = b (float[4] v) => (float[4] o) { o = Relu(v) }> }", "Scan ×1"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED)
def test_what_mixes_samples_is_refused(body, why, tmp_path):
    onnx.save(model_with(body), tmp_path / "a.onnx")
    batch = NO_BATCH if "int64 k)" in body else "N"
    with pytest.raises(serde.Unconvertible, match=why):
        serde.load(tmp_path / "a.onnx", rebatch=batch)
