"""Operators of other domains become what a table says where a target has no such domain."""

from __future__ import annotations

import onnx
import pytest

import serde
from serde.decompositions.foreign import find_rules, foreign_rules
from serde.decompositions.onnx_ml import ml_rules
from serde.errors import Unconvertible
from serde.rewrite.rules import RuleTable

MODEL = """<ir_version: 8, opset_import: ["": 17, "test.foreign": 1]>
    g (float[2] x) => (float[2] y) { y = test.foreign.Twice<more = 1.5>(x) }"""


@pytest.fixture
def rules(monkeypatch) -> RuleTable:
    """A table of a domain of its own."""
    table = RuleTable("test.foreign → ir")
    monkeypatch.setitem(foreign_rules, "test.foreign", table)

    @table("Twice")
    def decompose_twice(g, x, *, more=0.0):
        return g.Add(g.Add(x, x), more)

    return table


def test_a_domain_has_the_rules_that_are_entered_for_it(rules) -> None:
    assert find_rules("test.foreign") is rules
    assert find_rules("ai.onnx.ml") is ml_rules
    assert find_rules("test.unknown") is None


def test_only_targets_without_the_domain_see_them(rules, tmp_path) -> None:
    model = onnx.parser.parse_model(MODEL)
    serde.convert(model, tmp_path / "m.onnx")
    assert [n.op_type for n in onnx.load(tmp_path / "m.onnx").graph.node] == ["Twice"]
    serde.convert(model, tmp_path / "n.onnx", profile="tract")
    assert [n.op_type for n in onnx.load(tmp_path / "n.onnx").graph.node] == ["Add", "Add"]


def test_an_operator_without_a_rule_is_refused_by_its_name(tmp_path) -> None:
    with pytest.raises(Unconvertible, match="test.foreign:Twice"):
        serde.convert(onnx.parser.parse_model(MODEL), tmp_path / "m.tflite")
