"""Passes over the IR: each does what it says, in subgraphs too, and keeps what must stay."""

from __future__ import annotations

from serde.ir.graph import DType
from serde.passes import tidy
from testing.onnx_live import ir_of

F32 = DType.FLOAT32


def lines(graph):
    return [line.strip() for line in str(graph).splitlines()[1:]]


def ops(graph):
    return [n.op for n in graph.nodes]


def test_tidying_twice_changes_nothing_more():
    graph = tidy(ir_of(
        "g (float[2] x) => (float[2] y) { a = Constant<value = float[2] {1, 2}>()\n"
        "b = Constant<value = float[2] {1, 2}>()\n c = Add(x, a)\n d = Add(x, b)\n dead = Exp(c)\n y = Mul(c, d) }"
    ))  # fmt: skip
    assert lines(graph) == [
        "%c: float32[2] = Add(%x, [1.0, 2.0])",
        "%y: float32[2] = Mul(%c, %c)",
        "return %y",
    ]
    assert str(tidy(graph)) == str(graph)


def test_a_large_dead_graph_is_no_recursion_and_no_square():
    body = "\n".join(f"v{i + 1} = Abs(v{i})" for i in range(2000))
    graph = ir_of(f"g (float[2] v0) => (float[2] v2000) {{ {body} }}")
    assert len(tidy(graph).nodes) == 2000
