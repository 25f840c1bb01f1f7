"""Which expressions a backend gets, and in which order they are tried."""

from __future__ import annotations

from types import SimpleNamespace

from serde.backends.expressions import Expression, express_lacking


def make(op, needs, result, is_partial=False):
    return Expression(op, frozenset(needs.split()), lambda g, x: result, is_partial)


def first_of(op, supported, *expressions):
    table = express_lacking(supported, expressions)
    return table.rules[op].function(SimpleNamespace(), None) if op in table.rules else "none"


def test_an_expression_needs_operators_that_are_there_or_expressed():
    chain = make("A", "B", "by B"), make("B", "C", "by C")
    assert first_of("A", {"C"}, *chain) == "by B"
    assert first_of("A", {"D"}, *chain) == "none"


def test_no_expression_is_made_of_what_it_expresses():
    circle = make("A", "B", "by B"), make("B", "A", "by A"), make("B", "C", "by C")
    assert first_of("A", {"C"}, *circle) == "by B" and first_of("B", {"A"}, *circle) == "by A"
    assert first_of("B", {"C"}, *circle) == "by C"


def test_ways_whose_operators_are_there_in_all_forms_go_first():
    some = make("Max", "Relu", "by Relu", is_partial=True)
    ways = make("Abs", "Max", "by Max"), make("Abs", "Relu Neg", "by both")
    assert first_of("Abs", {"Relu", "Neg"}, some, *ways) == "by both"
    assert first_of("Abs", {"Relu", "Neg", "Max"}, some, *ways) == "by Max"


def test_the_next_way_is_tried_where_one_writes_other_forms():
    ways = make("A", "B", None, is_partial=True), make("A", "C", "by C")
    assert first_of("A", {"B", "C"}, *ways) == "by C"
