"""Outcomes of conformance cases, and the files that hold them.

A file under ``results`` has the row of every case of one source in one target: JSON with one case
a line. A row is what the cell measures, or else outcomes: where all variants (opsets, say) have the
same outcome, that one, else variants by outcome: ``{"right": "13-28", "refused: …": "7-12"}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).with_name("results")
RIGHT, REFUSED, WRONG, NOT_RUN = "right", "refused", "wrong", "not run"
RANK = {RIGHT: 0, REFUSED: 1, NOT_RUN: 1, WRONG: 2}  # higher is worse
LONGEST = 300  # characters of a reason that are kept


class Outcome(NamedTuple):
    """What became of a case: one of the four kinds, and why it is not right."""

    kind: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind

    @classmethod
    def parse(cls, text: str) -> Outcome:
        """The outcome that ``str`` made the text of."""
        kind, _, reason = text.partition(": ")
        return cls(kind, reason)

    @classmethod
    def of(cls, kind: str, reason: object = "") -> Outcome:
        """An outcome with its reason in one line of limited length."""
        return cls(kind, " ".join(str(reason).split())[:LONGEST])

    @classmethod
    def judge_error(cls, error: float | str, bound: float) -> Outcome:
        """The outcome of an error below or above a bound, or of a text that says why there is none.

        What failed without being refused is wrong.
        """
        if not isinstance(error, str):
            return cls(RIGHT) if error < bound else cls(WRONG, f"off by {error:.0e} of scale")
        kind, _, reason = error.partition(": ")
        return cls.of(kind, reason) if kind in RANK else cls.of(WRONG, error)


Outcomes = dict[str, dict[str, Outcome]]  # by case and variant
Packed = str | Mapping[str, str]


class Difference(NamedTuple):
    """A case that came out otherwise than before."""

    case: str
    variant: str
    before: Outcome
    after: Outcome

    @property
    def is_worse(self) -> bool:
        """Whether a right result is lost, or one has become wrong."""
        return RANK[self.after.kind] > RANK[self.before.kind]

    def __str__(self) -> str:
        name = f"{self.case} [{self.variant}]" if self.variant else self.case
        return f"{'worse' if self.is_worse else 'other'}: {name}: {self.before} → {self.after}"


def path_of(cell: str) -> Path:
    """The file of a cell, ``SOURCE/TARGET``."""
    return RESULTS / f"{cell.replace('/', '.')}.json"


def rows(cell: str) -> dict[str, Any]:
    """The recorded rows of a cell by case; none where it has no record."""
    path = path_of(cell)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(cell: str, entries: Mapping[str, Any]) -> None:
    """Write the rows of a cell, one case a line."""
    lines = (
        f" {json.dumps(case, ensure_ascii=False)}: {json.dumps(entries[case], ensure_ascii=False)}"
        for case in sorted(entries)
    )
    path = path_of(cell)
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def pack(outcomes: Mapping[str, Outcome], variants: Sequence[str]) -> Packed:
    """The row of outcomes by variant: one outcome, or variants by outcome."""
    by_outcome: dict[str, list[int]] = {}
    for variant, outcome in outcomes.items():
        by_outcome.setdefault(str(outcome), []).append(variants.index(variant))
    if len(by_outcome) == 1 and len(outcomes) == len(variants):
        return next(iter(by_outcome))
    return {text: _ranges(sorted(at), variants) for text, at in by_outcome.items()}


def _ranges(at: Sequence[int], variants: Sequence[str]) -> str:
    """``7-12, 15``, of places in the list of variants."""
    runs: list[list[int]] = []
    for index in at:
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ", ".join(variants[a] if a == b else f"{variants[a]}-{variants[b]}" for a, b in runs)


def unpack(held: Packed, variants: Sequence[str]) -> dict[str, Outcome]:
    """The outcomes of a row that ``pack`` made."""
    if isinstance(held, str):
        return dict.fromkeys(variants, Outcome.parse(held))
    row = {v: Outcome.parse(text) for text, span in held.items() for v in _expand(span, variants)}
    return {v: row[v] for v in variants if v in row}


def _expand(ranges: str, variants: Sequence[str]) -> Iterator[str]:
    for run in ranges.split(", "):
        first, _, last = (run, "", run) if run in variants else run.partition("-")
        yield from variants[variants.index(first) : variants.index(last) + 1]


def differences(before: Outcomes, after: Outcomes) -> Iterator[Difference]:
    """The cases that came out otherwise; those that only one of the two has are left out."""
    for case, outcomes in after.items():
        for variant, outcome in outcomes.items():
            old = before.get(case, {}).get(variant)
            if old is not None and old != outcome:
                yield Difference(case, variant, old, outcome)


def counts(outcomes: Outcomes) -> dict[str, int]:
    """How many outcomes of each kind there are."""
    kinds = [outcome.kind for each in outcomes.values() for outcome in each.values()]
    return {kind: kinds.count(kind) for kind in RANK}


def worse(changes: Iterable[Difference]) -> list[Difference]:
    """Those that are worse than before."""
    return [d for d in changes if d.is_worse]
