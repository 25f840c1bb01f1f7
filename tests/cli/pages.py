"""Runs the commands and the code of a page of the documentation as they are printed.

Blocks of ``sh`` hold commands that succeed, blocks of ``console`` commands behind ``$`` with what
they print, in part: ``…`` stands for anything, and ``$ echo $?`` shows the exit code of a command
that does not succeed. Blocks of ``python`` share their names; one that imports TVM runs in the
environment that has Relax. Other blocks are not run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from serde.cli.commands import main

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = "serde "


def run_page(page: Path) -> None:
    """Run all blocks in order."""
    scope: dict[str, Any] = {}
    blocks = FENCE.findall(page.read_text())
    assert {language for language, _ in blocks} & {"sh", "console", "python"}
    for language, block in blocks:
        if language == "python":
            _run_code(block, scope)
        elif language == "sh":
            for line in block.splitlines():
                code, output = _run_command(line.partition("  #")[0])
                assert code == 0, (line, output)
        elif language == "console":
            for command, shown, code in _sessions(block):
                status, output = _run_command(command)
                assert status == code, (command, status, output)
                _compare(shown, output, command)


def _run_code(block: str, scope: dict[str, Any]) -> None:
    if not re.search(r"^(import|from) tvm", block, re.MULTILINE):
        exec(block, scope)
    elif folder := os.environ.get("SERDE_RELAX"):
        python = Path(folder) / "v/bin/python"
        done = subprocess.run([python, "-c", block], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def _run_command(line: str) -> tuple[int, str]:
    """The exit code and the output of a command of serde, with its redirections."""
    assert line.startswith(COMMAND), line
    words = shlex.split(line.replace("$PWD", os.getcwd()))[1:]
    files = {mark: words.pop(words.index(mark) + 1) for mark in "<>" if mark in words}
    given = Path(files["<"]).read_bytes() if "<" in files else None
    result = CliRunner().invoke(main, [w for w in words if w not in files], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if ">" in files:
        Path(files[">"]).write_bytes(result.stdout_bytes)
    return result.exit_code, result.output


def _sessions(block: str) -> Iterator[tuple[str, list[str], int]]:
    """The commands of a console, what is shown of their output, and their exit codes."""
    sessions = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        if command == "echo $?":
            sessions[-1][2] = int(shown[0])
        else:
            sessions.append([command, shown, 0])
    return (tuple(s) for s in sessions)


def _compare(shown: list[str], output: str, command: str) -> None:
    """Every line that is shown is in the output, in order."""
    lines = iter(output.splitlines())
    for line in shown:
        pattern = ".*".join(map(re.escape, line.split("…")))
        if line.strip() == "…":
            continue
        assert any(re.fullmatch(pattern, actual) for actual in lines), (command, line, output)


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
