"""How outcomes are written, read and compared."""

from __future__ import annotations

import json

import pytest

from conformance import record
from conformance.record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome, differences

OPSETS = ("7", "8", "9", "10", "11")
GOOD, BAD, NO = Outcome(RIGHT), Outcome(WRONG, "off by 1"), Outcome(REFUSED, "Foo: no rule")


def outcomes(text: str) -> dict[str, Outcome]:
    kinds = {"+": GOOD, "-": NO, "!": BAD}
    return {v: kinds[c] for v, c in zip(OPSETS, text, strict=False) if c != " "}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("+++++", "right"),
        ("-----", "refused: Foo: no rule"),
        ("--+++", {"refused: Foo: no rule": "7-8", "right": "9-11"}),
        ("+-+!+", {"right": "7, 9, 11", "refused: Foo: no rule": "8", "wrong: off by 1": "10"}),
        ("+++", {"right": "7-9"}),
    ],
)
def test_outcomes_are_written_and_read(text, written, tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    cases = {"test_b": outcomes(text), "test_a": outcomes("+++++")}
    record.write("source/target", {case: record.pack(of, OPSETS) for case, of in cases.items()})
    held = record.path_of("source/target").read_text()
    assert json.loads(held) == {"test_a": "right", "test_b": written}
    assert len(held.splitlines()) == 4 and list(json.loads(held)) == ["test_a", "test_b"]
    rows = record.rows("source/target")
    assert {case: record.unpack(row, OPSETS) for case, row in rows.items()} == cases


@pytest.mark.parametrize(
    ("before", "after", "is_worse"),
    [(GOOD, NO, True), (GOOD, BAD, True), (NO, BAD, True), (NO, GOOD, False), (BAD, NO, False),
     (GOOD, Outcome(NOT_RUN, "no kernel"), True), (NO, Outcome(REFUSED, "why"), False)],
)  # fmt: skip
def test_what_is_worse(before, after, is_worse):
    (difference,) = differences({"a": {"7": before}}, {"a": {"7": after}})
    assert difference.is_worse is is_worse
    assert str(difference).startswith("worse: a [7]: " if is_worse else "other: a [7]: ")


def test_cases_of_one_side_are_no_difference():
    one, other = {"a": {"7": GOOD}}, {"b": {"7": BAD}, "a": {"8": BAD}}
    assert not list(differences(one, other)) and not list(differences(one, one))


def test_reasons_are_one_line_of_limited_length():
    assert Outcome.of(WRONG, "a\n  b") == Outcome(WRONG, "a b")
    assert len(Outcome.of(WRONG, "x" * 1000).reason) == record.LONGEST


def test_counts():
    assert record.counts({"a": outcomes("+-!+"), "b": outcomes("+")}) == {
        RIGHT: 3, REFUSED: 1, NOT_RUN: 0, WRONG: 1
    }  # fmt: skip
