"""Nodes that no output needs; more in test_passes.py."""

from __future__ import annotations

from serde.passes.dce import drop_dead
from testing.onnx_live import ir_of


def test_chains_that_lead_nowhere_go_and_shared_beginnings_stay():
    graph = ir_of(
        "g (float[2] x) => (float[2] y) { a = Exp(x)\n b = Sin(a)\n c = Cos(b)\n y = Neg(a) }"
    )
    assert [n.op for n in drop_dead(graph).nodes] == ["Exp", "Neg"]
    assert drop_dead(drop_dead(graph)).nodes == drop_dead(graph).nodes
