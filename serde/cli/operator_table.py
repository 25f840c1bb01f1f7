"""The operators each format converts, for ``serde ops`` and ``docs/reference/operators.md``."""

from __future__ import annotations

from collections.abc import Iterator

from serde.plugins import format_names, get_format
from serde.rewrite.rules import Rule, RuleTable


def _tables(name: str | None) -> Iterator[tuple[str, RuleTable]]:
    for each in [name] if name else format_names():
        for table in get_format(each).rule_tables():
            yield each, table


def restrictions(rule: Rule) -> str:
    """What a rule asks of attributes it takes only some values of."""
    parts = []
    for name, allowed in sorted(rule.only.items()):
        parts.append(f"{name}: {', '.join(map(str, allowed))}")
    return "; ".join(parts)


def as_lines(name: str | None = None) -> Iterator[str]:
    """One line an operator, for a terminal."""
    for _, table in _tables(name):
        yield f"{table.name}: {len(table.rules)} operators"
        for op, rule in sorted(table.rules.items()):
            limits = restrictions(rule)
            yield f"  {op}" + (f"  (only {limits})" if limits else "")


def as_markdown(name: str | None = None) -> Iterator[str]:
    """The tables of ``docs/reference/operators.md``."""
    yield "# Operators"
    yield ""
    yield "Made by `serde ops --markdown`; a test compares it with the rules."
    for _, table in _tables(name):
        yield ""
        yield f"## {table.name}: {len(table.rules)} operators"
        yield ""
        yield "| operator | attributes | only |"
        yield "|---|---|---|"
        for op, rule in sorted(table.rules.items()):
            attributes = ", ".join(f"`{a}`" for a in sorted(rule.attributes))
            yield f"| `{op}` | {attributes} | {restrictions(rule)} |"
