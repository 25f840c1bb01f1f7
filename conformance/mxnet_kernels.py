"""Where MXNet's oneDNN kernels and its plain ones disagree: all cases of its rules, by both.

    python -m conformance.mxnet_kernels [--each N] [--seed N] [OPERATOR …]

Writes mxnet-kernels.md; with operators, or random changes of each case, prints what differs.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import numpy as np

from serde.formats.mxnet.ops.output_layers import plain_kernels
from testing.mxnet.cases import Case, _error, _tolerance, live
from testing.mxnet.rewriting import every_case

from .mutations import Array
from .mutations.mxnet import REGISTRY, mutate
from .worker import Ended, Worker

PAGE = Path(__file__).parents[1] / "docs" / "results" / "mxnet-kernels.md"
OFF = {"MXNET_MKLDNN_ENABLED": "0"}
QUIET = {"MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0", "MXNET_SUBGRAPH_VERBOSE": "0"}
SAME, DIFFER, ONLY_ONEDNN, ONLY_PLAIN = "same", "differ", "only oneDNN", "only plain"
NEITHER, NOISE = "neither", "noise"
HEAD = "| what | operator | cases | why, or for example | followed |"
TITLES = {
    SAME: "the same, or what happens to be in memory",
    DIFFER: "other numbers",
    ONLY_ONEDNN: "runs with oneDNN only",
    ONLY_PLAIN: "runs without oneDNN only",
    NOISE: "other numbers each time",
    NEITHER: "runs by no kernel alone",
}
# Operators of which some cases give what happens to be in memory.
UNWRITTEN = {
    "RNN": "of float32 without oneDNN, where its states are no outputs",
    "_contrib_ROIAlign": "of images that are not there",
    "_while_loop": "behind the last iteration",
}
STAMP = re.compile(r"\[[\d:]+\] ")
SHOWN, SECONDS, MOST = 90, 40, 20_000
Outcome = list[Array] | str


class Result(NamedTuple):
    """What became of a case, and how the kernels differ or why one of them does not run."""

    case: Case
    kind: str
    why: str


def case_of(number: int, turn: int, seed: int) -> Case:
    """A case of the reading rules; from the second turn on with random changes."""
    case = _cases()[number].but(oracle=live)
    if not turn:
        return case
    about = _registry().get(case.op, {}).get("attributes", {})
    return mutate(case, about, random.Random(f"{seed} {number} {turn}"))


@cache
def _cases() -> list[Case]:
    return every_case()


@cache
def _registry() -> dict[str, dict[str, dict[str, str]]]:
    return json.loads(REGISTRY.read_text())  # type: ignore[no-any-return]


def attempt(number: int, turn: int, seed: int) -> Outcome:
    """What MXNet computes in this process, or why it does not."""
    case = case_of(number, turn, seed)
    try:
        outputs, again = live(case), live(case)
    except Exception as error:  # MXNet raises what it likes
        lines = [s for s in str(error).splitlines() if s.strip() and "[bt]" not in s]
        message = STAMP.sub("", lines[-1]) if lines else type(error).__name__
        return message.removeprefix("MXNetError: ")
    if any(_differ(case, a, b) for a, b in zip(outputs, again, strict=True)):
        return NOISE
    return outputs if sum(y.size for y in outputs) <= MOST else "too large"


class Kernels:
    """MXNet in this process, with the kernels that the environment asks for."""

    def run(self, case: str) -> Outcome:
        """What becomes of a case, called ``NUMBER TURN SEED``."""
        return attempt(*map(int, case.split()))


def compare(operators: Sequence[str] = (), each: int = 0, seed: int = 0) -> Iterator[Result]:
    """Every case, and ``each`` random changes of it, by both kinds of kernels."""
    workers = [Worker(Kernels, SECONDS, {**QUIET, **kernels}) for kernels in ({}, OFF)]
    chosen = [
        (number, turn, seed)
        for number, case in enumerate(_cases())
        if not operators or case.op in operators
        for turn in range(1 + (0 if case.network else each))
    ]
    with ThreadPoolExecutor(len(workers)) as pool:
        for case in chosen:
            name = " ".join(map(str, case))
            outcomes = pool.map(lambda worker, name=name: run_worker(worker, name), workers)
            yield Result(case_of(*case), *judge(case_of(*case), *outcomes))
    for worker in workers:
        worker.end()


def run_worker(worker: Worker, case: str) -> Outcome:
    """What a worker makes of a case, or how it ended: at the second try, where the first ended
    or gave other numbers each time, as a busy machine does."""
    outcome: Outcome = ""
    for _ in range(2):
        try:
            outcome = worker.run(case)
        except Ended as error:
            outcome = str(error)
        else:
            if not isinstance(outcome, str) or outcome != NOISE:
                break
    return outcome


def judge(case: Case, onednn: Outcome, plain: Outcome) -> tuple[str, str]:
    """What two outcomes of a case come to."""
    if any(isinstance(outcome, str) and outcome == NOISE for outcome in (onednn, plain)):
        return (SAME if case.op in UNWRITTEN else NOISE), ""
    if isinstance(onednn, str) and isinstance(plain, str):
        return NEITHER, onednn
    if isinstance(onednn, str) or isinstance(plain, str):
        return (ONLY_PLAIN, onednn) if isinstance(onednn, str) else (ONLY_ONEDNN, str(plain))
    differing = [how for a, b in zip(onednn, plain, strict=True) if (how := _differ(case, a, b))]
    if not differing or case.op in UNWRITTEN:
        return SAME, ""
    return DIFFER, differing[0]


def _differ(case: Case, a: Array, b: Array) -> str:
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype} {list(a.shape)}, {b.dtype} {list(b.shape)}"
    error = _error(b, a)
    return "off" if error > (case.tolerance or _tolerance(a)) else ""


def page(results: Sequence[Result]) -> Iterator[str]:
    """The lines of the page."""
    counts = Counter(r.kind for r in results)
    yield "# MXNet's kernels, with and without oneDNN\n"
    yield f"Written by `python -m conformance.mxnet_kernels`: {len(results):,} cases of the"
    yield "reading rules, run by MXNet 1.9.1 as it is released, and with `MXNET_MKLDNN_ENABLED=0`,"
    yield "which has it use its plain kernels. A test compares the last table with what comes of"
    yield "the cases today.\n"
    yield "| | cases |\n|---|---:|"
    for kind, title in TITLES.items():
        yield f"| {title} | {counts[kind]:,} |"
    listed = ",\n".join(f"`{op}` {what}" for op, what in UNWRITTEN.items())
    yield f"\nWhat happens to be in memory is in results of\n{listed}.\n"
    yield "Where both run and disagree, serde follows the kernels of the release. With"
    yield '`kernels="plain"`, or `--kernels plain`, it follows the plain ones; the report notes'
    yield "each layer that this matters for. What runs one way only is read as it runs, whatever"
    yield "`kernels` is: a kernel that is not there has no result to follow. Cases that run by no"
    yield "kernel alone are parts of graphs, or halves that are compared with float32.\n"
    rows = [r for r in results if r.kind not in (SAME, NEITHER)]
    groups: dict[tuple[str, str, str], list[Case]] = defaultdict(list)
    for case, kind, why in rows:
        groups[kind, case.op, "" if kind == DIFFER else why].append(case)
    yield HEAD
    yield "|---|---|---:|---|---|"
    order = list(TITLES)
    for (kind, op, why), cases in sorted(
        groups.items(), key=lambda g: (order.index(g[0][0]), g[0])
    ):
        reason = shorten(why.replace("|", "/"), SHOWN, placeholder=" …") or f"`{cases[0]}`"
        yield f"| {TITLES[kind]} | `{op}` | {len(cases)} | {reason} | {rules_follow(kind, op)} |"


def rules_follow(kind: str, op: str) -> str:
    """Which kernels the rules follow."""
    if kind == DIFFER:
        return "oneDNN, or plain on request" if op in plain_kernels else "oneDNN"
    return {ONLY_PLAIN: "plain", ONLY_ONEDNN: "oneDNN"}.get(kind, "")


def main(arguments: Sequence[str]) -> int:
    """Run the cases, and write the page or print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR")
    parser.add_argument("--each", type=int, default=0, help="random changes of each case (0)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    counts: Counter[str] = Counter()
    results = []
    for result in compare(args.operators, args.each, args.seed):
        counts[result.kind] += 1
        results.append(result)
        if (args.operators or args.each) and result.kind not in (SAME, NEITHER):
            print(f"{result.kind}: {result.case}: {result.why[:SHOWN]}", flush=True)
    if args.operators or args.each:
        print(dict(counts))
    else:
        PAGE.write_text("".join(f"{line}\n" for line in page(results)))
    return 1 if any(r.kind == DIFFER and r.case.op not in plain_kernels for r in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
