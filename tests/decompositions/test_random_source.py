"""Where random numbers come from: refused, drawn by the runtime, or given as inputs."""

from __future__ import annotations

import numpy as np
import pytest

from serde.decompositions.random_source import REASON, draw_at_runtime, draw_from_input, with_random
from serde.errors import ConversionError, Unconvertible, UsageError
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType, Graph, Node, Value
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import run, session_of

MOMENTS = {"uniform": (0.5, 1 / 12), "normal": (0, 1)}
COUNT = 4096


@pytest.mark.parametrize("kind", MOMENTS)
@pytest.mark.parametrize("sizes", [(), (COUNT,), (2, "N", 8)])
def test_the_runtime_draws_numbers_of_the_shape(kind: str, sizes: tuple) -> None:
    g = OnnxBuilder("g")
    x = g.input("x", DType.FLOAT32, ("N",))
    wanted = [g.Shape(x) if s == "N" else s for s in sizes]
    y = draw_at_runtime(g, kind, wanted)
    session = session_of(to_proto(from_ir(g.build([y, g.Identity(x)]), 17)))
    feeds = {"x": np.zeros(COUNT // 16, np.float32)}
    first, second = (session.run(None, feeds)[0] for _ in range(2))
    assert first.shape == tuple(COUNT // 16 if s == "N" else s for s in sizes)
    assert (first != second).any()
    if sizes:
        mean, var = MOMENTS[kind]
        assert abs(first.mean() - mean) < 0.1 and abs(first.var() - var) < 0.15


def test_noise_is_an_input_that_says_what_it_is() -> None:
    g = OnnxBuilder("g")
    x = g.input("x", DType.FLOAT32, ("N", 3))
    first = draw_from_input(g, "normal", (2, 3))
    second = draw_from_input(g, "normal", [g.Shape(x, start=0, end=1), 3])
    assert [v.name for v in g.inputs[1:]] == ["normal", second.name] != ["normal", "normal"]
    assert (first.shape, second.shape, first.dtype) == ((2, 3), ("N", 3), DType.FLOAT32)
    with pytest.raises(ConversionError, match="in a loop or branch, which an input cannot be"):
        draw_from_input(g.child("body"), "normal", (2,))


def tables() -> tuple[RuleTable, RuleTable]:
    table, draws = RuleTable("toy → ir"), RuleTable("draws")
    draws("noise", "own")(lambda draw, g, x, *, scale=1.0: g.Mul(draw(g, "normal", (2,)), scale))
    table("own")(lambda g, x: g.Neg(x))
    return table, draws


def rewrite(way: str, op: str, attrs=None) -> Graph:
    x, y = Value("x", DType.FLOAT32, (2,)), Value("y")
    graph = Graph("g", (x,), (y,), (Node(op, (x,), (y,), attrs or {}, "toy", "layer"),), "toy")
    return with_random(*tables(), way).rewrite(graph, OnnxBuilder("g"))


def test_rules_that_draw_are_given_what_to_draw_by() -> None:
    assert [n.op for n in rewrite("onnx", "noise", {"scale": 2.0}).nodes] == ["RandomNormal", "Mul"]
    graph = rewrite("input", "noise", {"scale": 3.0})
    (got,) = run(graph, {"x": np.zeros(2, np.float32), "layer/normal": np.float32([1, -2])})
    assert got.tolist() == [3, -6] and [v.name for v in graph.inputs] == ["x", "layer/normal"]
    assert [n.op for n in rewrite("onnx", "own").nodes] == ["Neg"]  # the table's rule stays


def test_drawing_is_refused_unless_a_way_is_named() -> None:
    with pytest.raises(Unconvertible) as caught:
        rewrite("refuse", "noise")
    assert caught.value.problems[0].reason == REASON
    with pytest.raises(UsageError, match="--random='dice': it is refuse, onnx or input"):
        rewrite("dice", "noise")
