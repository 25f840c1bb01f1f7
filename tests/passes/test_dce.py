"""Nodes that no output needs."""

from __future__ import annotations

from serde.passes.dce import drop_dead
from testing.onnx_live import ir_of


def ops(graph):
    return [n.op for n in graph.nodes]


def test_chains_that_lead_nowhere_go_and_shared_beginnings_stay():
    graph = ir_of(
        "g (float[2] x) => (float[2] y) { a = Exp(x)\n b = Sin(a)\n c = Cos(b)\n y = Neg(a) }"
    )
    assert [n.op for n in drop_dead(graph).nodes] == ["Exp", "Neg"]
    assert drop_dead(drop_dead(graph)).nodes == drop_dead(graph).nodes


class TestDropDead:
    def test_what_no_output_needs_goes(self):
        graph = ir_of("g (float[2] x) => (float[2] y) { a = Exp(x)\n b = Sin(a)\n y = Abs(x) }")
        assert ops(drop_dead(graph)) == ["Abs"]

    def test_one_live_output_keeps_a_node(self):
        graph = ir_of("g (float[4] x) => (float[2] y) { a, y = Split<num_outputs=2>(x) }")
        assert drop_dead(graph) is graph

    def test_what_only_a_subgraph_reads_stays(self):
        graph = ir_of(
            "g (float[2] x, bool c) => (float[2] y) { a = Exp(x)\n b = Sin(x)\n y = If (c) <"
            "then_branch = t () => (float[2] u) { u = Neg(a)\n w = Abs(b) },"
            "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
        )
        kept = drop_dead(graph)
        assert ops(kept) == ["Exp", "If"]
        (node,) = (n for n in kept.nodes if n.op == "If")
        assert [ops(g) for g in node.graphs()] == [["Neg"], ["Abs"]]

    def test_bodies_are_cleaned_at_any_depth(self):
        graph = ir_of(
            "g (float[2] x, bool c) => (float[2] y) { y = If (c) <"
            "then_branch = t () => (float[2] u) { u = If (c) <"
            "  then_branch = t2 () => (float[2] p) { p = Neg(x)\n dead = Exp(x) },"
            "  else_branch = e2 () => (float[2] q) { q = Abs(x) }> },"
            "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
        )
        assert "Exp" not in str(drop_dead(graph)) and "Exp" in str(graph)

    def test_inputs_stay_though_nothing_reads_them(self):
        graph = ir_of("g (float[2] x, float[2] z) => (float[2] y) { y = Abs(x) }")
        assert [v.name for v in drop_dead(graph).inputs] == ["x", "z"]
