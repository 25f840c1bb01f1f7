"""Every reading rule has a case, and every other name of its operator reads the same."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from serde.formats.mxnet.bind.op_names import FIRST_ALIASES
from serde.formats.mxnet.rules import reads
from testing.mxnet.cases import Case, check

TABLES = [
    getattr(import_module(f"tests.mxnet.{folder}.{path.stem}"), "CASES", ())
    for folder in ("ops", "releases")
    for path in sorted((Path(__file__).parents[1] / folder).glob("test_*.py"))
    if path.stem != Path(__file__).stem
]
FIRST = {c.op: c for table in reversed(TABLES) for c in reversed(table) if isinstance(c, Case)}
OTHERS = {other: name for other, name in FIRST_ALIASES.items() if name in FIRST}


def test_every_rule_has_a_case() -> None:
    assert not sorted(set(reads.rules) - set(FIRST))


@pytest.mark.parametrize("alias", OTHERS)
def test_alias(alias: str) -> None:
    check(FIRST[OTHERS[alias]].but(op=alias))
