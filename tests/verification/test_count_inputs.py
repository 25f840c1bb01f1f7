"""Inputs that are counts, masks and angles."""

from __future__ import annotations

import numpy as np
import pytest

from serde.verification.count_inputs import draw_counts, find_angles, find_counts, find_masks
from serde.verification.input_sets import COUNTS, NORMAL, narrow_input_sets
from serde.verification.input_uses import readers_of
from testing.onnx_live import ir_of

CASES = {  # text, counts, masks, angles
    "positions": ("(int64[4] p) => (y) { f = Cast<to=1>(p) y = Sin(f) }", {"p"}, set(), set()),
    "an index": ("(int64[4] p) => (y) <float[9] t = {0,1,2,3,4,5,6,7,8}> { y = Gather(t, p) }",
                 set(), set(), set()),
    "an index behind arithmetic": (
        "(int64[4] p) => (y) <float[9] t = {0,1,2,3,4,5,6,7,8}, int64 o = {1}> "
        "{ q = Add(p, o) y = GatherElements(t, q) }", set(), set(), set()),
    "an index and a count": ("(int64[4] p) => (y) <float[9] t = {0,1,2,3,4,5,6,7,8}> "
                             "{ f = Cast<to=1>(p) g = Gather(t, p) y = Mul(f, g) }",
                             set(), set(), set()),
    "a shape": ("(float[4] x, int64[2] s) => (y) { y = Reshape(x, s) }", set(), set(), set()),
    "a byte": ("(uint8[4] p) => (y) { y = Cast<to=1>(p) }", set(), set(), set()),
    "features": ("(int32[2,4] p) => (y) <float[4,1] w = {1,2,3,4}> { f = Cast<to=1>(p) "
                 "y = MatMul(f, w) }", {"p"}, set(), set()),
    "a mask": ("(int64[4] m, float[4] x) => (y) <float o = {1}, float b = {-1e9}> "
               "{ f = Cast<to=1>(m) r = Sub(o, f) n = Mul(r, b) s = Add(x, n) y = Softmax(s) }",
               set(), {"m"}, set()),
    "an angle": ("(float[4] x) => (y) <float k = {0.1}> { a = Mul(x, k) y = Cos(a) }",
                 set(), set(), {"x"}),
    "an angle of a product": ("(float[2,4] x) => (y) <float[4,1] w = {1,2,3,4}> "
                              "{ a = MatMul(x, w) y = Cos(a) }", set(), set(), {"x"}),
    "an activation": ("(float[4] x) => (y) { a = Tanh(x) y = Cos(a) }", set(), set(), set()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_inputs_are(case):
    text, *expected = case
    graph = ir_of(f"g {text}", 18)
    readers = readers_of(graph)
    found = [find(graph, readers) for find in (find_counts, find_masks, find_angles)]
    assert found == expected


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint16"])
def test_counts_reach_beyond_float16(dtype):
    counts = draw_counts(np.zeros(1000, dtype), np.random.default_rng(0))
    assert counts.dtype == dtype and counts.min() >= 1
    assert counts.max() > (65504 if "16" not in dtype else 20000)


def test_sets_for_fewer_bits():
    graph = ir_of(f"g {CASES['positions'][0]}", 18)
    assert [s.name for s in narrow_input_sets(graph, graph, 0)] == [NORMAL, COUNTS]


def test_a_mask_is_0_or_1():
    graph = ir_of(f"g {CASES['a mask'][0]}", 18)
    (normal,) = narrow_input_sets(graph, graph, 0)
    assert set(normal.feeds["m"].tolist()) <= {0, 1}
