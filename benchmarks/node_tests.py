"""ONNX's own node tests through serde into a live framework, beside that framework's own importer.

    python -m benchmarks.node_tests --target mxnet [--list] [WORD OF TEST NAMES …]

A target is a class: how serde's result of a model is run, and how the framework's own importer's
is. Both get the same models in the same run, in a process of their own, as a framework may end it.
Without words the page of the target under docs/ is written.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.node_target import NotRun, Target
from serde.errors import SerdeError, Unconvertible
from tests.node_cases import Case, all_cases, difference, frozen

DOCS = Path(__file__).parents[1] / "docs"
TARGETS = {  # name: module and class
    "mxnet": ("benchmarks.node_tests_mxnet", "MXNet"),
    "relay": ("benchmarks.node_tests_relay", "Relay"),
}
KINDS = ("right", "refused", "not run", "wrong", "crashed")
PATIENCE = 120  # seconds for one test
HALF = 2e-3  # relative tolerance of float16: two units in the last place
SHOWN = 100  # letters of a reason
Outcome = tuple[str, str]


def target_of(name: str) -> Target:
    """The target called ``name``."""
    module, kind = TARGETS[name]
    return getattr(import_module(module), kind)()  # type: ignore[no-any-return]


def prepared(case: Case) -> Case:
    """The case as it is run: bounds, axes and sizes held as constants, as they are in models."""
    return frozen(case) or case


def outcome(target: Target, case: Case, which: str) -> Outcome:
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


def _work(name: str, which: str, numbers: Sequence[int], pipe: Any) -> None:
    """Send the outcome of each test; runs in a process of its own."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    target, cases = target_of(name), all_cases()
    for number in numbers:
        pipe.send(outcome(target, prepared(cases[number]), which))
    pipe.close()


def outcomes(name: str, which: str, numbers: Sequence[int]) -> Iterator[Outcome]:
    """The outcome of each of the numbered tests, in order; a crash costs the test it comes in."""
    context, left = multiprocessing.get_context("spawn"), list(numbers)
    while left:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(name, which, left, theirs))
        worker.start()
        theirs.close()
        try:
            while left:
                if not ours.poll(PATIENCE):
                    raise EOFError
                found = ours.recv()
                left.pop(0)
                yield found
        except EOFError:
            left.pop(0)
            yield "crashed", "the process ended, or did not answer"
        finally:
            worker.kill()
            worker.join()


def page(target: Target, cases: Sequence[Case], found: dict[str, list[Outcome]]) -> Iterator[str]:
    """The lines of the target's page."""
    columns = {"ours": "serde", "theirs": target.importer}
    yield f"# ONNX's node tests in {target.title}\n"
    yield (
        f"Made by `python -m benchmarks.node_tests --target {target.name}`: the "
        f"{len(cases)} node tests of onnx {onnx.__version__}, converted and run. Small integer and "
        "scalar operands (bounds, axes, sizes) are constants, as they are in models. Both columns "
        f"come from one run. {target.notes}\n"
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
    reasons = Counter(why for kind, why in found["ours"] if kind != "right")
    for why, count in reasons.most_common():
        yield f"| {count} | {' '.join(why.split())[:SHOWN].replace('|', '/')} |"
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
    """Run the tests; write the page, or with words print what becomes of those named so."""
    name = arguments[arguments.index("--target") + 1]
    words = [a for a in arguments if not a.startswith("--") and a != name]
    numbers = [n for n, c in enumerate(all_cases()) if not words or any(w in c.name for w in words)]
    cases = [all_cases()[n] for n in numbers]
    found = {w: list(outcomes(name, w, numbers)) for w in ("ours",) + ("theirs",) * (not words)}
    if words or "--list" in arguments:
        for case, (kind, why) in zip(cases, found["ours"], strict=True):
            print(f"{case.name}: {kind} {why}")
    print(json.dumps({w: Counter(kind for kind, _ in f) for w, f in found.items()}))
    if not words:
        lines = page(target_of(name), cases, found)
        (DOCS / f"node-tests-{name}.md").write_text("\n".join(lines))
    return 1 if any(kind in ("wrong", "crashed") for kind, _ in found["ours"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
