"""Run the matrix and record what becomes of each case.

    python -m conformance [CELL …] [--case WORD …] [--changed-since REV] [--jobs N] [--list]

A CELL is ``SOURCE/TARGET``; all cells if none is named, a part of the name is enough. Live MXNet
and the TVMs (``SERDE_TVM``, ``SERDE_RELAX``) are needed for the cells that run in them.

A run is gone on with where it stopped. When a cell is complete its file under
``conformance/results`` is replaced and the differences from the record before are printed; the
exit code is 1 if a case is worse than before. ``--changed-since REV`` compares with the record of
a git revision and leaves the files alone; so does ``--case``, which runs the cases whose name has
the word.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local

import click

from . import record
from .matrix import CELLS, Target, source_of, target_of
from .record import Outcome, Outcomes
from .worker import Worker

ROOT = Path(__file__).parents[1]


@click.command(help=__doc__)
@click.argument("cells", nargs=-1)
@click.option("--case", "words", multiple=True)
@click.option("--changed-since", "revision")
@click.option("--jobs", default=2, show_default=True)
@click.option("--list", "is_list", is_flag=True, help="Print the outcome of each case.")
def main(
    cells: Sequence[str], words: Sequence[str], revision: str | None, jobs: int, is_list: bool
) -> None:
    chosen = [c for c in CELLS if not cells or any(part in c for part in cells)]
    if not chosen:
        raise click.UsageError(f"no cell of this name; there are {', '.join(CELLS)}")
    worse = 0
    for cell in chosen:
        start = time.perf_counter()
        target = target_of(cell)
        cases = [n for n in source_of(cell).cases() if not words or any(w in n for w in words)]
        is_partial = bool(words)
        found = _run(cell, cases, jobs, resumes=not is_partial)
        before = _before(cell, target, revision)
        changed = list(record.differences(before, found))
        worse += len(record.worse(changed))
        if is_list:
            _print_each(found)
        for difference in changed:
            print(difference)
        counts = ", ".join(f"{n} {kind}" for kind, n in record.counts(found).items())
        print(f"{cell}: {counts} in {time.perf_counter() - start:.0f} s", flush=True)
        if not is_partial and revision is None:
            record.write(cell, found, target.variants)
            _progress(cell).unlink(missing_ok=True)
    sys.exit(1 if worse else 0)


def _print_each(found: Outcomes) -> None:
    for case, outcomes in found.items():
        for variant, outcome in outcomes.items():
            print(f"{case} [{variant}]: {outcome}")


def _before(cell: str, target: Target, revision: str | None) -> Outcomes:
    """The record of a cell: the file's, or that of a git revision."""
    path = record.path_of(cell)
    if revision is None:
        text = path.read_text(encoding="utf-8") if path.exists() else "{}"
    else:
        name = f"{revision}:{path.relative_to(ROOT)}"
        shown = subprocess.run(["git", "show", name], capture_output=True, cwd=ROOT, check=True)
        text = shown.stdout.decode()
    return record.read(text, target.variants)


def _progress(cell: str) -> Path:
    return record.path_of(cell).with_suffix(".partial")


def _run(cell: str, cases: Sequence[str], jobs: int, resumes: bool) -> Outcomes:
    """The outcomes of cases; what an interrupted run left is not run again."""
    path = _progress(cell)
    found: Outcomes = dict(_kept(path)) if resumes else {}
    left = [c for c in cases if c not in found]
    place = local()

    def outcomes(case: str) -> tuple[str, dict[str, Outcome]]:
        if not hasattr(place, "worker"):
            place.worker = Worker(cell)
        return case, place.worker.outcomes(case)

    path.parent.mkdir(exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool, path.open("a", encoding="utf-8") as kept:
        for case, outcome in pool.map(outcomes, left):
            found[case] = outcome
            if resumes:
                line = {v: str(o) for v, o in outcome.items()}
                print(json.dumps([case, line]), file=kept, flush=True)
    if not resumes and not path.stat().st_size:
        path.unlink()
    return {case: found[case] for case in cases}


def _kept(path: Path) -> Iterator[tuple[str, dict[str, Outcome]]]:
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            case, outcomes = json.loads(line)
            yield case, {v: Outcome.parse(text) for v, text in outcomes.items()}


if __name__ == "__main__":
    main()
