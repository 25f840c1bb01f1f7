"""Tables of rules from the IR to a format: what they refuse of other domains."""

from __future__ import annotations

import pytest

from serde.errors import Unconvertible
from serde.ir.builder import Builder
from serde.ir.graph import DType, Graph, Node, Value
from serde.rewrite.writer_table import WriterTable

F32 = DType.FLOAT32


def table(**options):
    writes = WriterTable("ir → toy", "Toy", reasons={"Erf": "Toy has no Erf: use Tanh"}, **options)
    writes("Relu", "Softmax")(lambda b, x, *, axis=-1: b.relu(x))
    writes("Twice")(lambda b, x: b.twice(x))
    return writes


def write(op, attrs=None, domain="", writes=None):
    x, y = Value("x", F32, (2,)), Value("y", F32, (2,))
    graph = Graph("g", (x,), (y,), (Node(op, (x,), (y,), attrs or {}, domain, "layer"),))
    return [n.op for n in (writes or table()).rewrite(graph, Builder("g")).nodes]


def test_operators_of_the_standard_are_listed_without_others():
    assert table().list_standard() == ["Relu", "Softmax"]


def test_attributes_at_the_standards_default_say_nothing():
    assert write("Relu", {}) == ["relu"]
    assert write("Softmax", {"axis": 1}) == ["relu"]


@pytest.mark.parametrize(("op", "domain", "reason"), [
    ("Relu", "com.acme", "Toy has no operators of the domain 'com.acme'. Cut the model before it"),
    ("Erf", "", "Toy has no Erf: use Tanh"), ("Tanh", "", "ir → toy has no rule for Tanh"),
])  # fmt: skip
def test_what_it_lacks_is_refused_by_name(op, domain, reason):
    with pytest.raises(Unconvertible) as caught:
        write(op, domain=domain)
    assert caught.value.problems[0].reason.startswith(reason)


def test_domains_that_the_format_has_are_not_refused():
    writes = table(domains=("", "own"))
    assert write("Twice", domain="own", writes=writes) == ["twice"]


def test_what_was_found_about_a_node_comes_first():
    x, y = Value("x", F32, (2,)), Value("y", F32, (2,))
    node = Node("Relu", (x,), (y,), {}, "com.acme", "layer")
    graph = Graph("g", (x,), (y,), (node,))
    with pytest.raises(Unconvertible, match="it is too wide"):
        table().with_diagnostics({y: "it is too wide"}).rewrite(graph, Builder("g"))
