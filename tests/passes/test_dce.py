"""Nodes that no output needs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.numpy_helper import from_array

import serde
from serde.passes.dce import drop_dead
from testing.onnx_live import ir_of, model_of


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


@pytest.mark.parametrize("training", [True, False])
def test_training_tells_of_weights_that_no_output_needs(training, tmp_path):
    model = model_of("g (float[N,2] x) => (float[N,2] y) { y = MatMul(x, w) a = MatMul(x, v0) "
                     "b = Gemm(a, v1, v2) c = Add(b, v3) d = Reshape(c, v4) }")  # fmt: skip
    floats = {n: np.ones((2, 2), np.float32) for n in ("w", "v0", "v1", "v2", "v3")}
    arrays = {**floats, "v4": np.array([-1])}
    model.graph.initializer.extend(from_array(a, n) for n, a in arrays.items())
    notes = serde.convert(model, tmp_path / "m.onnx", training=training).notes
    told = "left out: weights that no output depends on: 'v0', 'v1', 'v2' and 1 more"
    assert (told in notes) is training
