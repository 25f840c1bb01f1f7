"""Every node through a legalizer: what stays illegal, why, and what is told of it."""

from __future__ import annotations

import pytest

from serde.errors import ConversionError, Problem
from serde.ir.graph import DType, Graph, Node, Source, Value
from serde.legalize.target import Target, legalization_table
from serde.legalize.walk import Legalized, group_problems, illegal_nodes, legalize, problem_of
from serde.spec.onnx_builder import OnnxBuilder

F32 = DType.FLOAT32
RULES = legalization_table("toy")


@RULES("Erf")
def refuse_wide(g, x):
    """A rule that refuses, and one that needs no node more."""
    if x.rank > 1:
        g.Neg(x)
        raise ConversionError("Erf of more than one axis")
    return g.Tanh(x)


def make_graph(shape=(2, 3), *operators: str) -> Graph:
    g = OnnxBuilder("g")
    x = g.input("x", F32, shape)
    for at, op in enumerate(operators or ("Relu", "Erf", "Neg")):
        with g.at(Source("toy", op, f"layer{at}")):
            x = g[op](x)
    return g.build([x])


def make_target(**options) -> Target:
    return Target("toy", 17, {"Relu": {}, "Erf": {}, "Neg": {}, "Tanh": {}, "Shape": {}},
                  legalizations=RULES, **options)  # fmt: skip


def test_what_a_rule_refuses_stays_without_what_it_began() -> None:
    legal = legalize(make_graph(), make_target())
    assert [n.op for n in legal.graph.nodes] == ["Relu", "Erf", "Neg"]
    assert [legal.diagnostic(n) for n in legal.graph.nodes] == [
        None, "Erf of more than one axis", None,
    ]  # fmt: skip
    (problem,) = illegal_nodes(legal, make_target())
    assert (problem.op, problem.names, problem.reason) == (
        "Erf", ("layer1",), "Erf of more than one axis",
    )  # fmt: skip


def test_what_a_rule_takes_is_rewritten() -> None:
    legal = legalize(make_graph((4,)), make_target())
    assert [n.op for n in legal.graph.nodes] == ["Relu", "Tanh", "Neg"]
    assert not legal.diagnostics and not [*illegal_nodes(legal, make_target())]


def test_what_reads_the_illegal_is_not_told() -> None:
    """Unless it is one by itself."""
    legal = legalize(make_graph((2, 3), "Erf", "Relu", "Sin", "Neg", "Erf"), make_target())
    assert [p.names for p in illegal_nodes(legal, make_target())] == [
        ("layer0",), ("layer2",), ("layer4",),
    ]  # fmt: skip


def test_what_follows_from_an_input_of_unknown_size_is_told_of_that() -> None:
    graph = make_graph(("N", 3), "Erf", "Relu")
    target = make_target(dynamic_shapes=False)
    problems = [*illegal_nodes(legalize(graph, target), target)]
    assert [(p.op, p.names) for p in problems] == [("input", ("x",))]
    assert "toy takes static shapes only: give numbers" in problems[0].reason


def test_forms_are_asked_about_where_the_operator_and_its_types_are_right() -> None:
    target = Target("toy", 17, {"Relu": {"T": frozenset({DType.FLOAT16})}})
    (problem,) = illegal_nodes(Legalized(make_graph((2,), "Relu"), {}, {}), target)
    assert problem.reason.startswith("toy has no Relu of float32 elements")


@pytest.mark.parametrize(("dtype", "emulated", "reason"), [
    (DType.INT4, (), "no int4 elements; opset 21 is the lowest with them"),
    (DType.INT8, (DType.INT8,), "int8 elements, which Toy does not have: end the model before"),
])  # fmt: skip
def test_outputs_of_types_that_others_stand_for(dtype, emulated, reason) -> None:
    graph = make_graph((2,), "Relu")
    target = Target("toy", 17, emulated=frozenset(emulated), title="Toy")
    legal = Legalized(graph, {}, {graph.outputs[0]: dtype})
    (problem,) = legal.emulated_outputs(target, "stage")
    assert (problem.op, problem.names, problem.stage) == (
        "output",
        (graph.outputs[0].name,),
        "stage",
    )
    assert problem.reason.startswith(reason)
    assert Legalized(graph, {}, {}).emulated_outputs(target) == []


def test_problems_of_one_kind_are_told_together() -> None:
    problems = [Problem("Erf", {}, "why", (n,)) for n in "aba"]
    problems += [Problem("Erf", {"k": 1}, "why", ("c",)), Problem("Erf", {}, "else", ("d",))]
    assert [p.names for p in group_problems(problems)] == [("a", "b"), ("c",), ("d",)]


def test_a_problem_has_the_name_and_the_attributes_of_the_source() -> None:
    x = Value("x", F32, (2,))
    attrs = {"b": 1, "body": Graph("b", (), (), ()), "a": 2}
    node = Node("Foo", (x,), (Value("y"),), attrs, "own", "here", (Source("toy", "foo", "there"),))
    problem = problem_of(node, "why")
    assert (problem.op, problem.names, [*problem.attrs.items()]) == (
        "own:Foo", ("there",), [("a", 2), ("b", 1)],
    )  # fmt: skip
