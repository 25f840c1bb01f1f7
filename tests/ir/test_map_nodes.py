"""Nodes changed one by one, those of subgraphs first; what is not changed stays the same object."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Graph, Node, Value
from serde.ir.map_nodes import map_bodies, map_nodes

X = Value("x")
INNER = Graph("inner", (), (X,), (Node("Abs", (X,), (Value("a"),)),))
OUTER = Node("If", (X,), (Value("y"),), {"then_branch": INNER, "else_branch": INNER, "k": 1})
GRAPH = Graph("outer", (X,), OUTER.outputs, (OUTER, Node("Neg", (X,), (Value("n"),))))


def test_nodes_of_subgraphs_come_first() -> None:
    order = []

    def note(node: Node) -> Node:
        order.append(node.op)
        return replace(node, op=f"{node.op}2")

    done = map_nodes(GRAPH, note)
    assert order == ["Abs", "Abs", "If", "Neg"]
    assert [n.op for n in done.nodes] == ["If2", "Neg2"]
    assert {n.op for body in done.nodes[0].graphs() for n in body.nodes} == {"Abs2"}
    assert done.nodes[0].attrs["k"] == 1


def test_a_graph_that_does_not_change_is_the_same() -> None:
    assert map_nodes(GRAPH, lambda node: node) is GRAPH


def test_nodes_beside_a_changed_one_are_the_same() -> None:
    done = map_nodes(GRAPH, lambda node: replace(node, op="Exp") if node.op == "Neg" else node)
    assert done.nodes[0] is OUTER and done.nodes[1].op == "Exp"


def test_map_bodies() -> None:
    plain = GRAPH.nodes[1]
    assert map_bodies(plain, lambda body: body) is plain
    assert map_bodies(OUTER, lambda body: body) is OUTER
    done = map_bodies(OUTER, lambda body: replace(body, name="new"))
    assert {body.name for body in done.graphs()} == {"new"} and done.inputs == OUTER.inputs
