"""Convert every network of MXNet's model libraries, and write docs/results/zoo.md.

    python -m conformance.zoo --setup FOLDER
    python -m conformance.zoo --packages FOLDER gluoncv [--again] [NETWORK …]

``--setup`` installs the libraries into a folder of their own; MXNet itself is found where serde is.
Each network is built with random weights, exported, converted and run in a process of its own,
one at a time, with limits of time and memory. What is known is kept in results/zoo.json, so that
an interrupted run goes on where it stopped; ``--again`` forgets the named networks first, or all
that are not right.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from conformance.zoo.page import PAGE, page, verdict

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "conformance" / "results" / "zoo.json"
LIBRARIES = ("gluoncv", "gluonnlp", "gluonts")
PACKAGES = (  # what the libraries import as well, in versions that go with them
    "gluoncv==0.10.5 yacs autocfg tqdm portalocker pillow pyyaml opencv-python-headless "
    "gluonnlp==0.10.0 gluonts==0.9.9 pydantic<2 toolz pandas tzdata holidays ujson "
    "python-dateutil pytz six"
).split()
MIB = 1 << 20
Row = dict[str, Any]


def setup(folder: str) -> int:
    """Install the libraries without what they say they need: they ask for an old NumPy.

    GluonTS 0.9 says so in a way that pip 24.1 and later do not read: an older one is put there.
    """
    into = ("-m", "pip", "install", "--target", folder)
    subprocess.run((sys.executable, *into, "pip<24.1"), check=True)
    command = (sys.executable, *into, "--no-deps", *PACKAGES)
    return subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": folder}).returncode


def examined(library: str, name: str, seconds: int, memory: int) -> Row:
    """What a process of its own found of one network, or how it ended.

    What MXNet cannot run with oneDNN, it is asked to run without.
    """
    row = tried(library, name, seconds, memory)
    if "IsDefaultData" in row.get("stopped", ""):
        row = tried(library, name, seconds, memory, {"MXNET_MKLDNN_ENABLED": "0"})
    return row


def tried(
    library: str, name: str, seconds: int, memory: int, settings: Mapping[str, str] = {}
) -> Row:
    """One attempt."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-m", "conformance.zoo.compare", library, name, folder)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False,
                preexec_fn=limited(memory), env={**os.environ, **settings},
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            return ended(late.stdout, f"after {seconds} s")
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return ended(done.stdout, lines[-1][:300])
    return {**json.loads(done.stdout.splitlines()[-1]), "seconds": time.perf_counter() - start}


def ended(printed: bytes | str | None, how: str) -> Row:
    """What a process found before it ended like this: in MXNet's exporter, if it got so far."""
    text = printed.decode() if isinstance(printed, bytes) else printed or ""
    results = [line for line in text.splitlines() if line.startswith("{")]
    return {**json.loads(results[-1]), "theirs": {"failed": how}} if results else {"stopped": how}


def limited(memory: int) -> Callable[[], None]:
    """What a process does before it begins: bound its memory."""
    return lambda: resource.setrlimit(resource.RLIMIT_DATA, (memory * MIB,) * 2)


def chosen(library: str, asked: list[str], known: Mapping[str, Row], again: bool) -> Iterator[str]:
    """The networks to examine now."""
    for name in asked or import_module(f"conformance.zoo.{library}").names():
        if name not in known or (again and (asked or verdict(known[name]) != "right")):
            yield name


def main() -> int:
    """Examine what is not known yet, and write the page after each network."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m conformance.zoo")
    parser.add_argument("library", nargs="?", choices=LIBRARIES)
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--setup", metavar="FOLDER", help="install the libraries there")
    parser.add_argument("--packages", metavar="FOLDER", help="where they were installed")
    parser.add_argument("--again", action="store_true", help="forget what is known")
    parser.add_argument("--seconds", type=int, default=600, help="the most a network takes (600)")
    parser.add_argument("--memory", type=int, default=8000, help="MiB a network may take (8000)")
    given = parser.parse_intermixed_args()
    if given.setup:
        return setup(given.setup)
    if given.packages:
        sys.path.append(given.packages)
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, (os.environ.get("PYTHONPATH"), os.path.abspath(given.packages)))
        )
    if given.library is None:
        PAGE.write_text(page(known()))
        return 0
    rows = known().get(given.library, {})
    for name in list(chosen(given.library, given.networks, rows, given.again)):
        row = examined(given.library, name, given.seconds, given.memory)
        keep(given.library, name, row)
        print(f"{name}: {verdict(row)}", flush=True)
    return 0


def known() -> dict[str, dict[str, Row]]:
    """What is kept, by library and network."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def keep(library: str, name: str, row: Row) -> None:
    """Enter what was found of one network, and write the page."""
    every = known()  # again: another run may have written
    every.setdefault(library, {})[name] = row
    written = KEPT.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps(every, indent=1, sort_keys=True) + "\n")
    written.replace(KEPT)
    PAGE.write_text(page(every))


if __name__ == "__main__":
    sys.exit(main())
