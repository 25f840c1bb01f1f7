"""Nodes that compute the same; more in test_passes.py."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import DType
from serde.passes.cse import merge_repeats
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import ir_of, run


def ops(graph):
    return [n.op for n in graph.nodes]


def lines(graph):
    return [line.strip() for line in str(graph).splitlines()[1:]]


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


class TestMergeRepeats:
    def merge(self, body):
        return lines(merge_repeats(ir_of(f"g (float[2,2] x) => {body}")))

    def test_the_same_operator_on_the_same_operands_becomes_one(self):
        body = (
            "(float[2,2] y) { a = Exp(x)\n b = Exp(x)\n c = Neg(a)\n d = Neg(b)\n y = Add(c, d) }"
        )
        assert self.merge(body) == [
            "%a: float32[2,2] = Exp(%x)",
            "%c: float32[2,2] = Neg(%a)",
            "%y: float32[2,2] = Add(%c, %c)",
            "return %y",
        ]

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("LeakyRelu<alpha=0.5>(x)", "LeakyRelu<alpha=0.25>(x)"),
            ("Exp(x)", "Neg(x)"),
            ("RandomNormalLike(x)", "RandomNormalLike(x)"),
            ("Bernoulli(x)", "Bernoulli(x)"),
        ],
    )
    def test_what_differs_or_is_random_stays(self, first, second):
        body = f"(float[2,2] y) {{ a = {first}\n b = {second}\n y = Add(a, b) }}"
        assert len(self.merge(body)) == 4

    def test_outputs_of_the_graph_keep_their_nodes_and_names(self):
        body = "(float[2,2] y, float[2,2] z) { a = Exp(x)\n y = Exp(x)\n z = Neg(a) }"
        assert self.merge(body)[:2] == [
            "%a: float32[2,2] = Exp(%x)", "%y: float32[2,2] = Exp(%x)",
        ]  # fmt: skip

    def test_operators_with_bodies_stay_but_read_the_merged(self):
        graph = merge_repeats(ir_of(
            "g (float[2] x, bool c) => (float[2] y, float[2] z) { a = Exp(x)\n b = Exp(x)\n"
            "  z = Neg(a)\n y = If (c) <"
            "then_branch = t () => (float[2] u) { u = Neg(b) },"
            "else_branch = e () => (float[2] v) { v = Abs(b) }> }"
        ))  # fmt: skip
        assert ops(graph) == ["Exp", "Neg", "If"]
        (y, _) = run(graph, {"x": np.float32([0, 1]), "c": np.array(True)})
        np.testing.assert_allclose(y, -np.exp([0, 1]), rtol=1e-6)

    def test_an_attribute_that_is_a_type_does_no_harm(self):
        from serde.spec.inference import type_proto

        g = OnnxBuilder("g")
        values = [g.Optional(type=type_proto(DType.FLOAT32, (2,))) for _ in range(2)]
        g.OptionalHasElement(values[0])
        g.OptionalHasElement(values[1])
        assert len(merge_repeats(g.build([n.outputs[0] for n in g.nodes[2:]])).nodes) == 4
