"""The record of runs: counts by direction, the seeds that were run, and what differed."""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from conformance import record

from .campaign import CELL, REASONS, Run

RUNS, OPEN, RESOLVED = "runs", "open differences", "resolved differences"  # beside directions


@contextmanager
def lock() -> Iterator[None]:
    """Let one process at a time read and write the record."""
    path = record.path_of(CELL).with_suffix(".lock")
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def add_to_record(run: Run) -> None:
    """Add a run to what runs came to so far. Raises ValueError for seeds that are in it."""
    with lock():
        rows = record.rows(CELL)
        spans = rows.setdefault(RUNS, [])
        for span in spans:
            both = set(span["directions"]) & set(run.directions)
            if both and span["first"] <= run.last and run.first <= span["last"]:
                raise ValueError(f"seeds {run.first} to {run.last} are recorded: {sorted(both)}")
        add_span(spans, run)
        rows.setdefault(OPEN, {}).update(run.differences)
        rows.setdefault(RESOLVED, {})
        for direction, count in run.counts.items():
            before, row = rows.get(direction, {}), count.row()
            reasons = Counter(before.get("refusals", {})) + Counter(row.pop("refusals"))
            rows[direction] = {k: round(before.get(k, 0) + v, 1) for k, v in row.items()}
            rows[direction]["refusals"] = dict(sorted(reasons.most_common(REASONS)))
        record.write(CELL, rows)


def add_span(spans: list[dict[str, Any]], run: Run) -> None:
    """Add the seeds of a run; to the span before them, where there is one."""
    for span in spans:
        if span["last"] + 1 == run.first and span["directions"] == run.directions:
            span["last"] = run.last
            span["programs"] += run.programs
            return
    spans.append(
        {"first": run.first, "last": run.last, "programs": run.programs,
         "directions": run.directions}
    )  # fmt: skip


def count_programs(spans: list[dict[str, Any]]) -> int:
    """How many different programs were run; spans of the same seeds count once."""
    taken: list[tuple[int, int]] = []
    total = 0
    for span in sorted(spans, key=lambda s: -s["programs"]):
        if not any(a <= span["last"] and span["first"] <= b for a, b in taken):
            total += span["programs"]
        taken.append((span["first"], span["last"]))
    return total


def settle(outcomes: dict[str, str]) -> None:
    """Move what no longer differs from the open differences to those that are resolved."""
    with lock():
        rows = record.rows(CELL)
        for name, outcome in outcomes.items():
            if not outcome.startswith(("differs", "crashed")):
                before = rows[OPEN].pop(name)
                rows[RESOLVED][name] = before | {"is": outcome}
        record.write(CELL, rows)


def open_differences() -> dict[str, dict[str, str]]:
    """The differences that are open by their names: seed and direction."""
    return dict(record.rows(CELL).get(OPEN, {}))
