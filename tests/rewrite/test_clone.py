"""Graphs with values of their own."""

from __future__ import annotations

from dataclasses import replace

from serde.rewrite.clone import clone_graph
from testing.onnx_live import ir_of

BODY = (
    "g (float[2] x, bool c) => (float[2] y) { a = Exp(x)\n y = If (c) <"
    "then_branch = t () => (float[2] u) { b = Neg(a)\n u = Add(b, x) },"
    "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
)


def test_a_copy_shares_no_value_and_is_the_same_graph():
    graph, copies = ir_of(BODY), {}
    copy = clone_graph(graph, lambda v: copies.setdefault(v, replace(v)))
    assert str(copy) == str(graph)
    assert not set(copy.all_values()) & set(graph.all_values())


def test_a_value_of_the_graph_around_is_one_value():
    graph, copies = ir_of(BODY), {}
    copy = clone_graph(graph, lambda v: copies.setdefault(v, replace(v, name=f"{v.name}_2")))
    made, choice = copy.nodes
    (negation, *_) = choice.attrs["then_branch"].nodes
    assert negation.inputs[0] is made.outputs[0] and made.outputs[0].name == "a_2"
