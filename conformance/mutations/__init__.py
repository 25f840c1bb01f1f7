"""Models changed at random: what the framework takes, serde has to convert or to refuse.

``python -m conformance mutations --seed N --each N --list`` prints what becomes of each change;
counts are recorded only, as the changes of another seed are others.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from conformance import record
from conformance.matrix import Cell
from conformance.record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome

BAD = ("wrong", "error", "slow")
TITLES = {
    "mxnet-mutations/onnx": "MXNet's operators, read",
    "onnx-mutations/onnx": "ONNX's operators, to 7,11,17",
    "onnx-mutations/mxnet": "ONNX's operators, to mxnet",
    "onnx-mutations/relay": "ONNX's operators, to relay",
    "onnx-mutations/relax": "ONNX's operators, to relax",
    "relay-mutations/onnx": "Relay's operators, read",
}
INTRODUCTION = """# Operators changed at random

Made by `python -m conformance mutations`, the row of each cell by its last run. The cases of the
reading rules, and ONNX's node tests, are given other numbers, shapes, element types and attributes.
What the framework itself does not take is not counted; else its results are the truth. *No judge*
are those where it reads what is not there, leaves memory unwritten or sorts equals by chance, and
those where onnx.reference sides with serde against ONNX Runtime. What *differs* was looked at one
by one: it is what no model means (sizes that do not fit, indices outside, bounds below 0), which
serde hands on and the framework makes something of.

| sweep | right | refused by name | no judge | differs |
|---|---:|---:|---:|---:|
"""
INTEGERS = (-3, -2, -1, 0, 1, 2, 3, 4, 7)
FLOATS = (-2.0, -1.0, -0.5, 0.0, 1e-3, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0)
SIZES = (1, 1, 2, 3, 4, 5, 7)
Array = np.ndarray[Any, Any]


class Mutations(Cell):
    """Cases of the tests with random changes, called ``SEED TURN CASE``.

    A row is what becomes of a change, and why: ``right``, ``refused``, ``rejected`` by the
    framework, one of ``BAD``, ``ended`` with the process, or else why there is no judge.
    """

    seconds = 60

    @abstractmethod
    def originals(self) -> Mapping[str, Any]:
        """The cases to change."""

    @abstractmethod
    def mutate(self, name: str, case: Any, rng: random.Random) -> Any:
        """A case with changes."""

    @abstractmethod
    def outcome(self, change: Any) -> tuple[str, str]:
        """What becomes of a change, and why."""

    def cases(self) -> list[str]:
        return [f"{self.seed} {turn} {n}" for n in self.originals() for turn in range(self.each)]

    def run(self, case: str) -> list[str]:
        seed, turn, name = case.split(" ", 2)
        rng = random.Random(f"{seed} {name} {turn}")
        change = self.mutate(name, self.originals()[name], rng)
        kind, why = self.outcome(change)
        return [kind, f"{change}: {why}"[:3000] if kind in BAD else why[:300]]

    def make_failed_row(self, why: str) -> list[str]:
        ends = {"the process crashed": "ended"}
        return ["slow" if why.startswith("no answer") else ends.get(why, "error"), why]

    def outcomes(self, case: str, row: Any) -> dict[str, Outcome]:
        if isinstance(row, int):
            return {}  # a recorded count
        kind, why = row
        if kind in (RIGHT, REFUSED):
            return {"": Outcome.of(kind, why)}
        return {"": Outcome.of(WRONG if kind in BAD else NOT_RUN, f"{kind}: {why}")}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        counts = Counter(kind for kind, _ in rows.values())
        judged = {RIGHT, REFUSED, "rejected", "ended", *BAD}
        return {
            "right": counts[RIGHT],
            "refused": counts[REFUSED],
            "no judge": sum(n for kind, n in counts.items() if kind not in judged),
            "differs": sum(counts[kind] for kind in BAD),
        }


def page() -> Iterator[str]:
    """The lines of docs/results/mutations.md."""
    yield INTRODUCTION.rstrip()
    for cell, title in TITLES.items():
        if row := record.rows(cell):
            numbers = (f"{row[k]:,}" for k in ("right", "refused", "no judge", "differs"))
            yield f"| {title} | {' | '.join(numbers)} |"
    yield ""


def renew(x: Array, rng: random.Random) -> Array:
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


def reshape(x: Array, shape: list[int]) -> Array:
    """The elements in another shape, repeated or cut off."""
    return np.resize(x, shape) if x.size else np.zeros(shape, x.dtype)
