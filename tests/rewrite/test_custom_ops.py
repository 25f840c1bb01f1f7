"""Operators of other domains: which table reads them, and what is said of those that stay."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.ir.graph import DType, Function, Graph, Node, Value
from serde.legalize.convert import raise_to_ir
from serde.rewrite.custom_ops import Readers, refuse, without_unused_imports
from serde.rewrite.rules import RuleTable
from testing.onnx_live import run

F32 = DType.FLOAT32
ACME = RuleTable("acme → ir")
ACME("Twice")(lambda g, x, *, times=2: g.Mul(x, float(times)))
OWN = RuleTable("runtime → ir")
OWN("Gelu2", "Relu")(lambda g, x: g.Neg(x))
READERS = Readers(
    tables={"com.acme": ACME, "": OWN}, opsets={"Gelu2": range(1, 99), "Relu": (7,)},
    refusals={"com.bad": "operators of one machine"},
    synonyms={"Resize": {("mode", "bilinear"): "linear"}},
)  # fmt: skip


def graph_of(*ops: str, opset=17, functions=(), **attrs) -> Graph:
    """Operators in a row; of another domain where there is one in front of the name."""
    values = [Value(f"v{i}", F32, (2,)) for i in range(len(ops) + 1)]
    nodes = []
    for at, name in enumerate(ops):
        domain, _, op = name.rpartition(":")
        nodes.append(Node(op, (values[at],), (values[at + 1],), attrs, domain, f"n{at}"))
    return Graph("g", (values[0],), (values[-1],), tuple(nodes), "", opset=opset,
                 functions=functions, imports={"com.acme": 1, "com.bad": 1})  # fmt: skip


def operators(graph: Graph, readers: Readers = READERS) -> list[str]:
    return [n.qualified_op for n in raise_to_ir(graph, readers).nodes]


def test_a_table_reads_what_it_has_a_rule_for():
    graph = raise_to_ir(graph_of("com.acme:Twice", times=3), READERS)
    (got,) = run(graph, {"v0": np.float32([1, -2])})
    assert got.tolist() == [3, -6]
    assert operators(graph_of("com.acme:Other")) == ["com.acme:Other"]


def test_what_is_kept_stays_and_gets_the_type_of_what_its_rule_makes():
    kept = Readers(READERS.tables, READERS.refusals, READERS.opsets, kept=["com.acme"])
    graph = graph_of("com.acme:Twice", "Relu")
    graph.nodes[0].outputs[0].dtype = graph.nodes[0].outputs[0].shape = None
    done = raise_to_ir(graph, kept)
    assert [n.qualified_op for n in done.nodes] == ["com.acme:Twice", "Relu"]
    assert (done.nodes[0].outputs[0].dtype, done.nodes[0].outputs[0].shape) == (F32, (2,))


@pytest.mark.parametrize(("op", "opset", "expected"), [
    ("Gelu2", 17, ["Neg"]), ("Relu", 7, ["Neg"]), ("Relu", 17, ["Relu"]),
])  # fmt: skip
def test_operators_that_a_runtime_adds_to_the_standard(op, opset, expected):
    """At its opsets only; a note says that they are none of the standard's."""
    graph = graph_of(op, opset=opset)
    assert operators(graph) == expected
    notes = [*READERS.notes(graph)]
    assert bool(notes) == (expected == ["Neg"])
    assert not notes or notes[0].startswith(f"{op} of opset {opset} ×1: not in the standard")


def test_a_function_of_the_model_is_no_one_elses():
    body = graph_of("Relu")
    readers = READERS.of_model(graph_of(functions=(Function("com.acme", "Twice", body),)))
    node = graph_of("com.acme:Twice").nodes[0]
    assert readers.table(node, 17) is None and READERS.table(node, 17) is ACME
    assert readers.versions == {"com.acme": 1, "com.bad": 1}


def test_a_value_that_a_runtime_takes_for_another_is_said():
    node = graph_of("Resize", mode="bilinear", axis=1).nodes[0]
    assert dict(READERS.standardize(node).attrs) == {"mode": "linear", "axis": 1}
    assert (
        READERS.standardize(graph_of("Relu", mode="bilinear").nodes[0]).attrs["mode"] == "bilinear"
    )
    (note,) = READERS.notes(graph_of("Resize", mode="bilinear"))
    assert note.startswith("Resize with mode='bilinear' ×1")


@pytest.mark.parametrize(("op", "attrs", "reason"), [
    ("com.bad:Foo", {}, "operators of one machine"),
    ("com.acme:Twice", {"by": 1}, "unknown attribute by; .*--keep-domain=com.acme carries it"),
])  # fmt: skip
def test_what_is_not_taken_is_refused_with_what_helps(op, attrs, reason):
    with pytest.raises(Unconvertible, match=reason):
        operators(graph_of(op, **attrs))


def test_other_formats_name_the_domain():
    error = refuse(graph_of("com.acme:Foo").nodes[0], "Toy")
    assert error.reason.startswith("Toy has no operators of the domain 'com.acme'. Cut the model")


def test_imports_without_a_node_are_dropped_of_some_domains():
    graph = graph_of("com.acme:Foo", "Relu")
    assert without_unused_imports(graph, ["com.bad"]).imports == {"com.acme": 1}
    assert without_unused_imports(graph, ["com.acme"]).imports == dict(graph.imports)
    bare = graph_of("Relu", functions=(Function("own", "F", graph_of("com.bad:Foo")),))
    assert without_unused_imports(bare, ["com.acme", "com.bad"]).imports == {"com.bad": 1}
