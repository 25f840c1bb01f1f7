"""ONNX sources that a conversion begins in their middle are begun there by verification too."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.bridges import onnxruntime as bridge
from serde.verification import verify_conversion
from serde.verification.baked_batch import NotComparable
from testing.onnx_live import model_of

CHAIN = """g (float[N,3] x, float[N,3] z) => (float[N,3] y, float[N,3] other)
{ a = Relu(x)
  b, c = Split<axis=1, num_outputs=2>(z)
  d = Concat<axis=1>(b, c)
  y = Sub(a, d)
  other = Neg(a) }"""
BRANCH = """g (float[3] x, bool cond) => (float[3] y) {
  a = Exp(x)
  y = If<then_branch = t () => (float[3] p) { p = Neg(a) },
         else_branch = e () => (float[3] q) { q = Abs(a) }>(cond) }"""
INDICES = """g (float[N] x) => (float[N,2] y) <float[4,2] t = {0,1,2,3,4,5,6,7}> {
  c = Abs(x)
  i = Cast<to=7>(c)
  y = Gather(t, i) }"""


# A model, where it begins, where it ends, and how many inputs it has then.
CASES = {
    "a value": (CHAIN, ["a", "z"], None, 2),
    "one of several outputs": (CHAIN, ["x", "b", "c"], None, 3),
    "an input": (CHAIN, ["x", "z"], None, 2),
    "an end as well": (CHAIN, ["a"], ["other"], 1),
    "an end before the outputs": (CHAIN, ["a", "d"], ["y"], 2),
    "read in subgraphs": (BRANCH, ["a", "cond"], None, 2),
    "integers": (INDICES, ["i"], None, 1),
}  # fmt: skip


@pytest.mark.parametrize(("body", "cuts", "ends", "count"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("live", [False, True])
def test_a_cut_source_is_compared(body, cuts, ends, count, live, tmp_path):
    model = model_of(body, 18, 8)
    onnx.save(model, tmp_path / "a.onnx")
    source = model if live else tmp_path / "a.onnx"
    report = serde.convert(source, tmp_path / "b.onnx", cut_inputs=cuts, outputs=ends, verify=True)
    comparison = report.verification
    assert comparison.done and report.ok and len(report.inputs) == count
    assert [o.max_abs for o in comparison.outputs] == [0] * len(report.outputs)


def test_a_fault_behind_the_cut_is_found(tmp_path):
    onnx.save(model_of(CHAIN, 18, 8), tmp_path / "a.onnx")
    onnx.save(
        model_of("g (float[N,3] a) => (float[N,3] other) { other = Abs(a) }", 18, 8),
        tmp_path / "b.onnx",
    )
    comparison = verify_conversion(
        tmp_path / "a.onnx", tmp_path / "b.onnx", graph=serde.load(tmp_path / "b.onnx"),
        outputs=["other"], reading={"cut_inputs": ["a"]},
    )  # fmt: skip
    assert comparison.done and not comparison.ok


def test_external_data_are_found(tmp_path):
    weight = np.arange(4096, dtype=np.float32).reshape(2, 2048)
    body = "g (float[N,2] x) => (float[N,2048] y) { a = Relu(x)\n y = MatMul(a, w) }"
    model = model_of(body, 18, 8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    (tmp_path / "from").mkdir()
    onnx.save(model, tmp_path / "from" / "a.onnx", save_as_external_data=True, location="a.data")
    path = tmp_path / "from" / "a.onnx"
    report = serde.convert(path, tmp_path / "b.onnx", cut_inputs=["a"], verify=True)
    assert report.ok and report.verification.done


@pytest.mark.parametrize(
    ("cut", "why"),
    [("inner", "main graph has no value 'inner'"), ("b", "the outputs depend on x, z as well")],
)
def test_what_cannot_be_begun_there_is_not_compared(cut, why):
    feeds = {cut: np.zeros((2, 1), np.float32)}
    with pytest.raises(NotComparable, match=f"not compared: .*{why}"):
        bridge.run(model_of(CHAIN, 18, 8), feeds, cut_inputs=[cut])


def test_a_model_whose_weights_are_inputs(tmp_path):
    """As files were before version 4 of ONNX's IR."""
    text = """<ir_version: 3, opset_import: ["": 9]> g (float[N,3] x, float[3,2] w) => (float[N,2] y)
        <float[3,2] w = {1,2,3,4,5,6}> { a = Relu(x) b = MatMul(a, w) y = Neg(b) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", cut_inputs=["b"], verify=True)
    assert report.verification.done and report.ok
