"""Loops, scans and branches in consumers of ONNX files that have none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.consumers.checks import check_form, refusals

CONSUMERS = ["mnn", "ncnn", "tract"]
TURNS = (
    "m = Constant<value_int = {turns}>() "
    "y, z = Loop<body = b (int64 i, bool on, float[2,3] s) => (bool next, float[2,3] t, float[2,3] u)"
    " {{ next = Identity(on) t = Add(s, x) u = Tanh(t) }}>(m, , x)"
)
SCAN = (
    "y, z = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [{axis}], "
    "scan_input_directions = [1], body = b (float[2] s, float[2] a) => (float[2] t, float[2] u)"
    " { t = Mul(s, a) u = Sub(t, a) }>(p, x)"
)
COUNTED = (
    "zero = Constant<value_int = 0>() one = Constant<value_int = 1>() five = Constant<value_int = 5>() "
    "q, y = Loop<body = b (int64 i, bool on, int64 k, float[2,3] s) => "
    "(bool next, int64 n, float[2,3] t) { n = Add(k, one) next = Less(n, five) t = Add(s, x) }>"
    "(, , zero, x)"
)
FORMS = {
    "a loop that a count ends": ("(float[2,3] x) => (float[2,3] y)", COUNTED),
    "a loop": ("(float[2,3] x) => (float[2,3] y, float[5,2,3] z)", TURNS.format(turns=5)),
    "a scan": (
        "(float[2,100] x, float[2] p) => (float[2] y, float[2,100] z)",
        SCAN.replace("{axis}", "1"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_loops_of_constant_length_are_unrolled(consumer, form, tmp_path):
    signature, body = FORMS[form]
    if (consumer, form) == ("ncnn", "a scan"):
        body = body.replace("scan_output_axes = [1]", "scan_output_axes = [0]")
        signature = signature.replace("float[2,100] z", "float[100,2] z")
    check_form(signature, body, {}, consumer, tmp_path)


@pytest.mark.parametrize("consumer", [name for name in CONSUMERS if name != "ncnn"])
def test_both_branches_are_computed(consumer, tmp_path):
    body = (
        "s = ReduceSum<keepdims = 0>(x) c = Greater(s, s0) "
        "y = If(c) <then_branch = t () => (float[2,3] a) { a = Neg(x) }, "
        "else_branch = e () => (float[2,3] b) { b = Sin(x) }>"
    )
    signature = "(float[2,3] x, float[1] s0) => (float[2,3] y)"
    check_form(signature, body, {}, consumer, tmp_path)


NAMED = {  # branches of the same sizes by name, or of none
    "sizes by name": (
        "(float[B,4] x, int64 rate) => (float[B,5] y)",
        "k = Constant<value_int = {rate}>() c = Equal(rate, k) "
        "y = If(c) <then_branch = t () => (float[B,5] a) { a = MatMul(x, v) }, "
        "else_branch = e () => (float[B,5] b) { b = MatMul(x, w) }>",
    ),
    "two results": (
        "(float[A,B] x, int64 rate) => (float[A,B] y, float[A] z)",
        "k = Constant<value_int = {rate}>() c = Equal(rate, k) "
        "y, z = If(c) <then_branch = t () => (float[A,B] a, float[A] d) "
        "{ a = Relu(x) d = ReduceMax<axes = [1], keepdims = 0>(x) }, "
        "else_branch = e () => (float[A,B] b, float[A] f) "
        "{ b = Neg(x) f = ReduceMin<axes = [1], keepdims = 0>(x) }>",
    ),
    "a scalar by a list": (
        "(float[A,B] x, int64[1] rate) => (float y)",
        "k = Constant<value_int = {rate}>() c = Equal(rate, k) "
        "y = If(c) <then_branch = t () => (float a) { a = ReduceMax<keepdims = 0>(x) }, "
        "else_branch = e () => (float b) { b = ReduceMin<keepdims = 0>(x) }>",
    ),
}
DYNAMIC = [name for name in CONSUMERS if name != "ncnn"]  # those that have sizes by name


@pytest.mark.parametrize("rate", [8, 16])
@pytest.mark.parametrize("form", NAMED)
@pytest.mark.parametrize("consumer", DYNAMIC)
def test_branches_of_the_same_names(consumer, form, rate, tmp_path):
    signature, body = NAMED[form]
    draws = np.random.default_rng(0)
    weights = {n: draws.standard_normal((4, 5), np.float32) for n in "vw" if f"x, {n}" in body}
    feeds = {"rate": np.full([1] if "int64[1]" in signature else [], 16)}
    check_form(signature, body.replace("{rate}", str(rate)), weights | feeds, consumer, tmp_path)


@pytest.mark.parametrize("consumer", DYNAMIC)
def test_branches_of_other_sizes_are_refused(consumer, tmp_path):
    body = (
        "y = If(c) <then_branch = t () => (float[A,B] a) { a = Neg(x) }, "
        "else_branch = e () => (float[B,A] b) { b = Transpose(x) }>"
    )
    (reason,) = refusals("(float[A,B] x, bool c) => (float[M,N] y)", body, consumer, tmp_path)
    assert reason == (
        "branches that give tensors of the shapes (A, B) and (B, A): give numbers (static=, "
        "inputs=), or set what the condition is made of (set_inputs=)"
    )


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_long_loops_are_refused(consumer, tmp_path):
    signature = "(float[2,3] x) => (float[2,3] y, float[65,2,3] z)"
    reasons = refusals(signature, TURNS.format(turns=65), consumer, tmp_path)
    assert "a loop of dynamic length, or of more than 64 iterations" in reasons


@pytest.mark.parametrize("consumer", [name for name in CONSUMERS if name != "ncnn"])
def test_scans_of_dynamic_length_are_refused(consumer, tmp_path):
    signature = "(float[2,N] x, float[2] p) => (float[2] y, float[2,N] z)"
    (reason,) = refusals(signature, SCAN.replace("{axis}", "1"), consumer, tmp_path)
    assert reason == "a Scan of dynamic length: give its size as a number (static=, inputs=)"
