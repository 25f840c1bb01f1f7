"""Values read in place of others, in subgraphs too."""

from __future__ import annotations

import numpy as np

from serde.ir.graph import DType, Value
from serde.ir.replace_uses import exchange_values, replace_values
from testing.onnx_live import ir_of, run

BODY = (
    "g (float[2] x, bool c) => (float[2] y) { a = Exp(x)\n y = If (c) <"
    "then_branch = t () => (float[2] u) { b = Neg(a)\n u = Add(b, x) },"
    "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
)


def test_every_read_is_replaced_and_what_made_the_value_stays():
    graph = ir_of(BODY)
    (x, _), (a,) = graph.inputs, graph.nodes[0].outputs
    done = replace_values(graph, {a: x})
    assert "Neg(%x)" in str(done) and done.nodes[0] is graph.nodes[0]
    assert "Neg(%a)" in str(graph)


def test_exchanged_values_are_made_under_their_new_name():
    graph = ir_of(BODY)
    (a,) = graph.nodes[0].outputs
    done = exchange_values(graph, {a: Value("new", a.dtype, a.shape)})
    assert "%new: float32[2] = Exp(%x)" in str(done) and "Neg(%new)" in str(done)
    x = np.float32([1, -2])
    for c in (True, False):
        feeds = {"x": x, "c": np.array(c)}
        np.testing.assert_array_equal(run(done, feeds)[0], run(graph, feeds)[0])


def test_nothing_to_replace_changes_nothing():
    graph = ir_of(BODY)
    assert replace_values(graph, {}) is graph


class TestReplacing:
    def test_reads_are_redirected_everywhere(self):
        graph = ir_of(
            "g (float[2] x, bool c) => (float[2] y, float[2] a) { a = Exp(x)\n y = If (c) <"
            "then_branch = t () => (float[2] u) { u = Neg(a) },"
            "else_branch = e () => (float[2] v) { v = Abs(x) }> }"
        )
        a, other = graph.outputs[1], Value("other", DType.FLOAT32, (2,))
        done = replace_values(graph, {a: other})
        assert done.outputs[1] is other and "Neg(%other)" in str(done)
        assert "other" not in str(graph) and replace_values(graph, {}) is graph
