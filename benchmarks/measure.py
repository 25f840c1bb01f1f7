"""Run commands and read what they cost; keep the tables of docs/results/benchmarks.md.

The process that measures stays small: a child's peak memory cannot be told below its parent's.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "results" / "benchmarks.md"
INTRODUCTION = """# Benchmarks

Each section is written by `python -m benchmarks.convert`, `benchmarks.against`,
`benchmarks.latency` or `benchmarks.shape_inference`, run from the checkout; `--help` lists the
parts of the first three.
"""
PACKAGES = ("numpy", "onnx", "protobuf", "onnxruntime", "mxnet")
BLOCK = 1 << 20
BUSY = 2.0  # the load of the last quarter of an hour, above what one measurement makes itself


@dataclass(frozen=True)
class Cost:
    """Wall and processor seconds, peak resident memory in MB (2**20 bytes), what was printed."""

    seconds: float
    processor: float
    memory: float
    printed: str = ""


class Failed(Exception):
    """A measured command did not succeed; the message is the end of what it said."""


def run(*command: str | Path) -> Cost:
    """Run a command in the checkout and wait for it."""
    with tempfile.TemporaryFile() as stderr:
        start = time.perf_counter()
        child = subprocess.Popen(
            [str(c) for c in command], stdout=subprocess.PIPE, stderr=stderr, cwd=ROOT
        )
        assert child.stdout is not None
        with child.stdout:
            printed = child.stdout.read().decode()
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            stderr.seek(0)
            raise Failed(stderr.read().decode(errors="replace")[-2000:] or str(child.returncode))
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, printed)


def python(*arguments: str | Path) -> Cost:
    """Run this Python."""
    return run(sys.executable, *arguments)


def serde(*arguments: str | Path) -> Cost:
    """Run the ``serde`` command."""
    return python("-c", "from serde.cli.commands import main; main()", *arguments)


def best(costs: Sequence[Cost]) -> Cost:
    """The least times and the largest memory of several runs of one command."""
    return Cost(
        min(c.seconds for c in costs),
        min(c.processor for c in costs),
        max(c.memory for c in costs),
        costs[-1].printed,
    )


def interleave(ways: Mapping[str, Callable[[], Cost]], repeats: int) -> dict[str, Cost]:
    """Run several ways of doing one thing in turn; the best of each.

    What earlier runs wrote is on the disk before the next begins.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            os.sync()
            costs[name].append(way())
    return {name: best(runs) for name, runs in costs.items()}


def into_cache(*paths: Path) -> None:
    """Read files once, so that all runs find them in the page cache."""
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.read(BLOCK):
                pass


def remove(*paths: Path) -> None:
    """Delete files that may be there."""
    for path in paths:
        path.unlink(missing_ok=True)


@contextmanager
def workplace(parent: str | None) -> Iterator[Path]:
    """A folder of its own for models and compiled Python, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="serde-benchmarks-", dir=parent))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and the folder goes
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table; all columns but the first are aligned to the right."""
    lines = [head, ["---", *("--:" for _ in head[1:])], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def publish(title: str, text: str) -> None:
    """Put a section into the document, in place of the one of its title, and print it."""
    section = f"## {title}\n\n{text.strip()}\n\n{machine()}\n"
    print(section, flush=True)
    old = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else INTRODUCTION
    head, *sections = old.split("\n## ")
    titled = {s.partition("\n")[0]: f"## {s.strip()}\n" for s in sections}
    titled[title] = section
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text("\n".join([head.rstrip() + "\n", *titled.values()]), encoding="utf-8")


def machine() -> str:
    """What the figures were measured on."""
    versions = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    system = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    load = os.getloadavg()[2] if hasattr(os, "getloadavg") else 0.0
    busy = f" Others kept the machine busy: load {load:.0f}." if load > BUSY else ""
    return f"*{system}, {', '.join(versions)}.{busy}*"
