"""ONNX's own node tests through serde into a live framework, beside that framework's own importer.

    python -m conformance.node_tests --target mxnet [--again] [--list] [WORD OF TEST NAMES …]

A target is a class: how serde's result of a model is run, and how the framework's own importer's
is. Both get each model one after the other, in processes of their own, as a framework may end one.
What is known is kept in results/node_tests_TARGET.json, so that an interrupted run goes on where
it stopped, and the page of the target under docs/ is written from it; ``--again`` forgets the tests
named by words, or all, first. ``--list`` only prints what becomes of the tests by serde.
"""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from conformance.node_target import NotRun, Target
from conformance.resuming import resume
from serde.errors import SerdeError, Unconvertible
from tests.node_cases import Case, all_cases, difference, frozen

ROOT = Path(__file__).parents[1]
TARGETS = {  # name: module and class
    "mxnet": ("conformance.node_tests_mxnet", "MXNet"),
    "relay": ("conformance.node_tests_relay", "Relay"),
    "relax": ("conformance.node_tests_relax", "Relax"),
}
KINDS = ("right", "refused", "not run", "wrong", "crashed")
PATIENCE = 120  # seconds for one test
HALF = 2e-3  # relative tolerance of float16: two units in the last place
SHOWN, KEPT = 100, 300  # letters of a reason, on the page and in the file
SIDES = ("ours", "theirs")
Outcome = Sequence[str]  # one of KINDS, and why


def target_of(name: str) -> Target:
    """The target called ``name``."""
    module, kind = TARGETS[name]
    return getattr(import_module(module), kind)()  # type: ignore[no-any-return]


def prepared(case: Case) -> Case:
    """The case as it is run: bounds, axes and sizes held as constants, as they are in models."""
    return frozen(case) or case


def outcome(target: Target, case: Case, which: str) -> tuple[str, str]:
    """What becomes of one test, and why."""
    held = {t.name for t in case.model.graph.initializer}
    names = [i.name for i in case.model.graph.input if i.name not in held]
    for feeds, wanted in case.data:
        if any(getattr(y, "dtype", None) == np.float16 for y in wanted):
            case = replace(case, rtol=max(case.rtol, HALF))
        try:
            got = getattr(target, which)(case.model, dict(zip(names, feeds, strict=True)))
        except NotRun as error:
            return "not run", str(error)
        except Exception as error:  # an importer that is not ours raises what it likes
            if which == "ours" and not isinstance(error, SerdeError):
                return "wrong", f"{type(error).__name__}: {_line(error)}"
            return "refused", _line(error)
        got = [target.comparable(a, b) for a, b in zip(wanted, got, strict=False)]
        if (how := difference(case, wanted, got)) is not None:
            return "wrong", how
    return "right", ""


def _line(error: Exception) -> str:
    if isinstance(error, Unconvertible):
        return "; ".join(f"{p.op}: {p.reason}" for p in error.problems)
    lines = [s.strip() for s in str(error).splitlines() if s.strip()]
    return lines[-1] if lines else type(error).__name__


def _work(name: str, which: str, pipe: Any) -> None:
    """Send the outcome of each test asked for; runs in a process of its own."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    target, cases = target_of(name), {c.name: c for c in all_cases()}
    while True:
        kind, why = outcome(target, prepared(cases[pipe.recv()]), which)
        pipe.send((kind, " ".join(why.split())[:KEPT]))


class Worker:
    """A process that runs tests on one side; a crash costs the test it comes in."""

    def __init__(self, name: str, which: str) -> None:
        self.work = (name, which)
        self.process: Any = None

    def outcome(self, test: str) -> Outcome:
        """What becomes of one test."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_work, args=(*self.work, theirs), daemon=True)
            self.process.start()
            theirs.close()
        try:
            self.pipe.send(test)
            if self.pipe.poll(PATIENCE):
                return self.pipe.recv()  # type: ignore[no-any-return]
        except (EOFError, ConnectionError):
            pass
        self.end()
        return "crashed", "the process ended, or did not answer"

    def end(self) -> None:
        """End the process; the next test gets another."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def page(target: Target, known: Mapping[str, Mapping[str, Outcome]]) -> Iterator[str]:
    """The lines of the target's page."""
    columns = {"ours": "serde", "theirs": target.importer}
    cases = [c for c in all_cases() if c.name in known]
    found = {w: [known[c.name][w] for c in cases] for w in SIDES}
    yield f"# ONNX's node tests in {target.title}\n"
    yield (
        f"Made by `python -m conformance.node_tests --target {target.name}`: the "
        f"{len(cases)} node tests of onnx {onnx.__version__}, converted and run. Small integer and "
        "scalar operands (bounds, axes, sizes) are constants, as they are in models. "
        f"{target.notes}\n"
    )
    yield "| | " + " | ".join(columns.values()) + " |"
    yield "|---|" + "---|" * len(columns)
    totals = {w: Counter(kind for kind, _ in found[w]) for w in columns}
    for kind in KINDS:
        yield f"| {kind} | " + " | ".join(str(totals[w][kind]) for w in columns) + " |"
    yield "\n## By operator\n"
    yield "Right, of how many; what else there is in words.\n"
    yield "| operator | " + " | ".join(columns.values()) + " |"
    yield "|---|" + "---|" * len(columns)
    families: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        families.setdefault(family(case), []).append(number)
    for op, numbers in sorted(families.items()):
        cells = (cell([found[w][n][0] for n in numbers]) for w in columns)
        yield f"| {op} | " + " | ".join(cells) + " |"
    yield "\n## Why serde refuses\n"
    yield "| tests | reason |\n|---|---|"
    reasons = Counter(why[:SHOWN] for kind, why in found["ours"] if kind != "right")
    for why, count in reasons.most_common():
        yield f"| {count} | {why.replace('|', '/')} |"
    yield ""


def family(case: Case) -> str:
    """The operator a test is about: the name up to the first words that are not one."""
    (*_, last) = sorted(case.ops or {"others"}, key=lambda op: (op.lower() in case.name, op))
    return last if len(case.ops) == 1 else case.name.removeprefix("test_").split("_")[0]


def cell(kinds: Sequence[str]) -> str:
    """``12 of 14, 1 wrong``."""
    counts = Counter(kinds)
    rest = (f", {counts[k]} {k}" for k in ("not run", "wrong", "crashed") if counts[k])
    return f"{counts['right']} of {len(kinds)}" + "".join(rest)


def main(arguments: list[str]) -> int:
    """Run the tests that are not known yet, or with ``--list`` print what becomes of some."""
    name = arguments[arguments.index("--target") + 1]
    words = [a for a in arguments if not a.startswith("--") and a != name]
    every = [c.name for c in all_cases()]
    chosen = [n for n in every if not words or any(w in n for w in words)]
    workers = {which: Worker(name, which) for which in SIDES}
    if "--list" in arguments:
        kinds = []
        for test in chosen:
            kind, why = workers["ours"].outcome(test)
            kinds.append(kind)
            print(f"{test}: {kind} {why}", flush=True)
        return 1 if "wrong" in kinds or "crashed" in kinds else 0
    target = target_of(name)
    resume(
        [*chosen, *(a for a in arguments if a == "--again")], every,
        ROOT / "conformance" / "results" / f"node_tests_{name}.json",
        ROOT / "docs" / "results" / f"node-tests-{name}.md",
        lambda test: {which: worker.outcome(test) for which, worker in workers.items()},
        lambda known: page(target, known),
        lambda found: " / ".join(found[which][0] for which in SIDES),
    )  # fmt: skip
    for worker in workers.values():
        worker.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
