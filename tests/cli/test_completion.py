"""``serde completion``: the script for each shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import show_command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_and_installed(tmp_path, monkeypatch, shell):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    code, script = show_command("completion", shell)
    assert code == 0 and "_SERDE_COMPLETE" in script
    code, out = show_command("completion", shell, "--install")
    (place,) = (p for p in tmp_path.rglob("*") if p.is_file())
    assert code == 0 and str(place) in out and place.read_text().strip() == script.strip()


def test_bash_completes_commands_and_options(tmp_path):
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    words = {"COMP_WORDS": "serde conv", "COMP_CWORD": "1", "_SERDE_COMPLETE": "bash_complete"}
    command = [sys.executable, "-c", "from serde.cli.commands import main; main(prog_name='serde')"]
    proc = subprocess.run(
        command, env={**os.environ, **words}, capture_output=True, text=True, check=False
    )
    assert proc.stdout.split() == ["plain,convert"]
