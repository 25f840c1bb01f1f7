"""Nodes that compute the same; more in test_passes.py."""

from __future__ import annotations

from serde.passes.cse import merge_repeats
from testing.onnx_live import ir_of


def test_equal_nodes_are_one_whatever_reads_them():
    graph = ir_of(
        "g (float[2] x) => (float[2] y) { a = Exp(x)\n b = Exp(x)\n c = Neg(a)\n d = Neg(b)\n y = Add(c, d) }"
    )
    assert [n.op for n in merge_repeats(graph).nodes] == ["Exp", "Neg", "Add"]


def test_other_attributes_and_random_numbers_stay():
    graph = ir_of(
        "g (float[2,2] x) => (float[2,2] y) { a = Softmax<axis=0>(x)\n b = Softmax<axis=1>(x)\n"
        " r = RandomNormalLike(x)\n s = RandomNormalLike(x)\n y = Sum(a, b, r, s) }"
    )
    assert len(merge_repeats(graph).nodes) == 5
