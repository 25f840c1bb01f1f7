"""Graphs with bodies as one list of nodes."""

from __future__ import annotations

from serde.passes.body_links import has_loops, list_nodes
from testing.onnx_live import ir_of

LOOP = """g (float[2] x, int64 n) => (float[2] y, float[K,2] z) { y, z = Loop(n, , x)
    <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] r, float[2] q)
    { d = Identity(c) r = Relu(s) q = Tanh(r) }> }"""
SCAN = """g (float[2] x, float[3,2] w) => (float[2] y, float[3,2] z) { y, z =
    Scan<num_scan_inputs = 1, body = b (float[2] s, float[2] v) => (float[2] r, float[2] q)
    { r = Add(s, v) q = Tanh(r) }>(x, w) }"""
BRANCH = """g (float[2] x, bool c) => (float[2] y) { y = If(c) <
    then_branch = t () => (float[2] a) { a = Relu(x) },
    else_branch = e () => (float[2] b) { b = Tanh(x) }> }"""


def links_of(text):
    """The nodes by name, those between graphs by what they join."""
    nodes = list(list_nodes(ir_of(text)))
    return {
        f"{n.inputs[0].name} > {n.outputs[0].name}" if not n.sources else n.op for n in nodes
    }  # fmt: skip


def test_the_states_and_results_of_a_loop():
    assert links_of(LOOP) == {
        "x > s",
        "r > s",
        "r > y",
        "q > z",
        "x > y",
        "Identity",
        "Relu",
        "Tanh",
    }


def test_the_states_and_elements_of_a_scan():
    assert links_of(SCAN) == {"x > s", "w > v", "r > s", "r > y", "q > z", "Add", "Tanh"}


def test_both_branches_make_a_result():
    assert links_of(BRANCH) == {"a > y", "b > y", "Relu", "Tanh"}


def test_loops_are_found():
    assert [has_loops(ir_of(text)) for text in (LOOP, SCAN, BRANCH)] == [True, True, False]
