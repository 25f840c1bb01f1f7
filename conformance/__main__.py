"""Run the matrix and record what becomes of each case.

    python -m conformance [CELL …] [--case WORD …] [--update] [--changed-since REV] [--jobs N]
        [--list]

A CELL is ``SOURCE/TARGET``; all cells if none is named, a part of the name is enough. The cells
need live MXNet, the TVMs (``SERDE_TVM``, ``SERDE_RELAX``), the corpus of Relay modules
(``SERDE_CORPUS``), that of TensorFlow Lite models (``SERDE_TFLITE_CORPUS``), the packages of
MXNet's model zoos (``SERDE_ZOO``) and MXNet 2.0 (``SERDE_MXNET``), where they run in them.

A run is gone on with where it stopped. When a cell is complete its file under
``conformance/results`` is replaced and the differences from the record before are printed; the
exit code is 1 if a case is worse than before. ``--changed-since REV`` compares with the record of
a git revision and leaves the files alone; so does ``--case``, which runs the cases whose name has
the word, unless ``--update`` enters them into the record. ``python -m conformance.pages`` writes
the pages of the docs from the records.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import local
from typing import Any

import click

from . import record
from .matrix import CELLS, Cell, cell_of
from .record import Outcomes
from .worker import Ended, Worker

ROOT = Path(__file__).parents[1]
Rows = dict[str, Any]


@click.command(help=__doc__)
@click.argument("cells", nargs=-1)
@click.option("--case", "words", multiple=True)
@click.option("--update", "is_update", is_flag=True, help="With --case: record its outcomes.")
@click.option("--changed-since", "revision")
@click.option("--seed", default=0, help="Of random changes to models.")
@click.option("--each", default=3, show_default=True, help="Random changes of each model.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--list", "is_list", is_flag=True, help="Print the outcome of each case.")
def main(
    cells: Sequence[str], words: Sequence[str], is_update: bool, revision: str | None,
    seed: int, each: int, jobs: int, is_list: bool,
) -> None:  # fmt: skip
    chosen = [c for c in CELLS if not cells or any(part in c for part in cells)]
    if not chosen:
        raise click.UsageError(f"no cell of this name; there are {', '.join(CELLS)}")
    worse = 0
    for name in chosen:
        start = time.perf_counter()
        cell = cell_of(name)
        cell.seed, cell.each = seed, each
        cases = [n for n in cell.cases() if not words or any(w in n for w in words)]
        rows = _run(cell, cases, jobs, resumes=not words)
        before = record.rows(name) if revision is None else _rows_at(revision, name)
        after = _outcomes(cell, rows)
        changed = list(record.differences(_outcomes(cell, before), after))
        worse += len(record.worse(changed))
        if is_list:
            _print_each(after)
        for difference in changed:
            print(difference)
        counts = ", ".join(f"{n} {kind}" for kind, n in record.counts(after).items())
        print(f"{name}: {counts} in {time.perf_counter() - start:.0f} s", flush=True)
        if revision is None and (is_update or not words):
            new_rows = cell.make_record(before, rows)
            record.write(name, {**before, **new_rows} if words else new_rows)
        if not words:
            _progress(name).unlink(missing_ok=True)
    sys.exit(1 if worse else 0)


def _outcomes(cell: Cell, rows: Rows) -> Outcomes:
    return {case: cell.outcomes(case, row) for case, row in rows.items()}


def _print_each(by_case: Outcomes) -> None:
    for case, outcomes in by_case.items():
        for variant, outcome in outcomes.items():
            print(f"{case} [{variant}]: {outcome}")


def _rows_at(revision: str, cell: str) -> Rows:
    """The record of a cell in a git revision."""
    name = f"{revision}:{record.path_of(cell).relative_to(ROOT)}"
    shown = subprocess.run(["git", "show", name], capture_output=True, cwd=ROOT, check=True)
    return json.loads(shown.stdout)  # type: ignore[no-any-return]


def _progress(cell: str) -> Path:
    return record.path_of(cell).with_suffix(".partial")


def _hash_code() -> str:
    """A hash of the code as it is, committed or not; files that git does not know are left out."""
    commands = (["rev-parse", "HEAD"], ["diff", "HEAD", "--", "*.py"])
    texts = (subprocess.run(["git", *c], capture_output=True, cwd=ROOT, check=True).stdout
             for c in commands)  # fmt: skip
    return hashlib.sha256(b"".join(texts)).hexdigest()


def _resume(path: Path) -> Rows:
    """The rows that an interrupted run of the same code left; the file begins anew otherwise."""
    code = _hash_code()
    first, *lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else [""]
    if first == code:
        return dict(json.loads(line) for line in lines)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{code}\n", encoding="utf-8")
    return {}


def _run(cell: Cell, cases: Sequence[str], jobs: int, resumes: bool) -> Rows:
    """The rows of cases; what an interrupted run left is not run again."""
    path = _progress(cell.name)
    rows = _resume(path) if resumes else {}
    place = local()

    def row(case: str) -> Any:
        if not hasattr(place, "worker"):
            place.worker = Worker(partial(cell_of, cell.name), cell.seconds)
        try:
            return place.worker.run(case)
        except Ended as error:
            return cell.make_failed_row(str(error))

    left = [c for c in cases if c not in rows]
    with ThreadPoolExecutor(jobs) as pool:
        for case, new_row in zip(left, pool.map(row, left), strict=True):
            rows[case] = new_row
            if resumes:
                with path.open("a", encoding="utf-8") as file:
                    print(json.dumps([case, new_row]), file=file)
    return {case: rows[case] for case in cases}


if __name__ == "__main__":
    main()
