"""A quantized output that is one step off in some elements is right, and said to be so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.verification.quantized_steps import describe_steps, find_step
from testing.onnx_live import ir_of, model_of
from tests.tflite.litert_live import why_not

HEAD = "g (float[2,3] x) => ({} y) <float s = {{0.5}}, int8 z = {{3}}, int64[2] to = {{3, 2}}> "
STEPS = {
    "integers": ("int8[2,3]", "{ r = Relu(x) y = QuantizeLinear(r, s, z) }", 1.0),
    "integers that are moved": (
        "int8[3,2]", "{ q = QuantizeLinear(x, s, z) t = Transpose(q) y = Reshape(t, to) }", 1.0),
    "what they stand for": (
        "float[2,3]", "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }", 0.5),
    "places": ("int64[2,1]", "{ q = QuantizeLinear(x, s, z) y = ArgMax<axis=1>(q) }", None),
    "integers that are computed": ("int8[2,3]", "{ y = Cast<to=3>(x) }", None),
    "floats": ("float[2,3]", "{ q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) "
               "y = Relu(d) }", None),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_outputs_that_are_quantized_have_a_step(name: str) -> None:
    kind, body, step = STEPS[name]
    graph = ir_of(HEAD.format(kind) + body)
    assert find_step(graph, graph.outputs[0]) == step


GAPS = {
    "one element": ([1, 0, 0, 0], "1 of 4 elements are one quantization step off"),
    "half of them": ([1, -1, 0, 0], "2 of 4"),
    "most, as of a wrong zero point": ([1, 1, 1, 0], ""),
    "two steps": ([2, 0, 0, 0], ""),
}


@pytest.mark.parametrize("step", [1.0, 0.05])
@pytest.mark.parametrize("name", GAPS)
def test_what_is_one_step_off_is_told_from_what_is_more(name: str, step: float) -> None:
    gap, said = GAPS[name]
    dtype = np.int8 if step == 1 else np.float32
    expected = (np.asarray([5, -3, 7, 100]) * step).astype(dtype)
    got = (expected + np.asarray(gap) * step).astype(dtype)
    assert describe_steps(step, got, expected)[: len(said) or None] == said
    assert not describe_steps(step, got[:3], expected)


LAYER = """g (float[1,8,9,9] x) => (float[1,16,7,7] y)
    <float s = {0.02}, float u = {0.013}, float o = {0.17}, int8 z = {0}, int8[16,8,3,3] w = {W}> {
    q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) k = DequantizeLinear(w, u, z)
    c = Conv(d, k) r = QuantizeLinear(c, o, z) y = DequantizeLinear(r, o, z)
}"""


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
def test_an_integer_layer_in_litert_needs_no_tolerance(tmp_path: Path) -> None:
    """Its kernels multiply in fixed point without XNNPACK, and round otherwise."""
    draws = np.random.default_rng(0).integers(-127, 128, 16 * 8 * 9)
    serde.save(ir_of(LAYER.replace("W", ", ".join(map(str, draws)))), tmp_path / "m.onnx")
    done = serde.convert(tmp_path / "m.onnx", tmp_path / "m.tflite", verify=True)
    assert done.verification is not None and done.verification.done and done.verification.ok


class TestQuantizedNeighbours:
    """A rounding may decide between two integers; the source's own ways of being run tell."""

    BODY = (
        "g (float[1,4,8,8] x) => (float[1,4,4,4] y) <float s = {0.05}, uint8 z = {128}> {"
        "a = QuantizeLinear(x, s, z)\n b = DequantizeLinear(a, s, z)\n"
        "c = AveragePool<kernel_shape=[2,2], strides=[2,2]>(b)\n"
        "d = QuantizeLinear(c, s, z)\n y = DequantizeLinear(d, s, z) }"
    )

    def source(self, tmp_path, body=BODY, name="a.onnx"):
        onnx.save(model_of(body, 15, 8), tmp_path / name)
        return tmp_path / name

    def test_they_are_no_fault_of_the_conversion(self, tmp_path):
        report = serde.convert(self.source(tmp_path), tmp_path / "b.onnx", opset=21, verify=True)
        assert report.verification.ok

    def test_a_wrong_result_is_found_beside_them(self, tmp_path):
        wrong = self.source(tmp_path, self.BODY.replace("s = {0.05}", "s = {0.06}"), "b.onnx")
        check = serde.verify(self.source(tmp_path), wrong)
        assert not check.ok
