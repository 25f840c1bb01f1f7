"""Graphs as text, and one line for each object, whatever it holds."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.ir.graph import DType, FileSlice, Graph, Node, Tensor, Value
from testing.onnx_live import DIGITS, ir_of


def fail():
    raise AssertionError("nothing is loaded to show it")


LARGE = Tensor(DType.FLOAT32, (1 << 20, 1 << 10), fail, FileSlice("w.bin", 0, 1 << 32))
X, Y = Value("x", DType.FLOAT32, ("N", 3)), Value("y", None, None)
W = Value("w", DType.FLOAT32, LARGE.shape, LARGE)
NODE = Node("Gemm", (X, W, None), (Y,), {"transB": 1, "table": LARGE}, "own", "n")


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (X, "<Value x: float32[N,3]>"),
        (W, "<Value w: float32[1048576,1024], constant>"),
        (LARGE, "<Tensor float32[1048576,1024] in 'w.bin'>"),
        (Tensor.of(np.zeros((2, 3), np.int8)), "<Tensor int8[2,3]>"),
        (NODE, "<Node y: ?[?] = own.Gemm(x, w, _, table=<float32[1048576, 1024]>, transB=1)>"),
        (Graph("net", (X,), (Y,), (NODE,)), "<Graph 'net': 1 nodes, x: float32[N,3] -> y: ?[?]>"),
        (Value("\x1b[2J", DType.BOOL, ()), "<Value \\x1b[2J: bool[]>"),
    ],
)  # fmt: skip
def test_objects_are_shown_in_a_line(thing, text):
    assert repr(thing) == text


def test_lines_are_short():
    many = tuple(Value(f"a_rather_long_name_{i}", DType.FLOAT32, (1,)) for i in range(1000))
    graph = Graph("g", many, many, (Node("Sum", many, (Y,), {"k": tuple(range(9999))}),))
    for thing in (graph, graph.nodes[0], *serde.load(DIGITS).nodes):
        assert len(repr(thing)) < 210 and "\n" not in repr(thing)


def test_a_graph_is_printed_node_by_node():
    graph = ir_of("g (float[N,3] x) => (float[N,3] y) { t = Relu(x)\n y = Add(t, x) }")
    assert str(graph).splitlines() == [
        "graph g(%x: float32[N,3]):", "  %t: float32[N,3] = Relu(%x)",
        "  %y: float32[N,3] = Add(%t, %x)", "  return %y",
    ]  # fmt: skip
