"""The numbers of nodes and values of a graph."""

from __future__ import annotations

from serde.backends.numbered import Numbered
from testing.onnx_live import ir_of


def test_values_are_numbered_in_the_order_in_which_they_are_met():
    graph = ir_of("g (float[2] x) => (float[2] y) { a = Relu(x) y = Add(a, x) }")
    numbered = Numbered(graph)
    assert [v.name for v in numbered.values] == ["x", "a", "y"]
    assert numbered.flow.makes == [[1], [2]]
    assert numbered.flow.is_output == [False, False, True]
