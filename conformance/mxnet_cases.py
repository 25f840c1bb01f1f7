"""All that the MXNet reader emits, written back: the cases of its rules, run by MXNet again.

    python -m conformance.mxnet_cases [OPERATOR …]

Writes docs/results/mxnet-cases.md; with operators prints what becomes of theirs.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tests.mxnet.cases import Case
from tests.mxnet.rewriting import FAILS, REFUSED, RIGHT, WRONG, every_case, rewritten

PAGE = Path(__file__).parents[1] / "docs" / "results" / "mxnet-cases.md"
SHOWN = 150  # letters of a reason
EMPTY = "tensors without elements, and MXNet's have some"
Found = Sequence[tuple[Case, tuple[str, str]]]


def page(found: Found) -> Iterator[str]:
    """The lines of the page."""
    counts = Counter(kind for _, (kind, _) in found)
    yield "# MXNet's operators, written back\n"
    yield f"Made by `python -m conformance.mxnet_cases`: {len(found)} cases of the reading rules,"
    yield "from MXNet to the IR, back to MXNet, and run by MXNet 1.9.1 beside the original.\n"
    yield "| | cases |\n|---|---:|"
    for kind in (RIGHT, REFUSED, FAILS, WRONG):
        yield f"| {kind} | {counts[kind]} |"
    yield "\n| what | cases | operators | why |\n|---|---:|---|---|"
    reasons: dict[tuple[str, str], list[str]] = {}
    for case, (kind, why) in found:
        if kind != RIGHT:
            why = EMPTY if "without elements" in why else why
            reasons.setdefault((kind, why), []).append(case.op)
    for (kind, why), ops in sorted(reasons.items(), key=lambda r: (r[0][0], -len(r[1]))):
        names = ", ".join(f"`{op}`" for op in sorted(set(ops))[:12])
        names += ", …" * (len(set(ops)) > 12)
        yield f"| {kind} | {len(ops)} | {names} | {' '.join(why.split())[:SHOWN]} |"
    yield ""


def main(operators: Sequence[str]) -> int:
    """Run the cases, and write the page or print."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    chosen = [c for c in every_case() if not operators or c.op in operators]
    found = [(case, rewritten(case)) for case in chosen]
    if operators:
        for case, (kind, why) in found:
            print(f"{case}: {kind} {why}")
    else:
        PAGE.write_text("\n".join(page(found)))
    return 1 if any(kind == WRONG for _, (kind, _) in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
