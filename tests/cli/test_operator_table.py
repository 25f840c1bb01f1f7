"""The operators that formats convert, as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from serde.cli.operator_table import as_lines, as_markdown, restrictions
from serde.plugins import format_names, get_format
from serde.rewrite.rule import Rule

ROOT = Path(__file__).resolve().parents[2]

DOCS = ROOT / "docs"


def test_the_list_of_operators_is_what_the_program_prints():
    """Run ``serde ops --markdown > docs/reference/operators.md`` after a change of rules."""
    printed = "".join(f"{line}\n" for line in as_markdown())
    assert (DOCS / "reference" / "operators.md").read_text() == printed


def make_rule(**only):
    def read_any(g, x, *, b: int = 0, a: int = 0):
        return x

    return Rule.of(read_any, only=only)


@pytest.mark.parametrize(("only", "text"), [
    ({}, ""), ({"a": (1,)}, "a: 1"), ({"b": ("x", "y"), "a": (0, 2)}, "a: 0, 2; b: x, y"),
])  # fmt: skip
def test_values_that_alone_are_taken_are_listed_by_attribute(only, text):
    assert restrictions(make_rule(**only)) == text


@pytest.mark.parametrize("name", format_names())
def test_a_format_has_a_table_for_each_direction(name):
    tables = get_format(name).rule_tables()
    lines = [*as_lines(name)]
    titles = [line for line in lines if not line.startswith(" ")]
    assert titles == [f"{t.name}: {len(t.rules)} operators" for t in tables]
    assert len(lines) == sum(len(t.rules) + 1 for t in tables)
    assert [line[3:] for line in as_markdown(name) if line.startswith("## ")] == titles
