"""Dimensions of inputs have names that every runtime takes."""

from __future__ import annotations

from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.name_dimensions import name_dimensions
from testing.onnx_live import ir_of


def test_names_that_are_identifiers_stay():
    graph = ir_of("g (float[N,M,3] x) => (float[N,M,3] y) { y = Relu(x) }")
    assert name_dimensions(graph) is graph


def test_other_names_become_identifiers_and_shapes_follow():
    shapes = {"a": (None, "h*w", "a b"), "b": ("?x", "a b", "2"), "c": ("past+1", "a_b", None)}
    inputs = tuple(Value(n, DType.FLOAT32, s) for n, s in shapes.items())
    outputs = tuple(Value(f"{v.name}/y", v.dtype, v.shape) for v in inputs)
    nodes = tuple(
        Node("Relu", (x,), (y,), {}, "", y.name) for x, y in zip(inputs, outputs, strict=True)
    )
    done = name_dimensions(Graph("g", inputs, outputs, nodes))
    named = {v.name: v.shape for v in done.inputs}
    assert named == {
        "a": ("a_0", "h*w", "a_b_1"),
        "b": ("_x", "a_b_1", "_2"),
        "c": ("past+1", "a_b", "c_2"),
    }
    assert [v.shape for v in done.outputs] == list(named.values())
