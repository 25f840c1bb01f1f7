"""Calls of a source's functions gathered into functions again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from serde.ir.graph import Call, DType, Graph, Source, Value
from serde.legalize.convert import without_functions
from serde.rewrite.outline import forget_calls, outline_calls
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import run

F32 = DType.FLOAT32
X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


def call_layer(g: OnnxBuilder, x: Value, number: float, *calls: Call) -> Value:
    """Two nodes that a call became."""
    with g.at(Source("toy", "call", "layer", calls=calls)):
        return g.Tanh(g.Mul(x, number))


def make_graph(numbers=(2.0, 2.0), fused=False, inner=False) -> Graph:
    g = OnnxBuilder("g")
    x = g.input("x", F32, ("N", 3))
    for number in numbers:
        call = Call("layer", ((x, "data"),), fused)
        deep = (Call("cell", ((x, "cell_data"),)),) if inner else ()
        x = call_layer(g, g.Relu(x), number, call, *deep)
    return g.build([x])


def operators(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def test_calls_that_are_alike_call_one_function():
    graph = make_graph()
    done = outline_calls(graph, "keep")
    assert operators(done) == ["Relu", "layer", "Relu", "layer"]
    (function,) = done.functions
    assert (function.domain, [n.op for n in function.body.nodes]) == ("toy", ["Mul", "Tanh"])
    assert done.imports == {"toy": 1}
    (got,) = run(without_functions(done), {"x": X})
    np.testing.assert_array_equal(got, run(graph, {"x": X})[0])


def test_calls_that_differ_in_a_constant_have_functions_of_their_own():
    done = outline_calls(make_graph((2.0, 3.0)), "keep", domain="own")
    assert [(f.domain, f.name) for f in done.functions] == [("own", "layer"), ("own", "layer_1")]


def test_names_that_are_used_are_not_taken():
    (function,) = outline_calls(make_graph(), "keep", used_names=["layer"]).functions
    assert function.name == "layer_1"


def test_calls_within_calls_are_functions_within_functions():
    done = outline_calls(make_graph(inner=True), "keep")
    assert [f.name for f in done.functions] == ["cell", "layer"]
    assert operators(done.functions[1].body) == ["cell"]
    (got,) = run(without_functions(done), {"x": X})
    np.testing.assert_array_equal(got, run(make_graph(), {"x": X})[0])


@pytest.mark.parametrize(("keep", "fused", "count"), [
    ("keep", False, 1), ("keep", True, 0), ("all", True, 1), ("inline", False, 0),
])  # fmt: skip
def test_what_is_kept_as_functions(keep, fused, count):
    """Fusions have no name of their own; they are functions where all calls are."""
    graph = make_graph(fused=fused)
    assert len(outline_calls(graph, keep).functions) == count
    forgotten = forget_calls(graph, keep)
    left = {c for n in forgotten.nodes for s in n.sources for c in s.calls}
    assert bool(left) == bool(count)


def test_a_call_that_something_stands_within_stays_spelled_out():
    """Gathered, it would come too late for what reads a part of it."""
    g = OnnxBuilder("g")
    x = g.input("x", F32, ("N", 3))
    source = Source("toy", "call", "layer", calls=(Call("layer", ((x, "data"),)),))
    with g.at(source):
        first = g.Mul(x, 2.0)
    between = g.Relu(first)
    with g.at(source):
        last = g.Tanh(between)
    assert operators(outline_calls(g.build([last]), "keep")) == ["Mul", "Relu", "Tanh"]


def test_a_graph_without_calls_is_the_same():
    graph = make_graph()
    plain = replace(graph, nodes=tuple(replace(n, sources=()) for n in graph.nodes))
    assert outline_calls(plain, "keep") is plain and forget_calls(plain, "keep") is plain
