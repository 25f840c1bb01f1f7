"""Every network of MXNet's model libraries, converted and run, beside MXNet's own exporter to ONNX.

``python -m conformance.zoo FOLDER`` installs the libraries into a folder of their own, which
``SERDE_ZOO`` names; MXNet itself is found where serde is. Each network is built with random
weights, exported, converted and run in a process of its own, with limits of time and memory.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from conformance.matrix import Cell
from conformance.record import WRONG, Outcome

ROOT = Path(__file__).parents[2]
SECONDS, MEMORY = 600, 8000 << 20  # that a network may take
Row = dict[str, Any]


def has_packages() -> bool:
    """Whether the libraries are here; makes them importable."""
    folder = os.environ.get("SERDE_ZOO")
    if folder is not None and folder not in sys.path:
        sys.path.append(folder)
    return folder is not None


class Zoo(Cell):
    """The networks of one library: nodes and error of each conversion, or why there are none."""

    seconds = 3 * SECONDS

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.library, _, self.target = name.partition("/")

    def cases(self) -> list[str]:
        module = import_module(f"conformance.zoo.{self.library}") if has_packages() else None
        return module.names() if module is not None else []

    def run(self, case: str) -> Row:
        return examine(self.library, case, self.target)

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        from .page import judge_kernels, verdict

        if "errors" in row:
            return judge_kernels(row)
        kind, _, why = verdict(row).partition(": ")
        return {"": Outcome.of(WRONG if kind == "failed" else kind, why)}

    def make_failed_row(self, why: str) -> Row:
        return {"stopped": why}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return rows or before  # the libraries need not be here


def examine(library: str, name: str, target: str) -> Row:
    """What a process of its own found of one network, or how it ended.

    What MXNet cannot run with oneDNN, it is asked to run without.
    """
    row = run_once(library, name, target)
    if "IsDefaultData" in row.get("stopped", ""):
        row = run_once(library, name, target, {"MXNET_MKLDNN_ENABLED": "0"})
    return row


def run_once(library: str, name: str, target: str, settings: Mapping[str, str] = {}) -> Row:
    """One attempt."""
    start = time.perf_counter()
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), os.environ["SERDE_ZOO"])))
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-m", "conformance.zoo.compare", library, name, folder, target)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, cwd=ROOT, check=False,
                preexec_fn=limit_memory, env={**os.environ, "PYTHONPATH": path, **settings},
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            return salvage(late.stdout, f"after {SECONDS} s")
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return salvage(done.stdout, lines[-1][:300])
    return {**json.loads(done.stdout.splitlines()[-1]), "seconds": time.perf_counter() - start}


def salvage(printed: bytes | str | None, how: str) -> Row:
    """What a process found before it ended like this: in MXNet's exporter, if it got so far."""
    text = printed.decode() if isinstance(printed, bytes) else printed or ""
    results = [line for line in text.splitlines() if line.startswith("{")]
    return {**json.loads(results[-1]), "theirs": {"failed": how}} if results else {"stopped": how}


def limit_memory() -> None:
    """Bound the memory of a process before it begins."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY,) * 2)
