"""The pages on tracing: their code runs, and the list of functions is that of the tables."""

from __future__ import annotations

import re
import shlex
import shutil

import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from tests.frontends import make_table

DOCS = make_table.PAGE.parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = [
    (page, block)
    for page in ("trace-python-code", "join-models")
    for block in BLOCK.findall((DOCS / "how-to" / f"{page}.md").read_text())
]


@pytest.mark.parametrize(("page", "block"), CODE)
def test_the_code_of_the_pages_runs(page, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(block, {"__name__": page})


def test_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    shutil.copytree(DOCS.parent / "examples" / "digits", tmp_path / "examples" / "digits")
    monkeypatch.chdir(tmp_path)
    fences = FENCE.findall((DOCS / "tutorial" / "put-code-into-a-model.md").read_text())
    code = [block for language, block in fences if language == "python"]
    (tmp_path / "prepare.py").write_text(code[0])
    for language, block in fences:
        if language == "python":
            exec(block, {"__name__": "tutorial"})
        for line in block.splitlines() if language == "sh" else ():
            result = CliRunner().invoke(main, shlex.split(line)[1:])
            assert result.exit_code == 0, result.output
    printed = capsys.readouterr().out
    assert (
        "99% are right; sure of 35" in printed and "GatherND python getitem prepare.py:" in printed
    )


def test_the_list_of_functions_is_that_of_the_tables():
    """Run ``python -m tests.frontends.make_table`` after a change of functions."""
    assert make_table.PAGE.read_text(encoding="utf-8") == make_table.as_page()
