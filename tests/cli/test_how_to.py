"""The commands and the code of the how-to pages for users run as they are printed."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from tests.mxnet_live import live_mxnet

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ["compare-two-models", "migrate-many-models", "read-a-report"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs(name, tmp_path, monkeypatch):
    live_mxnet()
    digits = tmp_path / "examples" / "digits"
    digits.mkdir(parents=True)
    for file in ("digits-symbol.json", "digits-0010.params"):
        shutil.copy(ROOT / "examples" / "digits" / file, digits)
    monkeypatch.chdir(tmp_path)
    blocks = FENCE.findall((ROOT / "docs" / "how-to" / f"{name}.md").read_text())
    assert {language for language, _ in blocks} >= {"sh"}
    for language, block in blocks:
        if language == "python":
            exec(block, {})
        for line in block.splitlines() if language == "sh" else ():
            assert line.startswith("serde ")
            found = CliRunner().invoke(main, shlex.split(line)[1:])
            assert found.exit_code == 0, found.output
