"""What nodes read, their subgraphs included."""

from __future__ import annotations

from serde.ir.values_read import captured_values, values_read
from testing.onnx_live import ir_of

BODY = (
    "g (float[2] x, bool c) => (float[2] y) { a = Exp(x)\n y = If (c) <"
    "then_branch = t () => (float[2] u) { b = Neg(a)\n u = Add(b, x) },"
    "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
)


def test_a_node_reads_what_its_subgraphs_read_around_them():
    _, choice = ir_of(BODY).nodes
    assert [v.name for v in values_read(choice)] == ["c", "a", "x", "x"]
    assert [[v.name for v in captured_values(g)] for g in choice.graphs()] == [["a", "x"], ["x"]]


def test_constants_are_left_out():
    graph = ir_of("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    assert [v.name for v in values_read(graph.nodes[0])] == ["x"]
