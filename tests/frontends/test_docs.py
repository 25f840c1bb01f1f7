"""The pages on tracing: their code runs, and the list of functions is that of the tables."""

from __future__ import annotations

import re

import pytest

from tests.frontends import make_table

DOCS = make_table.PAGE.parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = [
    (page, block)
    for page in ("trace-python-code", "join-models")
    for block in BLOCK.findall((DOCS / "how-to" / f"{page}.md").read_text())
]


@pytest.mark.parametrize(("page", "block"), CODE)
def test_the_code_of_the_pages_runs(page, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(block, {"__name__": page})


def test_the_list_of_functions_is_that_of_the_tables():
    """Run ``python -m tests.frontends.make_table`` after a change of functions."""
    assert make_table.PAGE.read_text(encoding="utf-8") == make_table.as_page()
