"""Runs the commands and the code of a page of the documentation as they are printed.

Blocks of ``sh`` hold commands that succeed, blocks of ``console`` commands behind ``$`` with what
they print, all of it: ``…`` stands for anything within a line, on a line of its own for any lines.
``$ echo $?`` shows the exit code of a command that does not succeed. Blocks of ``python`` share
their names; one that imports TVM runs in the environment that has Relax. What such a block prints
is in a block of ``text`` right behind it. A comment above a block says otherwise: ``<!-- saved as
FILE -->``, or ``<!-- not run: REASON -->``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from serde.cli.commands import main

FENCE = re.compile(
    r"^(?:<!-- (?P<mark>.*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = "serde "
RUN = {"sh", "console", "python"}  # the languages of blocks that are run


@dataclass
class Block:
    """A block of a page, with what its comment says, and whether it stands right behind another."""

    language: str
    text: str
    mark: str = ""
    is_next: bool = False

    @property
    def saved_as(self) -> str:
        """The file that the block is saved as, or nothing."""
        return self.mark.partition("saved as ")[2]

    @property
    def is_left_out(self) -> bool:
        """Whether a comment tells why the block is not run."""
        return self.mark.startswith("not run: ")


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    text, blocks, end = page.read_text(), [], 0
    for m in FENCE.finditer(text):
        is_next = bool(blocks) and not text[end : m.start()].strip()
        blocks.append(Block(m["language"], m["text"], m["mark"] or "", is_next))
        end = m.end()
    return blocks


def run_page(page: Path) -> None:
    """Run all blocks in order."""
    scope: dict[str, Any] = {"__name__": page.stem}
    blocks = blocks_of(page)
    assert {block.language for block in blocks} & RUN
    try:
        _run_blocks(blocks, scope)
    finally:
        scope.clear()  # functions refer to it: files that the code left open are closed now


def _run_blocks(blocks: list[Block], scope: dict[str, Any]) -> None:
    for block, following in zip(blocks, [*blocks[1:], Block("", "")], strict=True):
        if block.saved_as:
            Path(block.saved_as).write_text(block.text)
        elif block.language == "python" and not block.is_left_out:
            printed = _run_code(block.text, scope)
            is_shown = following.is_next and following.language == "text" and not following.mark
            compare_output(following.text.splitlines() if is_shown else [], printed, block.text)
        elif block.language == "sh" and not block.is_left_out:
            for line in block.text.splitlines():
                code, output = _run_command(line.partition("  #")[0])
                assert code == 0, (line, output)
        elif block.language == "console":
            for command, shown, code in _sessions(block.text):
                status, output = _run_command(command)
                assert status == code, (command, status, output)
                compare_output(shown, output, command)


def _run_code(block: str, scope: dict[str, Any]) -> str:
    """What the code prints."""
    if not re.search(r"^(import|from) tvm", block, re.MULTILINE):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(block, scope)
        return printed.getvalue()
    if not (folder := os.environ.get("SERDE_RELAX")):
        pytest.skip("no TVM with Relax")
    command = [Path(folder) / "v/bin/python", "-c", block]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


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


def compare_output(shown: list[str], output: str, command: str) -> None:
    """The output is what is shown of it, line by line."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in shown
    )
    printed = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
    assert re.fullmatch(pattern, printed), f"{command}\nprints\n{printed}"


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
