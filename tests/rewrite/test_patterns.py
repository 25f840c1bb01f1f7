"""The walk that applies patterns: what it calls the rules for, and what it leaves of the graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serde.ir.constants import make_integers
from serde.ir.graph import Call, DType, Graph, Node, Source, Value
from serde.rewrite.patterns import Neighbours, Patterns, join_sources, merge, orders


def value(name: str) -> Value:
    return Value(name, DType.FLOAT32, (2,))


def node(op: str, inputs: Sequence[Value], *, domain: str = "", call: str = "") -> Node:
    name = f"{op}({','.join(v.name for v in inputs)})"
    calls = (Call(call),) if call else ()
    sources = (Source("test", op, name, calls=calls),)
    return Node(op, tuple(inputs), (value(name),), {}, domain, name, sources)


def chain(*ops: str, x: Value) -> list[Node]:
    nodes: list[Node] = []
    for op in ops:
        nodes.append(node(op, [nodes[-1].outputs[0] if nodes else x]))
    return nodes


def graph(nodes: Sequence[Node], *outputs: Value) -> Graph:
    return Graph("test", (), outputs or nodes[-1].outputs, tuple(nodes))


def ops(graph: Graph) -> str:
    return " ".join(n.op for n in graph.nodes)


X = value("x")
inverses = Patterns()


@inverses("Neg")
def cancel(near: Neighbours, node: Node) -> Value | None:
    """The operand of two Negs."""
    before = near.maker(node.inputs[0], "Neg")
    return None if before is None else before.inputs[0]


@inverses("Exp")
def merge_exp(near: Neighbours, node: Node) -> Node | None:
    """An Exp of an Abs that only it reads."""
    before = near.sole_maker(node, node.inputs[0], "Abs")
    return None if before is None else merge(before, node, op="AbsExp")


def test_a_merged_node_has_the_results_and_sources_of_both() -> None:
    before, last = chain("Abs", "Exp", x=X)
    done = inverses.apply(graph([before, last]))
    (merged,) = done.nodes
    assert (merged.op, merged.inputs, merged.outputs) == ("AbsExp", (X,), last.outputs)
    assert merged.sources == before.sources + last.sources == join_sources(before, last, before)


def test_a_graph_where_nothing_matches_is_the_same() -> None:
    given = graph(chain("Neg", "Abs", "Neg", "Exp", x=X))
    assert inverses.apply(given) is given


def test_rules_are_asked_about_the_result_of_a_rule_again() -> None:
    halves = Patterns()
    halves("A")(lambda near, node: merge(node, node, op="B"))
    halves("B")(lambda near, node: merge(node, node, op="C"))
    assert ops(halves.apply(graph(chain("A", x=X)))) == "C"


@pytest.mark.parametrize("domain", ["", "com.acme"])
def test_patterns_are_of_one_domain(domain: str) -> None:
    rules = Patterns(domain="com.acme")

    @rules("Exp")
    def merge_abs(near: Neighbours, node: Node) -> Node | None:
        before = near.sole_maker(node, node.inputs[0], "Abs")
        assert before is None or near.sole_reader(before, "Exp") is node
        return None if before is None else merge(before, node, op="AbsExp")

    first = node("Abs", [X], domain=domain)
    last = node("Exp", first.outputs, domain="com.acme")
    merged = ops(rules.apply(graph([first, last])))
    assert merged == ("AbsExp" if domain else "Abs Exp")
    assert ops(inverses.apply(graph([first, last]))) == "Abs Exp"


def test_several_nodes_take_the_place_of_one() -> None:
    split = Patterns()

    @split("Twice")
    def spell_out(near: Neighbours, node: Node) -> list[Node]:
        first = replace(node, op="Once", outputs=(value("half"),))
        return [first, replace(node, op="Once", inputs=first.outputs)]

    @split("Exp")
    def see_maker(near: Neighbours, node: Node) -> Node | None:
        once = near.sole_maker(node, node.inputs[0], "Once")
        before = None if once is None else near.sole_maker(once, once.inputs[0], "Once")
        return None if before is None else merge(before, node, op="Done")

    nodes = chain("Twice", "Exp", "Sin", x=X)
    done = split.apply(graph(nodes))
    assert ops(done) == "Done Sin" and done.nodes[0].inputs == (X,)
    assert ops(split.apply(graph(nodes[:1]))) == "Once Once"


def test_a_chain_is_merged_node_by_node() -> None:
    products = Patterns()

    @products("P")
    def join(near: Neighbours, node: Node) -> Node | None:
        before = near.sole_maker(node, node.inputs[0], "P")
        return None if before is None else merge(before, node, name=f"{before.name}+")

    (merged,) = products.apply(graph(chain(*"PPPP", x=X))).nodes
    assert merged.inputs == (X,) and merged.name == "P(x)+++" and len(merged.sources) == 4


@pytest.mark.parametrize(
    "what", ["twice", "an output", "another function", "another domain", "two nodes"]
)
def test_the_sole_maker_is_read_once_in_the_same_function(what: str) -> None:
    before = node("Abs", [X], domain="com.acme" if what == "another domain" else "")
    y = before.outputs[0]
    last = node("Exp", [y, y] if what == "twice" else [y],
                call="f" if what == "another function" else "")  # fmt: skip
    others = [node("Sqrt", [y])] if what == "two nodes" else []
    outputs = [n.outputs[0] for n in (last, *others)] + [y] * (what == "an output")
    given = graph([before, last, *others], *outputs)
    assert inverses.apply(given) is given


def test_readers_of_a_dissolved_node_read_the_value() -> None:
    first, second, reader, other = chain("Neg", "Neg", "Sqrt", "Sin", x=X)
    done = inverses.apply(graph([first, second, reader, other]))
    assert ops(done) == "Sqrt Sin" and done.nodes[0].inputs == (X,)


def test_an_output_keeps_its_name() -> None:
    nodes = chain("Sqrt", "Neg", "Neg", x=X)
    reader = node("Sin", [nodes[0].outputs[0]])
    done = inverses.apply(graph([*nodes, reader], nodes[-1].outputs[0], reader.outputs[0]))
    assert ops(done) == "Sqrt Sin"
    assert done.nodes[0].outputs == nodes[-1].outputs == done.nodes[1].inputs
    given = graph(chain("Neg", "Neg", x=X))  # an input cannot be named after an output
    assert inverses.apply(given) is given


def test_what_nothing_reads_any_more_goes_with_its_makers() -> None:
    drop = Patterns()
    drop("Last")(lambda near, node: merge(node, node, op="Done", inputs=node.inputs[:1]))
    sqrt, root = chain("Sqrt", "Sin", x=X)
    last = node("Last", [X, root.outputs[0]])
    assert ops(drop.apply(graph([sqrt, root, last]))) == "Done"
    kept = node("Cos", sqrt.outputs)
    shared = graph([sqrt, kept, root, last], kept.outputs[0], last.outputs[0])
    assert ops(drop.apply(shared)) == "Sqrt Cos Done"


def test_uses_are_those_of_the_graph_as_it_is() -> None:
    """A node whose only other reader was merged away has one reader."""
    first = node("Abs", [X])
    neg, negs = chain("Neg", "Neg", x=first.outputs[0])
    last = node("Exp", negs.outputs)
    assert ops(inverses.apply(graph([first, neg, negs, last]))) == "AbsExp"


def test_readers_follow_the_rewrites() -> None:
    seen = []
    walk = Patterns()

    @walk("Neg")
    def look_and_cancel(near: Neighbours, node: Node) -> Value | None:
        seen.append([n.op for n in near.readers[X]])
        return cancel(near, node)

    @walk("Exp")
    def look(near: Neighbours, node: Node) -> None:
        seen.append([n.op for n in near.readers[X]])

    walk.apply(graph(chain("Neg", "Neg", "Exp", x=X)))
    assert seen == [["Neg"], ["Neg"], ["Exp"]]


def test_readers_that_are_first_asked_for_later_are_those_of_then() -> None:
    seen = []
    walk = Patterns()
    walk("Neg")(cancel)

    @walk("Exp")
    def look(near: Neighbours, node: Node) -> None:
        seen.append([n.op for n in near.readers[X]])

    walk.apply(graph(chain("Neg", "Neg", "Exp", x=X)))
    assert seen == [["Exp"]]


def test_subgraphs_are_rewritten_within() -> None:
    outer = node("Neg", [X])
    (abs_, exp), (neg, sqrt) = chain("Abs", "Exp", x=X), chain("Neg", "Sqrt", x=outer.outputs[0])
    bodies = {"a": graph([abs_, exp]), "b": graph([neg, sqrt])}
    branch = replace(node("If", [X]), attrs=bodies)
    done = inverses.apply(graph([outer, branch, *chain("Neg", "Neg", "Sin", x=X)]))
    assert ops(done) == "Neg If Sin"  # the outer Neg is not merged with that of a body
    assert [ops(body) for body in done.nodes[1].graphs()] == ["AbsExp", "Neg Sqrt"]


def test_bodies_read_what_stands_for_a_dissolved_node() -> None:
    first, second = chain("Neg", "Neg", x=X)
    body = graph([node("Exp", second.outputs)])
    passed_on = replace(body, nodes=(), outputs=second.outputs)
    branch = replace(node("If", [X]), attrs={"a": body, "b": passed_on})
    done = inverses.apply(graph([first, second, branch]))
    assert ops(done) == "If"
    (changed, empty) = done.nodes[0].graphs()
    assert changed.nodes[0].inputs == (X,) == empty.outputs


def test_what_only_a_rewritten_body_read_goes() -> None:
    drop = Patterns()
    drop("Last")(lambda near, node: merge(node, node, op="Done", inputs=node.inputs[:1]))
    sqrt = node("Sqrt", [X])
    branch = replace(node("If", [X]), attrs={"a": graph([node("Last", [X, sqrt.outputs[0]])])})
    assert ops(drop.apply(graph([sqrt, branch]))) == "If"


def test_an_output_of_a_body_keeps_its_name() -> None:
    nodes = chain("Sqrt", "Neg", "Neg", x=X)
    branch = replace(node("If", [X]), attrs={"a": graph(nodes)})
    (body,) = inverses.apply(graph([branch])).nodes[0].graphs()
    assert ops(body) == "Sqrt" and body.nodes[0].outputs == body.outputs == nodes[-1].outputs


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-pass.md"


def test_the_pass_of_the_documentation() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    done = names["drop_needless_negations"](graph(chain("Neg", "Neg", "Neg", "Abs", "Sin", x=X)))
    assert ops(done) == "Abs Sin" and done.nodes[0].inputs == (X,)


def test_sole_reader() -> None:
    first, second = chain("Abs", "Exp", x=X)
    near = Neighbours(graph([first, second]))
    assert near.sole_reader(first, "Exp") is second
    assert near.sole_reader(first, "Log") is None and near.sole_reader(second, "Exp") is None


def test_graphs_without_a_required_operator_are_left_as_they_are() -> None:
    rules = Patterns("Conv", "Gemm")
    rules("Exp")(lambda near, node: merge(node, node, op="Done"))
    given = graph(chain("Abs", "Exp", x=X))
    assert rules.apply(given) is given
    assert ops(rules.apply(graph(chain("Gemm", "Exp", x=X)))) == "Gemm Done"


def test_an_analysis_is_made_once_of_the_graph_as_it_came() -> None:
    given, graphs = graph(chain("A", "A", x=X)), []
    rules = Patterns()

    def count(graph: Graph) -> int:
        graphs.append(graph)
        return len(graph.nodes)

    @rules("A")
    def rule(near: Neighbours, node: Node) -> Node:
        return merge(node, node, op=f"B{near.find(count)}")

    assert ops(rules.apply(given)) == "B2 B2" and graphs == [given]


def test_both_orders() -> None:
    a, b = X, make_integers("b", [1])
    assert orders(node("Add", [a, b])) == ((a, b), (b, a))
