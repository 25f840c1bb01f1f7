"""What a new user does first: the README pasted line by line, with the files that are there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_docs import DOCS, PAGES, ROOT, blocks, by_name

README = ROOT / "README.md"


@pytest.fixture
def checkout(tmp_path):
    """What "Try it" leaves behind: examples, one of them converted, and an environment."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "examples" / "digits" / "digits.onnx").write_bytes(b"of the first command")
    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "activate").write_text(f'PATH="{Path(sys.executable).parent}:$PATH"\n')
    return tmp_path


def paste(folder, *command, text):
    """Give a block to a program that reads its standard input."""
    done = subprocess.run(command, input=text, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_works_as_pasted(checkout):
    first, _, commands = blocks(README, "sh")
    assert ".venv" in first and "pip install" in first
    names = re.findall(r"^serde (\S+)", commands, re.MULTILINE)
    assert {"view", "check", "convert", "migrate"} <= {*names}
    printed = paste(checkout, "sh", "-e", text=commands)
    assert ": pass\n" in printed and "everything converts to onnx" in printed
    for path in re.findall(r"(?:-o|--report) (\S+)", commands):
        assert (checkout / path).exists(), path
    (code,) = blocks(README, "python")
    assert paste(checkout, sys.executable, "-", text=code) == blocks(README, "text")[-1]


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_installation_is_named_in_one_way(page):
    """From a checkout, ``pip install '.[EXTRA]'``: nothing is on a package index yet."""
    text = page.read_text()
    if page == DOCS / "packaging.md":
        assert "pip install 'serde-hub[verify]'" in text
        return
    own = re.findall(r"pip install[^`\n&]*(?:serde|\.\[|-e|'\.|\. )[^`\n&]*", text)
    wrong = [c for c in own if not re.search(r"pip install (?:-q )?'\.\[[a-z,]+\]'", c)]
    assert wrong == [] or page.name == "changelog.md"
