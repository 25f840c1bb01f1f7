"""The two rule tables; attributes are what JSON has, and subgraphs."""

from __future__ import annotations

from typing import Any

from serde.errors import ConversionError
from serde.ir.geometry import Ints
from serde.rewrite.rules import RuleTable
from serde.spec import schema

READERS = {Ints: lambda raw: tuple(map(int, raw)), int: int, float: float}


def parse(kind: Any, raw: Any) -> Any:
    """An attribute as the type its rule declares."""
    try:
        return READERS[kind](raw)
    except (KeyError, TypeError, ValueError) as error:
        raise ConversionError(f"{raw!r} is of another type") from error


reads = RuleTable("slate → ir", parse=parse)
writes = RuleTable("ir → slate", defaults=schema.defaults_of)
