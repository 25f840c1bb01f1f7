"""Batch, sizes, cuts and profiles of ONNX models."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import serde

ATTENTION = """
<ir_version: 8, opset_import: ["": 17]>
main (float[B, 12, 64] x) => (float[B, 768] z) {
  s = Constant <value = int64[4] {B, 12, 8, 8}> ()
  r = Reshape (x, s)
  t = Transpose <perm = [0, 2, 1, 3]> (r)
  m = Constant <value = int64[3] {M, 12, 8}> ()
  u = Reshape (t, m)
  q = Softmax (u)
  f = Constant <value = int64[2] {B, 768}> ()
  z = Reshape (q, f)
}"""


def model(text, path):
    onnx.save(parser.parse_model(text), path)
    return path


def run(path, **feeds):
    return onnxruntime.InferenceSession(path).run(None, feeds)[0]


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("baked", [1, 2])
@pytest.mark.parametrize("opset", [13, 17, 21])
def test_rebatch_takes_the_baked_batch_out(tmp_path, baked, opset):
    text = ATTENTION.replace("B", str(baked)).replace("M", str(baked * 8))
    source, target = model(text, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    serde.convert(source, target, rebatch="N", opset=opset)
    x = random(6, 12, 64)
    parts = [run(source, x=x[i : i + baked]) for i in range(0, 6, baked)]
    np.testing.assert_allclose(run(target, x=x), np.concatenate(parts), rtol=1e-6)
    assert serde.load(target).inputs[0].shape == ("N", 12, 64)


def test_rebatch_to_a_number(tmp_path):
    text = ATTENTION.replace("B", "1").replace("M", "8")
    graph = serde.load(model(text, tmp_path / "a.onnx"), rebatch=5)
    assert graph.outputs[0].shape == (5, 768)


def test_rebatch_refuses_a_batch_that_may_have_moved(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    main (float[1, 12, 64] x) => (float[12, 1, 64] y) {
      s = Constant <value = int64[3] {12, 1, 64}> ()
      y = Reshape (x, s)
    }"""
    with pytest.raises(serde.Unconvertible, match="may move the batch"):
        serde.load(model(text, tmp_path / "a.onnx"), rebatch="N")


def test_rebatch_takes_the_batch_out_of_the_sizes_of_a_resize(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    main (float[1, 2, 4, 4] x) => (float[1, 2, 8, 6] y) <int64[4] s = {1, 2, 8, 6}> {
      y = Resize <mode = "linear"> (x, , , s)
    }"""
    source, target = model(text, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    report = serde.convert(source, target, rebatch="N", verify=True)
    assert report.verification.done and report.ok
    x = random(3, 2, 4, 4)
    parts = [run(source, x=x[i : i + 1]) for i in range(3)]
    np.testing.assert_allclose(run(target, x=x), np.concatenate(parts), rtol=1e-6)
    assert serde.load(target).outputs[0].shape == ("N", 2, 8, 6)


def test_a_rebatched_model_is_verified_batch_by_batch(tmp_path):
    text = ATTENTION.replace("B", "2").replace("M", "16")
    source = model(text, tmp_path / "a.onnx")
    report = serde.convert(source, tmp_path / "b.onnx", rebatch=6, verify=True)
    assert report.verification.done and report.ok
    report = serde.convert(source, tmp_path / "b.onnx", rebatch=3, verify=True)
    assert report.verification.done and report.ok


def test_rebatch_wants_one_batch(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    main (float[1, 4] x, float[2, 4] w) => (float[2, 4] y) { y = Add (x, w) }"""
    with pytest.raises(serde.UsageError, match="do not share a batch"):
        serde.load(model(text, tmp_path / "a.onnx"), rebatch="N")


NAMED = """
<ir_version: 8, opset_import: ["": 17]>
main (float[N, C, 8] x) => (float[N, K] y) {
  s = Shape (x)
  i = Constant <value = int64[1] {0}> ()
  n = Gather (s, i)
  r = Constant <value = int64[1] {-1}> ()
  t = Concat <axis = 0> (n, r)
  h = Relu (x)
  y = Reshape (h, t)
}"""


def test_static_folds_the_shape_arithmetic(tmp_path):
    graph = serde.load(model(NAMED, tmp_path / "a.onnx"), static={"N": 2, "C": 3})
    assert [n.op for n in graph.nodes] == ["Relu", "Reshape"]
    assert graph.outputs[0].shape == (2, 24)


def test_static_names_must_exist(tmp_path):
    with pytest.raises(serde.UsageError, match="no dimension is called Q; the inputs have: C, N"):
        serde.load(model(NAMED, tmp_path / "a.onnx"), static={"Q": 2})


def test_cut_inputs(tmp_path):
    path = model(NAMED, tmp_path / "a.onnx")
    with pytest.raises(serde.UsageError, match="no layer or value 'g'"):
        serde.load(path, cut_inputs=["g"])
    graph = serde.load(path, cut_inputs=["h"], static={"N": 2, "C": 3})
    assert [v.name for v in graph.inputs] == ["h"]
    assert [n.op for n in graph.nodes] == ["Reshape"]


def test_cut_inputs_must_be_enough(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    main (float[4] x, float[4] w) => (float[4] y) { h = Relu (x) y = Add (h, w) }"""
    path = model(text, tmp_path / "a.onnx")
    with pytest.raises(serde.UsageError, match="also depend on input 'w'"):
        serde.load(path, cut_inputs=["h"])
    assert [v.name for v in serde.load(path, cut_inputs=["h", "w"]).inputs] == ["h", "w"]


CALLS = """
<ir_version: 8, opset_import: ["": 17, "local": 1]>
main (float[N, 4] x) => (float[N, 4] y) { t = local.f (x) u = Neg (t) y = local.f (u) }
<domain: "local", opset_import: ["": 17]> f (a) => (b) { c = Relu (a) b = Exp (c) }"""
SPLIT = """
<ir_version: 8, opset_import: ["": 17]>
main (float[2, 6] x, int64 i) => (float[2, k] y) <int64[2] parts = {2, 4}> {
  h = Relu (x) s = SplitToSequence <axis = 1> (h, parts) y = SequenceAt (s, i)
}"""


@pytest.mark.parametrize(
    ("text", "outputs", "names"),
    [(CALLS, ["t"], ["t"]), (CALLS, ["u", "t"], ["u", "t"]), (SPLIT, ["s"], ["s[0]", "s[1]"]),
     (SPLIT, ["h"], ["h"])],
)  # fmt: skip
def test_a_model_cut_short_is_verified(tmp_path, text, outputs, names):
    """Through calls of functions, to sequences, and where inputs are no longer needed."""
    source, target = model(text, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    report = serde.convert(source, target, outputs=outputs, verify=True)
    assert report.verification.done and report.ok
    assert [o.name for o in report.verification.outputs] == names
    onnx.checker.check_model(target, full_check=True)


def test_sizes_are_followed_through_functions(tmp_path):
    source, target = model(CALLS, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    graph = serde.load(source, cut_inputs=["u"])
    assert [v.shape for v in (*graph.inputs, *graph.outputs)] == [("N", 4), ("N", 4)]
    assert serde.load(source, rebatch=5).outputs[0].shape == (5, 4)
    report = serde.convert(source, target, profile="npu-static", static={"N": 3}, verify=True)
    assert report.verification.done and report.ok and not onnx.load(target).functions


SLICED = """
<ir_version: 10, opset_import: ["": 21]>
main (float[N, 8] x) => (float[N, 7] y) {
  b = Constant <value = int64[1] {1}> ()
  e = Constant <value = int64[1] {9223372036854775807}> ()
  h = HardSwish (x)
  y = Slice (h, b, e, b)
}"""


def test_profiles_keep_to_what_consumers_take(tmp_path):
    source, target = model(SLICED, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    report = serde.convert(source, target, profile="tensorrt")
    assert report.notes == ["ends of 1 slice(s) moved within 32 bits"]
    assert all(
        abs(int(v)) < 2**31
        for t in onnx.load(target).graph.initializer
        for v in onnx.numpy_helper.to_array(t)
    )
    x = random(3, 8)
    np.testing.assert_allclose(run(target, x=x), run(source, x=x), rtol=1e-6)


def test_the_npu_profile_is_static_and_spells_hard_swish_out(tmp_path):
    source, target = model(SLICED, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    with pytest.raises(serde.UsageError, match="input 'x' is \\(N, 8\\)"):
        serde.convert(source, target, profile="npu-static")
    report = serde.convert(source, target, profile="npu-static", static={"N": 3}, opset=17)
    assert "HardSwish" not in report.operators
    assert report.options["opset"] == 17
    x = random(3, 8)
    np.testing.assert_allclose(run(target, x=x), run(source, x=x), rtol=1e-6)


def test_profiles_look_into_bodies(tmp_path):
    text = """<ir_version: 10, opset_import: ["": 21]>
    main (float[3, 8] x, bool c) => (float[3, 7] y)
    <int64[1] b = {1}, int64[1] e = {9223372036854775807}> {
      y = If (c) <
        then_branch = t () => (float[3, 7] p) { h = HardSwish (x) p = Slice (h, b, e, b) },
        else_branch = f () => (float[3, 7] q) { q = Slice (x, b, e, b) }
      >
    }"""
    source, target = model(text, tmp_path / "a.onnx"), tmp_path / "b.onnx"
    report = serde.convert(source, target, profile="npu-static")
    assert report.notes == [
        "ends of 2 slice(s) moved within 32 bits", "HardSwish written as older operators"
    ]  # fmt: skip
    for c in (True, False):
        feeds = {"x": random(3, 8), "c": np.array(c)}
        np.testing.assert_allclose(run(target, **feeds), run(source, **feeds), rtol=1e-5)


def test_unknown_profiles_are_listed(tmp_path):
    with pytest.raises(serde.UsageError, match="is not one of .*onnxruntime"):
        serde.convert(model(SLICED, tmp_path / "a.onnx"), tmp_path / "b.onnx", profile="tpu")
