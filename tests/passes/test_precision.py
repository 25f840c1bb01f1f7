"""Weights and arithmetic in fewer bits."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import to_array

import serde
from serde.errors import UsageError
from testing.onnx_live import error, run_model
from tests.passes.precisions import SHAPES, convert, halve
from tests.passes.precisions import network as network

F = np.float32


def test_half_precision(network):
    model, off, got = convert(network, fp16=True)
    assert 0 < off < 2e-2
    kinds = Counter(to_array(t).dtype for t in model.graph.initializer)
    assert kinds[np.dtype(np.float32)] == 0 and kinds[np.dtype(np.float16)] == len(SHAPES)
    assert [a.dtype for a in got] == [np.float32, np.float32, np.int64]
    kept = next(n for n in model.graph.node if n.op_type == "ReduceSumSquare")
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.value_info}
    assert types[kept.output[0]] == onnx.TensorProto.FLOAT


def test_ends_in_half_precision(network):
    model, off, got = convert(network, fp16=True, fp16_io=True)
    assert off < 2e-2 and [a.dtype for a in got] == [np.float16, np.float16, np.int64]
    assert [v.name for v in model.graph.output] == ["y", "z", "j"]


def test_operators_that_are_kept(network):
    model, _, _ = convert(network, fp16=True, fp16_keep=["Conv", "BatchNormalization"])
    single = {t.name for t in model.graph.initializer if to_array(t).dtype == np.float32}
    assert single == {"k", "s", "t", "m", "u"}


def test_constants_beyond_the_range(tmp_path):
    """A mask of -1e9 and an epsilon of 1e-12 become the next numbers that float16 has."""
    held = {"m": np.array([-1e9, 0], np.float32), "e": np.array([1e-12], np.float32)}
    text = "g (float[2] x) => (float[2] y) { a = Add(x, m) b = Add(a, e) y = Softmax(b) }"
    model = halve(text, tmp_path, **held)
    arrays = {t.name: to_array(t) for t in model.graph.initializer}
    assert arrays["m"].tolist() == [-65504, 0] and arrays["e"].tolist() == [2.0**-24]


TABLE = np.arange(6000, dtype=F).reshape(3000, 2) / 6000
RANGES = {  # text, constants, inputs: numbers that float16 lacks
    "tokens": (
        "(float[3] x) => (float[3,2] y) { a = Clip(x, lo, hi) i = Cast<to = 7>(a) y = Gather(w, i) }",
        {"lo": F(0), "hi": F(2999), "w": TABLE}, {"x": F([1, 2049, 2999])}),
    "tokens behind arithmetic": (
        "(float[1,3] x) => (float[3,2] y) { a = Squeeze(x, n) b = Add(a, k) c = Floor(b) "
        "i = Cast<to = 6>(c) y = Gather(w, i) }",
        {"n": np.array([0]), "k": F(1.5), "w": TABLE}, {"x": F([[1, 2048, 2997]])}),
    "lengths": (
        "(float[2] n) => (float[2] y) { i = Range(a, b, c) j = Cast<to = 1>(i) k = Unsqueeze(n, d) "
        "m = Less(j, k) f = Cast<to = 1>(m) y = ReduceSum<keepdims = 0>(f, d) }",
        {"a": np.array(0), "b": np.array(3000), "c": np.array(1), "d": np.array([1])},
        {"n": F([2049, 2999])}),
    "classes": (
        "(float[2] x) => (float[2,2] y) { a = Unsqueeze(x, d) m = Equal(a, c) f = Cast<to = 1>(m) "
        "y = MatMul(f, w) }",
        {"c": np.arange(3000, dtype=F), "d": np.array([1]), "w": TABLE}, {"x": F([2049, 2999])}),
    "division by a count": (
        "(float[4] x, int64 n) => (float[4] y) { f = Cast<to = 1>(n) a = Mul(x, x) y = Div(a, f) }",
        {}, {"x": F([2, 200, 255, 3]), "n": np.array(100000)}),
    "sums of integers": (
        "(int32[3] x) => (float[3] y) { a = Cast<to = 1>(x) b = Mul(a, s) c = Add(b, t) "
        "y = Relu(c) }",
        {"s": F([1e-5, 2e-5, 3e-5]), "t": F(1)}, {"x": np.array([90000, 100001, -70003], np.int32)}),
    "a fraction of a place": (
        "(float[2] x) => (float[2] y) { a = Floor(x) i = Cast<to = 7>(a) b = Sub(x, a) "
        "c = Gather(w, i) d = Mul(b, c) y = Relu(d) }",
        {"w": TABLE[:, 1]}, {"x": F([1500.25, 2049.125])}),
    "a mean of squares": (
        "(float[2,4] x) => (float[2,4] y) { s = Mul(x, x) m = ReduceMean<axes = [1]>(s) "
        "a = Add(m, e) r = Sqrt(a) y = Div(x, r) }",
        {"e": F(1e-6)}, {"x": F([[900, -800, 300, 1], [1, 2, 3, 4]])}),
    "powers": (
        "(float[2,4] x) => (float[2,4] y) { s = Pow(x, p) m = ReduceMean<axes = [1]>(s) "
        "r = Pow(m, h) y = Mul(x, r) }",
        {"p": F(2), "h": F(-0.5)}, {"x": F([[900, -800, 300, 1], [1, 2, 3, 4]])}),
    "exponentials": (
        "(float[3] x) => (float[3] y) { a = Exp(x) b = Add(a, o) y = Log(b) }",
        {"o": F(1)}, {"x": F([20, 3, -5])}),
    "large divisors": (
        "(float[3] x) => (float[3] y) { a = Div(x, d) y = Mul(a, f) }",
        {"d": F(1e6), "f": F(1e5)}, {"x": F([20, 3, -5])}),
    "large variances": (
        "(float[2,2] x) => (float[2,2] y) { y = BatchNormalization(x, s, b, m, v) }",
        {"s": F([300, 2]), "b": F([0, 1]), "m": F([1, 2]), "v": F([1e6, 1])},
        {"x": F([[500, 2], [-300, 1]])}),
    "a product with a mask": (
        "(float[2,3] x, int64[2,3] m) => (float[2,3] y) { f = Cast<to = 1>(m) n = Sub(o, f) "
        "a = Mul(n, k) b = Add(x, a) y = Softmax(b) }",
        {"o": F(1), "k": F(-1e9)}, {"x": F([[1, 2, 3], [5, 5, 5]]), "m": np.array([[1, 1, 0], [0, 0, 0]])}),
}  # fmt: skip


@pytest.mark.parametrize("case", RANGES.values(), ids=RANGES)
def test_numbers_that_float16_lacks(case, tmp_path):
    text, held, feeds = case
    model = halve(f"g {text}", tmp_path, **held)
    (expected,) = run_model(onnx.load(tmp_path / "a.onnx"), feeds)
    (got,) = run_model(model, feeds)
    assert np.isfinite(got).all() and error(got, expected) < 2e-3


ENDS = {  # text, element types of inputs and outputs
    "kept operators": ("(float[2,8] x) => (float[2,8] y, float[2,8] z) "
                       "{ y = CumSum(x, a) z = Sinh(x) }", [10], [10, 10]),
    "an output that is read": ("(float[2,8] x) => (float[2,8] y, float[2,8] z) "
                               "{ y = CumSum(x, a) z = Sinh(y) }", [10], [10, 10]),
    "an output of both": ("(float[2,8] x) => (float[2,8] y, float[2,8] z) "
                          "{ y = Sinh(x) z = CumSum(y, a) }", [10], [10, 10]),
    "an input of both": ("(float[2,8] x, float[2,8] w) => (float[2,8] y) "
                         "{ c = CumSum(x, a) y = Add(c, x) }", [10, 10], [10]),
    "an index": ("(float[2,8] x, float[2] i) => (float[2,8] y) "
                 "{ j = Cast<to = 7>(i) y = Gather(x, j) }", [10, 1], [10]),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_names_and_types_of_ends(case, tmp_path):
    text, inputs, outputs = case
    model = halve(f"g {text}", tmp_path, a=np.array(1), options={"fp16_io": True})
    original = onnx.load(tmp_path / "a.onnx").graph
    for ends, types, before in (
        (model.graph.input, inputs, original.input), (model.graph.output, outputs, original.output)
    ):  # fmt: skip
        assert [v.name for v in ends] == [v.name for v in before]
        assert [v.type.tensor_type.elem_type for v in ends] == types
    draws = np.random.default_rng(0).uniform(0, 2, (2, 2, 8)).astype(F)
    feeds = dict(zip((v.name for v in original.input), (draws[0], draws[1]), strict=False))
    if "i" in feeds:
        feeds["i"] = F([1, 0])
    typed = {v.name: feeds[v.name].astype(np.float16 if t == 10 else F)
             for v, t in zip(model.graph.input, inputs, strict=True)}  # fmt: skip
    expected = run_model(onnx.load(tmp_path / "a.onnx"), feeds)
    for got, wanted in zip(run_model(model, typed), expected, strict=True):
        assert error(got.astype(F), wanted) < 2e-3


@pytest.mark.parametrize(
    "options", [{"fp16_io": True}, {"fp16": True, "weights": "int8"}, {"fp16": True, "fp32": True},
                {"fp16": True, "fp16_keep": ["Convolution"]}]
)  # fmt: skip
def test_options_that_mean_nothing(options, network):
    with pytest.raises(UsageError):
        serde.load(network[0], **options)
