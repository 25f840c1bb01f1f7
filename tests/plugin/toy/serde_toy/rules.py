"""The two rule tables, and how attributes are spelled: as text."""

from __future__ import annotations

from typing import Any

from serde.rewrite.rules import RuleTable
from serde.spec import schema


def parse(kind: Any, raw: str) -> Any:
    """An attribute's text as the type its rule declares."""
    return kind(raw)


reads = RuleTable("toy → ir", parse=parse)
writes = RuleTable("ir → toy", defaults=schema.defaults_of)
