"""Processes of frameworks that live in environments of their own, asked over pipes by tests."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import tempfile
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MARK = "made-of"


class LiveError(Exception):
    """What the framework says of a request it cannot fulfil."""


class LiveWorker:
    """A process that ``script`` is, started when it is first asked, in the folder's environment.

    ``variable`` names the folder, which ``maker`` makes; ``obstacle`` says why this machine cannot
    have one, or nothing; ``environment`` gives the variables of a process in it.
    """

    def __init__(
        self, framework: str, variable: str, script: Path, maker: str,
        obstacle: Callable[[], str], environment: Callable[[Path], Mapping[str, str]],
        part: str = "",
    ) -> None:  # fmt: skip
        self.framework, self.variable, self.script = framework, variable, script
        self.maker, self.obstacle, self.environment = maker, obstacle, environment
        self.part = part
        self._process: subprocess.Popen[str] | str | None = None

    def start(self) -> subprocess.Popen[str] | str:
        """The process, or the reason there is none."""
        if self._process is None:
            self._process = self._start_process()
        return self._process

    def _start_process(self) -> subprocess.Popen[str] | str:
        place, none = os.environ.get(self.variable), f"no live {self.framework}"
        if os.environ.get("SERDE_WITHOUT_LIVE"):
            return f"{none}: SERDE_WITHOUT_LIVE is set"
        if not place and (why := self.obstacle()):
            return f"{none}: {why}"
        if not place:
            return f"{none}: {self.variable} names no folder made by {self.maker}"
        folder = Path(place) / self.part
        try:
            process = subprocess.Popen(
                [folder / "v/bin/python", self.script], env={**self.environment(folder)}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            return f"{none} in {folder}: {error}"
        assert process.stdout is not None
        atexit.register(_end, process)
        hello = process.stdout.readline()
        return process if hello else f"{none} in {folder}: it does not import"

    def ask(self, command: str, *arguments: Any) -> Any:
        """What the process answers; skips the running test, with the reason, without one."""
        worker = self.start()
        if isinstance(worker, str):
            pytest.skip(worker)
        assert worker.stdin is not None and worker.stdout is not None
        try:
            worker.stdin.write(json.dumps([command, *arguments]) + "\n")
            worker.stdin.flush()
            line = worker.stdout.readline()
        except BrokenPipeError:  # it ended after its last answer
            line = ""
        if not line:
            self._process = None  # the next question goes to another process
            code = worker.wait()
            how = f" by {signal.Signals(-code).name}" if code < 0 else ""
            raise LiveError(f"{self.framework} ended{how}")
        reply = json.loads(line)
        if "error" in reply:
            raise LiveError(reply["error"])
        return reply["value"]

    def run(
        self, what: Any, feeds: Mapping[str, np.ndarray], command: str = "run"
    ) -> list[np.ndarray]:
        """What its command ``run``, or another, computes of arrays by name."""
        with tempfile.TemporaryDirectory() as folder:
            inputs, outputs = f"{folder}/in.npz", f"{folder}/out.npz"
            np.savez(inputs, **feeds)
            self.ask(command, what, inputs, outputs)
            with np.load(outputs) as arrays:
                return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


def _end(process: subprocess.Popen[str]) -> None:
    """Let the worker end, as it does at the end of its input, and wait for it."""
    try:
        process.communicate(timeout=20)
    except (subprocess.TimeoutExpired, OSError, ValueError):
        process.kill()


def make(
    folder: Path, recipe: str, obstacle: Callable[[], str], set_up: Callable[[Path], None]
) -> str | None:
    """Make an environment unless it stands as the recipe says; what is in the way, if anything."""
    mark = folder / MARK
    if mark.is_file() and mark.read_text() == recipe:
        return None
    if why := obstacle():
        return why
    try:
        set_up(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{error}\n{getattr(error, 'stderr', '')}"
    mark.write_text(recipe)
    return None


def install(folder: Path, *requirements: list[str]) -> None:
    """Make the folder's Python environment, and install into it what each of the lists names."""
    venv.create(folder / "v", with_pip=True, clear=True)
    pip = [folder / "v/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for args in requirements:
        subprocess.run([*pip, *args], check=True, capture_output=True, text=True)
