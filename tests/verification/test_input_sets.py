"""Inputs of several kinds: what normal numbers hide is found on others."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.verification import compare_results
from serde.verification.input_sets import input_sets
from testing.onnx_live import ir_of, save_model

X = "g (float[N,4] x) => (float[N,4] y) "


class TestInputSets:
    """Faults that normal numbers hide; each is shown by one set of inputs alone."""

    # The source's body, a wrong result's, and the sets on which they differ.
    FAULTS = {
        "negative": (X + "{ y = Relu(x) }", X + "{ a = Abs(x)\n b = Max(x, a)\n y = Mul(b, b) }",
                     "off by"),
        "zero": (X + "{ y = Sign(x) }",
                 X + "<float[1] z = {0}, float[1] p = {1}, float[1] m = {-1}>"
                 "{ c = Less(x, z)\n y = Where(c, m, p) }", "on zero inputs"),
        "equal": (X + "<float[1] h = {0.5}> { c = Greater(x, h)\n y = Cast<to=1>(c) }",
                  X + "<float[1] h = {0.5}> { c = GreaterOrEqual(x, h)\n y = Cast<to=1>(c) }",
                  "on equal inputs"),
        "special": (X + "{ y = Round(x) }",
                    X + "<float[1] h = {0.5}> { a = Add(x, h)\n y = Floor(a) }",
                    "on "),
        "large": (X + "{ y = Identity(x) }",
                  X + "<float lo = {-50}, float hi = {200}> { y = Clip(x, lo, hi) }", "on "),
        "infinite": (X + "{ y = Identity(x) }",
                     X + "<float lo = {-100000}, float hi = {100000}> { y = Clip(x, lo, hi) }",
                     "on infinite inputs"),
        "NaN": (X + "<float[1] z = {0}> { n = IsNaN(x)\n y = Where(n, z, x) }",
                X + "<float[1] z = {1}> { n = IsNaN(x)\n y = Where(n, z, x) }", "on NaN inputs"),
    }  # fmt: skip

    @pytest.mark.parametrize("name", FAULTS)
    def test_a_fault_is_found(self, name, tmp_path):
        right, wrong, reason = self.FAULTS[name]
        paths = save_model(tmp_path / "a.onnx", right), save_model(tmp_path / "b.onnx", wrong)
        check = serde.verify(*paths)
        assert not check.ok and reason in check.outputs[0].reason
        assert serde.verify(paths[0], paths[0]).ok

    def test_a_pooling_that_loses_zeros(self, tmp_path):
        """Wrong on negative numbers alone: a window of normal ones has a positive number."""
        g = "g (float[1,1,16,16] x) => (float[1,1,4,4] y) "
        source = save_model(
            tmp_path / "a.onnx",
            g + "<int64[8] p = {0,0,0,0,0,0,4,4}> { z = Pad(x, p)\n"
            "y = MaxPool<kernel_shape=[8,8], strides=[4,4]>(z) }",
        )
        result = save_model(
            tmp_path / "b.onnx",
            g + "{ y = MaxPool<kernel_shape=[8,8], strides=[4,4], pads=[0,0,4,4]>(x) }",
        )
        check = serde.verify(source, result)
        assert check.outputs[0].reason.endswith("on negative inputs")
        assert check.sets[:2] == ["normal", "negative"]

    def names_of(self, body):
        graph = ir_of(body)
        normal, *others = input_sets(graph, graph, 0)
        assert normal.name == "normal"
        return {s.name: {n for n in s.feeds if s.feeds[n] is not normal.feeds[n]} for s in others}

    FLOATS = {"negative", "zero", "equal", "special", "large", "infinite"}

    @pytest.mark.parametrize(
        ("body", "changed"),
        [
            ("g (float[2] x) => (y) { y = Relu(x) }", {n: {"x"} for n in FLOATS}),
            ("g (float16[2] x) => (y) { y = Relu(x) }", {n: {"x"} for n in FLOATS}),
            ("g (int64[2] i) => (y) { y = Neg(i) }", {}),
            ("g (float[2] x, bool[2] c) => (y) { y = Where(c, x, x) }",
             {n: {"x"} for n in FLOATS}),
            ("g (int64[2] i) => (y) <float[3,2] t = {0,1,2,3,4,5}> { y = Gather(t, i) }",
             {"zero": {"i"}, "equal": {"i"}}),
            ("g (int64[2] i) => (y) <float[3,2] t = {0,1,2,3,4,5}> { n = ReduceSum<keepdims = 0>(i)"
             "f = Cast<to = 1>(n) r = Gather(t, i) y = Mul(r, f) }", {"equal": {"i"}}),
            ("g (float[2] i) => (y) <float[3] t = {0,1,2}> { j = Cast<to=7>(i)\n y = Gather(t, j) }", {"zero": {"i"}, "equal": {"i"}}),
            ("g (float[2] i, float[3] t) => (y) <float o = {1}> { k = Sub(i, o)\n"
             "j = Cast<to=7>(k)\n y = Gather(t, j) }", {n: {"t"} for n in FLOATS}),
            ("g (float[2] x) => (y) <float l = {0}, float h = {9}> { c = Clip(x, l, h)\n"
             "y = Cast<to=2>(c) }", {n: {"x"} for n in FLOATS - {"infinite"}}),
            ("g (float[3,1] x) => (y) <float[2] c = {0, 1}> { e = Equal(x, c)\n y = Cast<to=1>(e) }",
             {}),
            ("g (float[2] x) => (y) { y, s, z = DynamicQuantizeLinear(x) }",
             {n: {"x"} for n in FLOATS - {"zero", "infinite"}}),
            ("g (float n) => (y) <float z = {0}, float d = {1}> { y = Range(z, n, d) }", {}),
        ],
    )  # fmt: skip
    def test_indices_lengths_and_sizes_stay(self, body, changed):
        assert self.names_of(body) == changed

    def test_a_slow_model_runs_on_normal_inputs_alone(self, tmp_path, monkeypatch):
        monkeypatch.setattr(compare_results, "EXTRA_SECONDS", -1.0)
        source = save_model(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        check = serde.verify(source, source)
        assert check.ok and check.sets == ["normal"]
        (line,) = check.not_compared
        assert line.startswith("negative, zero, equal, special, large, infinite inputs: the source")

    def test_given_data_are_the_only_ones(self, tmp_path):
        source = save_model(tmp_path / "a.onnx", X + "{ y = Relu(x) }")
        check = serde.verify(source, source, data={"x": np.zeros((1, 4), np.float32)})
        assert (check.sets, check.inputs) == (["normal"], "the inputs given")

    def test_what_the_source_itself_does_not_hold_still_is_not_compared(self, tmp_path):
        """Sines of large numbers depend on their last digits."""
        many = "g (float[64] x) => (float[64] y) "
        source = save_model(
            tmp_path / "a.onnx", many + "<float k = {1000.1}> { a = Mul(x, k)\n y = Sin(a) }"
        )
        other = save_model(
            tmp_path / "b.onnx",
            many + "<float k = {10.001}, float h = {100}> { b = Mul(x, k)\n a = Mul(b, h)\n"
            "y = Sin(a) }",
        )
        check = serde.verify(source, other)
        assert any("y on large inputs: the source itself changes" in n for n in check.not_compared)
