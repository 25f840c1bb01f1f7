"""Fewer bits in bodies, beside operands of unknown type, and where nothing changes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import serde
from serde.bridges.onnxruntime import run as run_rounded
from testing.onnx_live import PLAIN, error, model_of, run_at

F = np.float32
BODIES = """g (float[2,64] x, bool c, int64 n) => (float[2,64] y, float[2,64] z, float[64] e1, float[2,64] p) {
    a = Relu(x)
    y = If(c) <then_branch = t () => (float[2,64] u) { u = MatMul(a, w) },
               else_branch = e () => (float[2,64] o) { m = MatMul(a, w) o = Sub(m, x) }>
    z = Loop(n, , x) <body = b (int64 i, bool g, float[2,64] s) => (bool h, float[2,64] r)
        { h = Identity(g) q = MatMul(s, v) r = Tanh(q) }>
    e1, p = Scan<num_scan_inputs = 1, body = f (float[64] k, float[64] j) => (float[64] l, float[64] d)
        { t = MatMul(j, v) l = Add(k, t) d = Relu(l) }>(o0, x)
}"""


@pytest.mark.parametrize("options", [{"fp16": True}, {"fp16": True, "fp16_io": True},
                                     *({"weights": k} for k in ("fp16", "bf16", "int8"))])  # fmt: skip
def test_bodies(options, tmp_path):
    """Weights are in the file once, in fewer bits; states and results are as they were."""
    model = model_of(BODIES, opset=18, ir_version=8)
    draws = np.random.default_rng(0)
    held = {n: draws.standard_normal((64, 64)).astype(F) / 8 for n in "wv"}
    held["o0"] = np.zeros(64, F)
    model.graph.initializer.extend(from_array(a, n) for n, a in held.items())
    onnx.save(model, tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", verify=True, **options)
    assert report.ok and report.notes == []
    made = onnx.load(tmp_path / "b.onnx")
    onnx.checker.check_model(made, full_check=True)
    size = {"int8": 1}.get(options.get("weights"), 2) * 2 * 64 * 64
    assert size < (tmp_path / "b.onnx").stat().st_size < size + 4000
    narrow = np.float16 if options.get("fp16_io") else F
    for chosen in (True, False):
        feeds = {"x": draws.standard_normal((2, 64)).astype(narrow).astype(F),
                 "c": np.array(chosen), "n": np.array(3)}  # fmt: skip
        expected = run_at(PLAIN, model, feeds)
        got = run_at(PLAIN, made, {**feeds, "x": feeds["x"].astype(narrow)})
        for y, wanted in zip(got, expected, strict=True):
            assert 0 < error(y.astype(F), wanted) < 4e-2


ANGLES = "float[8] inv = {1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001}"
COUNTERS = {  # text: numbers that float16 lacks, in bodies
    "a counter": """g (float[2,8] x, int64 n, int64 p) => (int64 e, float[K,2,8] y) <A> {
        e, y = Loop(n, , p) <body = b (int64 i, bool g, int64 s) => (bool h, int64 r, float[2,8] o) {
            h = Identity(g) r = Add(s, n) f = Cast<to = 1>(s) a = Mul(f, inv) c = Cos(a)
            o = Mul(x, c) }> }""",
    "a counter of floats": """g (float[2,8] x, int64 n, float q) => (float e, float[K,2,8] y)
        <A, float one = {1}> {
        e, y = Loop(n, , q) <body = b (int64 i, bool g, float s) => (bool h, float r, float[2,8] o) {
            h = Identity(g) r = Add(s, one) a = Mul(s, inv) c = Cos(a) o = Mul(x, c) }> }""",
    "positions of a branch in a branch": """g (float[2,8] x, int64 p, bool k) => (float[2,8] y) <A> {
        f = Cast<to = 1>(p) y = If(k) <
            then_branch = t () => (float[2,8] u) { m = Sigmoid(x) u = If(k) <
                then_branch = t2 () => (float[2,8] v) { a = Mul(f, inv) c = Sin(a) v = Mul(c, m) },
                else_branch = e2 () => (float[2,8] w) { w = Neg(m) }> },
            else_branch = e () => (float[2,8] z) { z = Identity(x) }> }""",
    "states that add up": """g (float[2,8] x, float[3000,2,8] v) => (float[2,8] e, float[3000,2,8] y) {
        e, y = Scan<num_scan_inputs = 1, body = b (float[2,8] s, float[2,8] u)
            => (float[2,8] r, float[2,8] o) { k = Abs(u) r = Add(s, k) o = Mul(r, k) }>(x, v) }""",
}  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"fp16_io": True}], ids=["", "ends"])
@pytest.mark.parametrize("text", COUNTERS.values(), ids=COUNTERS)
def test_numbers_that_float16_lacks_in_bodies(text, options, tmp_path):
    model = model_of(text.replace("<A", f"<{ANGLES}"), opset=18, ir_version=8)
    onnx.save(model, tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True, **options)
    assert report.notes == []
    made = onnx.load(tmp_path / "b.onnx")
    draws = np.random.default_rng(0)
    feeds = {"x": draws.standard_normal((2, 8)).astype(F), "n": np.array(3), "p": np.array(8190),
             "q": np.array(8190.5, F), "k": np.array(True),
             "v": draws.standard_normal((3000, 2, 8)).astype(F)}  # fmt: skip
    expected = run_at(PLAIN, model, feeds)
    halves = {v.name for v in made.graph.input if v.type.tensor_type.elem_type == 10}
    feeds = {n: a.astype(np.float16) if n in halves else a for n, a in feeds.items()}
    for got, wanted in zip(run_rounded(made, feeds, rounded=True), expected, strict=True):
        assert error(got.astype(wanted.dtype), wanted) < 2e-2


NOTHING = {  # text, options, the note
    "float16": ("(int64[2] x) => (int64[2] y) { y = Add(x, x) }", {"fp16": True},
                "fp16: nothing became float16: no operator computes in float32"),
    "float16 of counts": ("(int64[2] x) => (float[2] y) { y = Cast<to = 1>(x) }", {"fp16": True},
                          "fp16: nothing became float16: here float32 is needed by Cast"),
    "weights": ("(float[2] x) => (float[2] y) { y = Add(x, x) }", {"weights": "int8"},
                "weights: none became int8: no Conv, ConvTranspose, GRU, Gather, Gemm, LSTM, "
                "MatMul, RNN reads 4,096 or more constant float32"),
    "float32": ("(float[2] x) => (float[2] y) { y = Add(x, x) }", {"fp32": True},
                "fp32: nothing became float32: the model has no float16, bfloat16 or float64"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTHING.values(), ids=NOTHING)
def test_an_option_that_changes_nothing_says_so(case, tmp_path):
    text, options, note = case
    onnx.save(model_of(f"g {text}", opset=18, ir_version=8), tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", **options)
    assert report.notes == [note]


UNKNOWN = """<ir_version: 8, opset_import: ["" : 18, "com.acme" : 1]>
g (float[2,4] x) => (float[2,4] y, z) <float[4] w = {1, 2, 3, 4}> {
    a = Mul(x, w) b = com.acme.Foo(a) c = Mul(b, w) y = Add(c, w) d = Relu(b) z = Sum(d, x) }"""


def test_operands_of_unknown_type_stay(tmp_path):
    """The type of no operand changes beside one that is not known."""
    onnx.save(onnx.parser.parse_model(UNKNOWN), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True)
    made = onnx.load(tmp_path / "b.onnx")
    halves = {v.name for v in made.graph.value_info if v.type.tensor_type.elem_type == 10}
    halves |= {t.name for t in made.graph.initializer if t.data_type == 10}
    readers = [n for n in made.graph.node if {"b", "d"} & {*n.input}]
    assert [n.op_type for n in readers] == ["Mul", "Relu", "Sum"] and halves
    assert halves.isdisjoint(n for node in readers for n in (*node.input, *node.output))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_weights_without_numbers_do_not_become_int8(number, tmp_path):
    """Nothing is written, and the weight is named; float16 holds them."""
    model = model_of("g (float[2,64] x) => (float[2,64] y) { y = MatMul(x, w) }", opset=18)
    weight = np.ones((64, 64), F)
    weight[3, 5] = number
    model.graph.initializer.append(from_array(weight, "w"))
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(serde.ConversionError, match="'w' has NaN or infinities"):
        serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", weights="int8")
    assert not (tmp_path / "b.onnx").exists()
    assert serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", weights="fp16").ok


def test_the_smallest_weights_become_int8(tmp_path):
    """A scale of 0 would divide by nothing."""
    model = model_of("g (float[2,64] x) => (float[2,64] y) { y = MatMul(x, w) }", opset=18)
    model.graph.initializer.append(from_array(np.full((64, 64), 1e-45, F), "w"))
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", weights="int8")
    made = onnx.load(tmp_path / "b.onnx")
    (y,) = run_at(PLAIN, made, {"x": np.ones((2, 64), F)})
    assert np.abs(y).max() < 1e-36
