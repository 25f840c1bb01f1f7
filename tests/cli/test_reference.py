"""The tables of the page about the command line."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from serde.cli.commands import main
from serde.cli.reference import options_of, with_tables

ROOT = Path(__file__).resolve().parents[2]

DOCS = ROOT / "docs"


TEXT = (DOCS / "reference" / "cli.md").read_text()


def test_its_tables_are_those_of_the_program():
    """Run ``python -m serde.cli.reference docs/reference/cli.md`` after a change of options."""
    assert with_tables(TEXT) == TEXT


@pytest.mark.parametrize("name", sorted(main.commands))
def test_there_is_a_section_and_a_table_for_every_command(name):
    assert re.search(rf"^## serde {name}\b", TEXT, re.MULTILINE)
    assert f"<!-- options of {name} -->" in TEXT or not options_of(name)


def test_every_option_is_in_a_table():
    own = {o for name in main.commands for p in options_of(name) for o in p.opts}
    rows = re.findall(r"^\| (`-[^|]*) \|", TEXT, re.MULTILINE)
    assert {o for row in rows for o in re.findall(r"(--?[a-z][a-z0-9-]*)", row)} == own


def test_every_option_has_a_help_text():
    for each in main.commands.values():
        assert each.help
        assert all(p.help for p in each.params if isinstance(p, click.Option))
