"""Whether the files of each release of MXNet are read as that release computes them.

    SERDE_MXNET=FOLDER python -m conformance.mxnet_reading [RELEASE …] [--op NAME …]

Each case of the reading rules is run by every release that ``tests/mxnet/releases_live.py`` made
an environment for, as a symbol that the release saved. Where the rule is the newest release's, and
so is the result, there is nothing else to compare: the tests do. Otherwise the case is read as a
file of the release, and ONNX Runtime runs what it becomes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from serde.errors import SerdeError
from serde.formats.mxnet.rules import SECOND, changed_rules
from tests.live_worker import LiveError, LiveWorker
from tests.mxnet.cases import Case, _error, _symbol_json, _tolerance, converted, live
from tests.mxnet.releases_live import VARIABLE, number_of, worker
from tests.mxnet.rewriting import every_case

SAME, RIGHT, REFUSED, WRONG, LACKS, ENDS = "same", "right", "refused", "wrong", "lacks", "ends"
OPSET = 21
UNKNOWN = ("not registered", "Cannot find argument", "Invalid Input", "stod", "Cannot find op")


@cache
def newest(at: int) -> Any:
    """What the newest release computes of a case, or its error as a text."""
    try:
        return live(every_case()[at])
    except Exception as error:  # whatever MXNet raises
        return str(error)


def ask(asked: LiveWorker, case: Case, text: str) -> list[np.ndarray[Any, Any]]:
    """What a release computes of a symbol for the inputs of a case."""
    feeds = {f"x{i}": x for i, x in enumerate(case.inputs)}
    return asked.run([text, case.np_shape], feeds)


def name_in(op: str, number: int) -> str:
    """What a release calls an operator: MXNet 2.0 renamed NumPy's."""
    return op.replace("_np_", "_npi_", 1) if number >= SECOND and op.startswith("_np_") else op


def examine(asked: LiveWorker, number: int, at: int) -> tuple[str, str]:
    """What becomes of one case, and why."""
    case = every_case()[at]
    known = newest(at)
    if isinstance(known, str):
        return LACKS, known
    of_release = case.but(release=number, op=name_in(case.op, number))
    text = _symbol_json(of_release, len(known))
    try:
        expected = ask(asked, case, text)
    except LiveError as error:
        lines = str(error).splitlines()
        if "ended" in str(error):
            return ENDS, str(error)
        return LACKS, lines[0] if lines else ""
    if case.op not in changed_rules(number) and differ(case, known, expected) == "":
        return SAME, ""
    try:
        runs = converted(of_release, len(expected), OPSET)
    except SerdeError as error:
        return REFUSED, f"{str(error).splitlines()[-1]} ({differ(case, known, expected)})"
    except Exception as error:  # ONNX Runtime's have no common base but this
        return REFUSED, f"{type(error).__name__}: {str(error)[:200]}"
    how = next((d for got in runs.values() if (d := differ(case, got, expected))), "")
    return (WRONG, how) if how else (RIGHT, "")


def differ(case: Case, got: list[Any], expected: list[Any]) -> str:
    """How results differ, or nothing."""
    for a, b in zip(got, expected, strict=False):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{a.dtype} {a.shape}, not {b.dtype} {b.shape}"
        if not (off := _error(a, b)) <= (case.tolerance or _tolerance(b)):
            return f"off by {off:.2g}"
    return "" if len(got) == len(expected) else f"{len(got)} outputs, not {len(expected)}"


def main(arguments: list[str]) -> int:
    """Examine the releases named, or all there are; write a line of JSON for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("releases", nargs="*")
    parser.add_argument("--op", action="append", default=[])
    given = parser.parse_args(arguments)
    folder = Path(os.environ[VARIABLE])
    releases = given.releases or sorted(p.name for p in folder.iterdir())
    bad = 0
    for release in releases:
        for row in rows(release, given.op):
            bad += row[2] == WRONG
            print(json.dumps(row), flush=True)
    return 1 if bad else 0


def rows(release: str, ops: Sequence[str]) -> Iterator[list[str]]:
    """Release, case, outcome and reason of every case, or those of some operators."""
    asked, number = worker(release), number_of(release)
    for at, case in enumerate(every_case()):
        if not ops or case.op in ops:
            yield [release, str(case), *examine(asked, number, at)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
