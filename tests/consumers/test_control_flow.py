"""Loops, scans and branches in consumers of ONNX files that have none."""

from __future__ import annotations

import pytest

from tests.consumers.checks import check_form, refusals

CONSUMERS = ["mnn", "ncnn", "onnx2torch", "tract"]
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


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_long_loops_are_refused(consumer, tmp_path):
    signature = "(float[2,3] x) => (float[2,3] y, float[65,2,3] z)"
    reasons = refusals(signature, TURNS.format(turns=65), consumer, tmp_path)
    assert "a loop of dynamic length, or of more than 64 iterations" in reasons


@pytest.mark.parametrize("consumer", [name for name in CONSUMERS if name != "ncnn"])
def test_scans_of_dynamic_length_are_refused(consumer, tmp_path):
    signature = "(float[2,N] x, float[2] p) => (float[2] y, float[2,N] z)"
    (reason,) = refusals(signature, SCAN.replace("{axis}", "1"), consumer, tmp_path)
    assert reason == "a Scan of dynamic length: give its size as a number (--static, --input)"
