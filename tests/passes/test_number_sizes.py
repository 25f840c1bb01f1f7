"""How large numbers may be."""

from __future__ import annotations

import pytest

from serde.passes.number_sizes import Sizes
from testing.onnx_live import ir_of

CASES = {  # text; whether y is beyond float16, exact, a mask; its bound where that is known
    "an input": ("(float[4] x) => (float[4] y) { y = Relu(x) }", "", None),
    "an integer": ("(int64[4] x) => (float[4] y) { y = Cast<to=1>(x) }", "large exact", 2.0**24),
    "a byte": ("(uint8[4] x) => (float[4] y) { y = Cast<to=1>(x) }", "", 256),
    "a short": ("(int16[4] x) => (float[4] y) { y = Cast<to=1>(x) }", "exact", 32768),
    "a truth value": ("(bool[4] x) => (float[4] y) { i = Cast<to=7>(x) y = Cast<to=1>(i) }", "", 1),
    "moved and shifted": ("(bool[4] x) => (float[4] y) <float[1] o = {3}> { f = Cast<to=1>(x) "
                          "r = Concat<axis=0>(f, f) y = Sub(o, r) }", "", 4),
    "a mask": ("(int64[4] x) => (float[4] y) <float o = {1}, float m = {-10000}> "
               "{ f = Cast<to=1>(x) r = Sub(o, f) y = Mul(r, m) }", "large exact mask", None),
    "no mask of activations": ("(float[4] x) => (float[4] y) <float m = {-10000}> "
                               "{ y = Mul(x, m) }", "large", None),
    "a selected mask": ("(bool[4] x) => (float[4] y) <float o = {0}, float m = {-10000}> "
                        "{ y = Where(x, o, m) }", "mask", 10000),
    "a gate": ("(float[4] x) => (float[4] y) { s = Sigmoid(x) y = Mul(x, s) }", "", None),
    "a count that is divided": ("(int64[4] x) => (float[4] y) <float d = {1000}> "
                                "{ f = Cast<to=1>(x) y = Div(f, d) }", "exact", 2.0**24 / 1000),
    "a share of counts": ("(int64[4] x) => (float[4] y) { f = Cast<to=1>(x) "
                          "s = ReduceSum<keepdims=1>(f) y = Div(f, s) }", "", None),
    "large weights": ("(float[2,2] x) => (float[2,2] y) <float[2,2] w = {3000,0,0,3000}> "
                      "{ y = MatMul(x, w) }", "large", None),
    "small weights of counts": ("(int64[2,2] x) => (float[2,2] y) <float[2,2] w = {0.001,0,0,0.001}> "
                                "{ f = Cast<to=1>(x) y = MatMul(f, w) }", "", None),
    "steps of a factor": ("(float[4] x) => (float[4] y) <float m = {1000}> "
                          "{ a = Mul(x, m) y = Mul(a, m) }", "large", None),
    "a long sum": ("(float[1,4000] x) => (float y) { y = ReduceSum<keepdims=0>(x) }", "large", None),
    "a clipped one": ("(int64[4] x) => (float[4] y) <float o = {0}, float m = {9}> "
                      "{ f = Cast<to=1>(x) y = Clip(f, o, m) }", "", 9),
    "a range": ("(int64 n) => (float[K] y) <int64 o = {0}, int64 s = {1}> "
                "{ r = Range(o, n, s) y = Cast<to=1>(r) }", "large exact", 2.0**24),
    "a loop that counts": (
        "(float x) => (float y) <int64 n = {5}, float o = {1}, float t = {2}> { y = Loop(n, , o) "
        "<body = b (int64 i, bool c, float s) => (bool d, float r) "
        "{ d = Identity(c) r = Mul(s, t) }> }", "large", None),
    "a recurrent layer": ("(float[3,1,4] x) => (float[3,1,1,4] y) <float[1,4,4] w = {1,0,0,0,0,1,0,0,"
                          "0,0,1,0,0,0,0,1}> { y = RNN<hidden_size = 4>(x, w, w) }", "", 1),
    "one of Relu": ("(float[3,1,4] x) => (float[3,1,1,4] y) <float[1,4,4] w = {1,0,0,0,0,1,0,0,0,0,1,0,"
                    "0,0,0,1}> { y = RNN<hidden_size = 4, activations = [\"Relu\"]>(x, w, w) }",
                    "", None),
    "a branch": ("(bool c, float[4] x) => (float[4] y) { y = If(c) <"
                 "then_branch = t () => (float[4] a) { a = Tanh(x) }, "
                 "else_branch = e () => (float[4] b) { b = Sigmoid(x) }> }", "", 1),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_size_of_a_result(case):
    text, words, bound = case
    graph = ir_of(f"g {text}")
    size = Sizes(graph)[graph.outputs[0]]
    flags = {"large": size.is_large, "exact": size.is_exact, "mask": size.is_mask}
    assert {name for name, is_so in flags.items() if is_so} == set(words.split())
    if bound is not None:
        assert size.is_known and size.bound == pytest.approx(bound)
    assert bound is not None or not size.is_known or size.is_large
