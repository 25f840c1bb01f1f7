"""Numbers that stand for equal attributes, and memos of bounded size."""

from __future__ import annotations

from serde.spec import memo
from serde.spec.memo import AttributeNumbers, memoize, number_attributes


def test_only_the_same_attributes_get_one_number():
    assert number_attributes({"axis": 1}) == number_attributes({"axis": 1})
    assert number_attributes({"axis": 1}) != number_attributes({"axis": 1.0})
    assert number_attributes({"scale": 0.0}) != number_attributes({"scale": -0.0})
    assert number_attributes({"pads": (1,) * 300}) is None


def test_numbers_of_mappings_that_nodes_share():
    numbers, attrs = AttributeNumbers(), {"axis": 1, "scale": 0.0}
    assert numbers(attrs) == numbers(attrs) == number_attributes(dict(attrs))
    assert numbers({"axis": 1, "scale": -0.0}) != numbers(attrs)
    assert numbers({"body": object()}) is None
    assert len({numbers({"axis": n}) for n in range(100)}) == 100  # none is freed and found again


def test_a_full_memo_starts_anew(monkeypatch):
    monkeypatch.setattr(memo, "MOST", 2)
    known: dict[int, int] = {}
    for number in range(5):
        assert memoize(known, number, lambda n=number: n + 1) == number + 1
    assert len(known) <= 2
