"""The list of functions that can be traced is that of the tables."""

from __future__ import annotations

from tests.frontends import make_table


def test_the_list_of_functions_is_that_of_the_tables():
    """Run ``python -m tests.frontends.make_table`` after a change of functions."""
    assert make_table.PAGE.read_text(encoding="utf-8") == make_table.as_page()
