"""Sweeps over random changes, in a process of their own that begins anew behind what ends it."""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SECONDS = 20  # that a change may take
PATIENCE = 40  # seconds after which a process that a framework holds up is ended
BAD = ("wrong", "error", "slow")
PAGE = Path(__file__).parents[2] / "docs" / "results" / "mutations.md"
INTRODUCTION = """# Operators changed at random

Written by `python -m conformance.mutations.mxnet --docs`, `relay_mutations` and `onnx_mutations`,
the row of each by its last run. The cases of the reading rules, and ONNX's node tests, are given
other numbers, shapes, element types and attributes. What the framework itself does not take is not
counted; else its results are the truth. *No judge* are those where it reads what is not there,
leaves memory unwritten or sorts equals by chance, and those where onnx.reference sides with serde
against ONNX Runtime. What *differs* was looked at one by one: it is what no model means (sizes that
do not fit, indices outside, bounds below 0), which serde hands on and the framework makes something
of.

| sweep | right | refused by name | no judge | differs |
|---|---:|---:|---:|---:|
"""
INTEGERS = (-3, -2, -1, 0, 1, 2, 3, 4, 7)
FLOATS = (-2.0, -1.0, -0.5, 0.0, 1e-3, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0)
SIZES = (1, 1, 2, 3, 4, 5, 7)
Array = np.ndarray[Any, Any]


class TooLong(BaseException):
    """A change takes too long: no error of a framework, which a sweep takes for an answer."""


def renewed(x: Array, rng: random.Random) -> Array:
    """Other numbers in the range of those there are: floats with equals and halves among them."""
    generator = np.random.default_rng(rng.randrange(2**32))
    if x.dtype.kind not in "fiub" or not x.size or x.dtype == bool:
        return generator.integers(0, 2, x.shape).astype(x.dtype) if x.dtype == bool else x
    low, high = float(np.min(x)), float(np.max(x))
    if not (np.isfinite(low) and np.isfinite(high)) or high - low > 2**62:
        return x
    if x.dtype.kind != "f" or (x == np.round(x)).all():
        return generator.integers(int(low), int(high) + 1, x.shape).astype(x.dtype)
    y = generator.uniform(low, high, x.shape)
    return (np.round(y * 4) / 4 if rng.random() < 0.3 and low < 0 < high else y).astype(x.dtype)


def other_sizes(shape: tuple[int, ...], rng: random.Random) -> list[int]:
    """Another shape: of the same rank, or of any."""
    if rng.random() < 0.4:
        return [rng.choice(SIZES) for _ in range(rng.randrange(0, 6))]
    return [rng.choice(SIZES) if rng.random() < 0.5 else n for n in shape]


def reshaped(x: Array, shape: list[int]) -> Array:
    """The elements in another shape, repeated or cut off."""
    return np.resize(x, shape) if x.size else np.zeros(shape, x.dtype)


def sweep(
    title: str, parser: argparse.ArgumentParser,
    everything: Callable[[argparse.Namespace], Iterator[tuple[str, Any]]],
    outcome: Callable[[Any, argparse.Namespace], tuple[str, str]],
) -> int:  # fmt: skip
    """Run all changes that ``everything`` gives with a name, and print what is not as it should be.

    ``outcome`` tells what becomes of one, and why; ``title`` is that of the row on the page.
    """
    module = f"conformance.mutations.{Path(sys.argv[0]).stem}"
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=3, help="changes of each (3)")
    parser.add_argument("--docs", action="store_true", help="write the page as well")
    parser.add_argument("--inside", metavar="BEHIND", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside is not None:
        inside(given, everything, outcome)
        return 0
    counts: Counter[str] = Counter()
    behind, ended = "", False
    while not ended:
        call = [sys.executable, "-m", module, f"--inside={behind}", *sys.argv[1:]]
        with tempfile.TemporaryFile("w+") as out:
            run = subprocess.run(call, stdout=out, stderr=subprocess.DEVNULL, check=False)
            out.seek(0)
            for line in filter(lambda text: text.startswith('["'), out):
                kind, behind, *told = json.loads(line)
                if kind == "begin":
                    continue
                counts[kind] += 1
                if kind in BAD:
                    print(kind, behind, *told, sep="\n  ", flush=True)
        ended = run.returncode == 0
        counts["ended"] += not ended
    print(dict(counts))
    if given.docs:
        write_row(f"{title} {getattr(given, 'to', '')}".strip(), counts)
    return 1 if any(counts[kind] for kind in BAD) else 0


def write_row(title: str, counts: Counter[str]) -> None:
    """Put a sweep's row onto the page, in place of the one of its title."""
    old = PAGE.read_text().splitlines() if PAGE.exists() else []
    rows = {line.split("|")[1].strip(): line for line in old if line.startswith("| ")}
    rows.pop("sweep", None)
    judged = {"right", "refused", "rejected", "ended", *BAD}
    unjudged = sum(count for kind, count in counts.items() if kind not in judged)
    bad = sum(counts[kind] for kind in BAD)
    rows[title] = f"| {title} | {counts['right']:,} | {counts['refused']:,} | {unjudged} | {bad} |"
    PAGE.write_text(INTRODUCTION + "".join(f"{row}\n" for row in sorted(rows.values())))


def inside(given: argparse.Namespace, everything: Any, outcome: Any) -> None:
    """Print the outcome of each change behind one, which may end the process."""

    def stop(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    waiting = bool(given.inside)
    for name, change in everything(given):
        if waiting:
            waiting = name != given.inside
            continue
        print(json.dumps(["begin", name]), flush=True)
        signal.alarm(SECONDS)
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            kind, why = outcome(change, given)
        except TooLong:
            kind, why = "slow", f"takes more than {SECONDS} s"
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps([kind, name, str(change), why[:3000]]), flush=True)
