"""A process that has one model loaded, and runs it when it is told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from serde.errors import MissingDependency, SerdeError, UsageError
from serde.io.child_process import child_environment, describe_crash

THREADS = ("OMP_NUM_THREADS", "TVM_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
KINDS = {k.__name__: k for k in (MissingDependency, UsageError)}
START = "import sys; sys.path.append(sys.argv[1]); from serde.api.bench import child; child.main()"


class ModelProcess:
    """A model in a process of its own. ``least_seconds`` are those of its fastest first run."""

    def __init__(self, model: str, params: str | None, feeds: str, threads: int) -> None:
        self.model = model
        folder = str(Path(__file__).resolve().parents[3])  # where this very package is
        count = {name: str(threads) for name in THREADS}
        self._child = subprocess.Popen(
            [sys.executable, "-c", START, folder], env=child_environment(**count), text=True,
            encoding="utf-8", errors="replace", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        order = {"model": model, "params": params, "feeds": feeds, "threads": threads,
                 "parent": os.getpid()}  # fmt: skip
        try:
            answer = self._ask(order)
        except BaseException:
            self.close()
            raise
        self.runtime: str = answer["runtime"]
        self.load_seconds: float = answer["load_seconds"]
        self.least_seconds: float = answer["least_seconds"]

    def __enter__(self) -> ModelProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.communicate()

    def run(self, times: int) -> tuple[float, float]:
        """The seconds of one run, of so many, by the clock and by the processor."""
        clock, processor = self._ask({"run": times})["seconds"]
        return clock, processor

    def measure_memory(self) -> int:
        """The bytes that the process had at most."""
        return int(self._ask({"memory": True})["memory"])

    def _ask(self, order: Any) -> dict[str, Any]:
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps(order) + "\n")
            self._child.stdin.flush()
            line = self._child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SerdeError(f"{self.model}: {self._describe_end()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            error = answer["error"]
            shown = error if self.model in error else f"{self.model}: {error}"
            raise KINDS.get(answer["kind"], SerdeError)(shown)
        return answer

    def _describe_end(self) -> str:
        _, errors = self._child.communicate()
        code = self._child.returncode
        if code < 0:
            return f"the process that ran it ended with {describe_crash(code)}"
        lines = errors.strip().splitlines()
        return lines[-1] if lines else f"the process that ran it ended with exit code {code}"
