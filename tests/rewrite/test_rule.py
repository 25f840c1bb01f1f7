"""What a rule's signature declares."""

from __future__ import annotations

from functools import partial

import pytest

from serde.ir.geometry import Ints
from serde.rewrite.rule import Attribute, Hint, Rule, always, never
from serde.rewrite.subgraphs import Body


def read_layer(g, x, w, b=None, *, kernel: Ints, stride=(1, 1), groups=1, body: Body = None,
               exact: Hint[bool] = False):  # fmt: skip
    """A rule of all kinds of parameters."""


def test_attributes_have_the_type_of_their_annotation_or_default():
    rule = Rule.of(read_layer, ignore=["workspace"])
    assert {n: a.kind for n, a in rule.attributes.items()} == {
        "kernel": Ints, "stride": Ints, "groups": int, "body": Body,
    }  # fmt: skip
    assert [n for n, a in rule.attributes.items() if a.is_required] == ["kernel"]
    assert rule.attributes["groups"] == Attribute(int, 1)
    assert rule.known_attributes == {"kernel", "stride", "groups", "body", "workspace"}
    assert (rule.hints, rule.bodies, rule.takes_all) == ({"exact"}, {"body"}, False)


@pytest.mark.parametrize(("function", "operands"), [
    (read_layer, (2, 3)),
    (lambda g, *xs, axis=0: None, (1, None)),
    (lambda g, x, *xs: None, (1, None)),
    (lambda g, x, y, *xs: None, (2, None)),
    (lambda g: None, (0, 0)),
    (partial(lambda op, g, x: None, "Relu"), (1, 1)),
    (partial(lambda op, g, x, y=None, *, k=1: None, "Relu"), (1, 2)),
])  # fmt: skip
def test_operands_are_counted(function, operands):
    assert Rule.of(function).operands == operands


def test_what_is_not_declared_is_taken_by_keywords_at_the_end():
    rule = Rule.of(lambda g, x, *, k=1, **rest: None)
    assert rule.takes_all and rule.attributes.keys() == {"k"}


def test_the_signature_is_read_once(monkeypatch):
    rule = Rule.of(read_layer)
    attributes, operands = rule.attributes, rule.operands
    monkeypatch.setattr("inspect.signature", None)
    assert rule.attributes is attributes and rule.operands is operands
    with pytest.raises(TypeError):
        attributes["kernel"] = Attribute(int)


def test_rules_look_at_sizes_unless_they_say_otherwise():
    assert Rule.of(read_layer).sizes is always and always({}) and not never({"axis": 1})
    assert not Rule.of(read_layer, sizes=never).sizes({})
