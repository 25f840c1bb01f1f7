"""The one loop over nodes: what cannot be converted, names, types and what goes along."""

from __future__ import annotations

import errno
import os

import pytest
from onnx import parser

from serde.errors import Unconvertible
from serde.formats.onnx.reader import decode
from serde.formats.onnx.to_ir import to_ir
from serde.ir.builder import Builder
from serde.ir.graph import Graph, Node, Source, Value
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder
from tests.rewrite.toy import F32, graph_of, table


def problems(*nodes, registry=None, **options):
    with pytest.raises(Unconvertible) as caught:
        (registry or table()).rewrite(graph_of(*nodes, **options), OnnxBuilder("g"))
    assert caught.value.stage == "toy → ir"
    return [(p.op, dict(p.attrs), p.count, p.names, p.reason) for p in caught.value.problems]


def test_what_cannot_be_converted_is_reported_all_at_once_and_grouped():
    layout = {"kernel": "(1,)", "layout": "NHWC"}
    why = "layout=NHWC; supported: NCHW, None"
    assert problems(
        ("Foo", "x", "f1", {}),
        ("Conv", "x w", "c1", layout),
        ("Foo", "x", "f2", {}),
        ("Bar", "x", "b1", {"k": "1"}),
        ("Bar", "x", "b2", {"k": "2"}),
        ("abs", "x", "y", {}),
    ) == [
        ("Foo", {}, 2, ("f1", "f2"), "toy → ir has no rule for Foo"),
        ("Conv", layout, 1, ("c1",), why),
        ("Bar", {"k": "1"}, 1, ("b1",), "toy → ir has no rule for Bar"),
        ("Bar", {"k": "2"}, 1, ("b2",), "toy → ir has no rule for Bar"),
    ]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOENT, errno.EMFILE])
def test_a_disk_that_fails_under_a_rule_is_no_matter_of_the_node(number):
    registry = table()

    @registry("Read")
    def read_file(g, x):
        raise OSError(number, os.strerror(number), "w.bin")

    with pytest.raises(OSError, match=r"w\.bin") as caught:
        registry.rewrite(graph_of(("Read", "x", "y", {})), OnnxBuilder("g"))
    assert caught.value.errno == number


def test_annotations_do_not_tell_nodes_apart():
    assert [p[2] for p in problems(
        ("Foo", "x", "a", {"__m__": "1"}), ("Foo", "x", "b", {"__m__": "2"}),
    )] == [2]  # fmt: skip


def test_what_reads_a_failure_is_not_reported_unless_it_fails_itself():
    assert [p[0] for p in problems(
        ("Foo", "x", "a", {}),
        ("abs", "a", "b", {}),
        ("neg", "b", "c", {"odd": "1"}),
        ("Baz", "c", "d", {}),
        ("abs", "d", "y", {}),
    )] == ["Foo", "neg", "Baz"]  # fmt: skip


def test_the_message_names_operators_configurations_counts_and_nodes():
    nodes = [("Foo", "x", f"f{i}", {"k": "1"}) for i in range(7)]
    with pytest.raises(Unconvertible) as caught:
        table().rewrite(graph_of(*nodes), OnnxBuilder("g"))
    assert str(caught.value) == (
        "toy → ir: 7 node(s) cannot be converted:\n"
        "  Foo ×7 ('f0', 'f1', 'f2', 'f3', 'f4', …): toy → ir has no rule for Foo. Attributes: k=1\n"
        "  What has no rule can be given one (rules= in Python), be kept (--custom-domain or "
        "--keep-domain), or be cut off (--outputs)."
    )


@pytest.mark.parametrize(
    ("op", "operands", "why"),
    [
        ("abs", "x z", "Abs takes no 2 inputs at opset 28"),
        ("Conv", "x", "has 1 inputs where 2 to 3 belong"),
        ("Conv", "x w b c", "has 4 inputs where 2 to 3 belong"),
        ("split", "x z", "has 2 inputs where 1 belong"),
    ],
)
def test_a_wrong_number_of_operands_is_refused(op, operands, why):
    attrs = {"kernel": "(1,)"} if op == "Conv" else {}
    assert [p[4] for p in problems((op, operands, "y", attrs))] == [why]


def test_an_output_the_rule_does_not_make_is_refused():
    assert [p[4] for p in problems(("abs", "x", "y mean var", {}))] == [
        "output 'mean', 'var' has no equivalent"
    ]


def test_a_mistake_in_a_rule_is_reported_with_its_node():
    registry = table()
    registry("broken")(lambda g, x: 1 / 0)
    assert [p[4] for p in problems(("broken", "x", "y", {}), registry=registry)] == [
        "fails with ZeroDivisionError: division by zero. Its operands may not fit it: float32 (N, 4)"
    ]


def test_a_value_nothing_computes_is_refused():
    x, y = Value("x", F32, (2,)), Value("y")
    graph = Graph("g", (), (y,), (Node("abs", (x,), (y,), {}, "toy", "n"),), "toy")
    with pytest.raises(Unconvertible, match="reads 'x', which nothing before it computes"):
        table().rewrite(graph, OnnxBuilder("g"))


def test_results_take_the_names_and_missing_types_of_what_they_stand_for():
    registry = table()
    registry("opaque")(lambda g, x: g.foreign("toy", "Opaque", [x], {}))
    graph = graph_of(("opaque", "x", "y", {}), ("split", "x", "p q", {"n": "2"}))
    graph.nodes[0].outputs[0].dtype = F32
    done = registry.rewrite(graph, OnnxBuilder("g"))
    assert [(v.name, v.dtype) for n in done.nodes for v in n.outputs] == [
        ("y", F32), ("p", F32), ("q", F32),
    ]  # fmt: skip


def test_nodes_carry_their_source_and_inputs_keep_name_type_and_order():
    done = table().rewrite(graph_of(("abs", "x", "y", {})), OnnxBuilder("g"))
    (node,) = done.nodes
    assert (node.name, node.sources) == ("y", (Source("toy", "abs", "y"),))
    assert [(v.name, v.shape) for v in done.inputs] == [("x", ("N", 4))]


def test_metadata_functions_and_imports_go_along():
    graph = graph_of(("abs", "x", "y", {}))
    graph = Graph("g", graph.inputs, graph.outputs, graph.nodes, "toy",
                  metadata={"k": "v"}, imports={"d": 1})  # fmt: skip
    done = table().rewrite(graph, OnnxBuilder("g"))
    assert (done.metadata, done.imports) == ({"k": "v"}, {"d": 1})


def test_the_source_is_not_changed():
    graph = graph_of(("Conv", "x w", "c", {"kernel": "(1,)"}), ("abs", "c", "y", {}))
    before = str(graph)
    table().rewrite(graph, OnnxBuilder("g"))
    assert str(graph) == before


def test_a_very_deep_graph_is_no_recursion():
    nodes = [("abs", f"v{i}", f"v{i + 1}", {}) for i in range(3000)]
    registry = RuleTable("t")
    registry.rename({"abs": "absolute"})
    assert len(registry.rewrite(graph_of(*nodes), Builder("g")).nodes) == 3000


@pytest.mark.parametrize("outputs", ["iy", "yi", "fiy"])
def test_a_rewritten_graph_keeps_its_names(outputs):
    """Also where its nodes are taken over, and their results get the name of an output."""
    results = ", ".join(f"float[2] {name}" for name in outputs)
    text = f"""<ir_version: 9, opset_import: ["" : 28, "own" : 1]> g (float[2] x) => ({results})
    {{ f = own.F(x) i = Identity(f) y = Relu(i) }}"""
    graph = decode(parser.parse_model(text))
    done = str(to_ir(graph, keep_domain=["own"]))
    assert [v.name for n in graph.nodes for v in n.outputs] == ["f", "i", "y"]
    assert str(to_ir(graph, keep_domain=["own"])) == done and done.endswith(
        "return " + ", ".join(f"%{name}" for name in outputs)
    )
