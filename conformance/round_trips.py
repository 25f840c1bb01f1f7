"""Models there and back: MXNet → ONNX → MXNet → ONNX, ONNX → MXNet, Relay → ONNX → Relay → ONNX."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from serde.errors import SerdeError
from testing.directions import reason
from testing.light_models import LIGHT, model_path
from testing.mxnet.round_trips import Trip, from_onnx, there_and_back
from testing.networks import NETWORKS, VISION, smallest
from testing.relay.round_trips import there_and_back as relay_trip

from . import relay_corpus
from .directions import CORPUS, load
from .matrix import Cell, NotRun
from .record import NOT_RUN, REFUSED, WRONG, Outcome
from .relay_corpus import DEFINED, LESS_EXACT

TOLERANCE = 1e-4
HEADER = f"""# Round trips

Made by `python -m conformance models/round-trips`. Errors are the largest difference from the
source in its own runtime in terms of the largest number of the output; the bound is {TOLERANCE:g}.
"""
MXNET = """
## MXNet → ONNX → MXNet → ONNX

Networks with random weights, the number of samples unknown to the converter; vision networks at a
small image size. The second MXNet model runs in MXNet 1.9.1, both ONNX models in ONNX Runtime.
*Names* tells whether inputs and outputs of the two MXNet models, and inputs, outputs and weights of
the two ONNX models, are called the same.

| network | ONNX | MXNet again | ONNX again | names |
|---|---|---|---|---|"""
MODELS = """
## ONNX → MXNet

The `light` models of the onnx package, run in ONNX Runtime and, converted, in MXNet 1.9.1.

| model | nodes | error |
|---|---|---|"""
RELAY = """
## Relay → ONNX → Relay → ONNX

Modules that TVM 0.17 wrote, with what it computed of them. Both ONNX models run in ONNX Runtime;
the Relay module between them runs in TVM in [directions.md](directions.md), where it is O → R.
*Names* tells whether inputs, outputs and weights of the two ONNX models are called the same. Of
{count} modules with something to compare with, {right} come back with the same numbers, {same} of
these with the same names; {refused} are refused on the way. The networks among them:

| network | ONNX | ONNX again | names |
|---|---|---|---|"""
NETWORK = ("gluon-", "testing-", "fe-")


class RoundTrips(Cell):
    """The errors of one network or module on its way, and the names that changed."""

    seconds = 1200

    def cases(self) -> list[str]:
        return [*NETWORKS, *LIGHT, *(CORPUS + n for n in relay_corpus.names())]

    def run(self, case: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            if case.startswith(CORPUS):
                return module_trip(case, Path(folder))
            if case in LIGHT:
                result = from_onnx(model_path(case), Path(folder))
                return dict(zip(("nodes", "error"), result, strict=True))
            size = smallest(case) if case in VISION else None
            return there_and_back(case, Path(folder), size)._asdict()

    def outcomes(self, case: str, row: dict[str, Any]) -> dict[str, Outcome]:
        if (why := row.get("refused", row.get("failed"))) is not None:
            kind = NOT_RUN if "to compare" in why else REFUSED if "refused" in row else WRONG
            return {"": Outcome.of(kind, why)}
        limit = LESS_EXACT.get(case.removeprefix(CORPUS), TOLERANCE)
        errors = {k: row[k] for k in ("first", "second", "third", "error") if k in row}
        outcomes = {k: Outcome.judge_error(error, limit) for k, error in errors.items()}
        if renamed := row.get("renamed"):
            outcomes["names"] = Outcome.of(WRONG, f"renamed: {', '.join(renamed)}")
        return outcomes

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the corpus need not be here


def module_trip(name: str, folder: Path) -> dict[str, Any]:
    """What became of one module of the corpus."""
    try:
        source = load(name, folder)
        args = source.ir, source.weights, source.feeds, source.expected
        result = relay_trip(*args, folder, DEFINED.get(name.removeprefix(CORPUS)))
    except NotRun:
        return {"refused": "nothing to compare with"}
    except SerdeError as error:
        return {"refused": reason(error)}
    return dict(zip(("first", "third", "renamed"), result, strict=True))


def page(known: Mapping[str, Any]) -> Iterator[str]:
    """The lines of docs/results/round-trips.md."""
    yield HEADER + MXNET
    for name in NETWORKS:
        if name in known:
            trip = Trip(**known[name])
            errors = " | ".join(cell(e) for e in (trip.first, trip.second, trip.third))
            yield f"| {name} | {errors} | {names(trip.renamed)} |"
    yield MODELS
    for name in LIGHT:
        if name in known:
            yield f"| {name} | {known[name]['nodes']} | {cell(known[name]['error'])} |"
    yield from module_lines(known)


def module_lines(known: Mapping[str, Any]) -> Iterator[str]:
    """The part of the page that is on Relay."""
    modules = {n.removeprefix(CORPUS): r for n, r in known.items() if n.startswith(CORPUS)}
    modules = {n: r for n, r in modules.items() if r.get("refused") != "nothing to compare with"}
    run = {n: r for n, r in modules.items() if "refused" not in r}
    right = {n: r for n, r in run.items() if is_right(n, r)}
    same = sum(not r["renamed"] for r in right.values())
    count = {"count": len(modules), "right": len(right), "same": same}
    yield RELAY.format(**count, refused=len(modules) - len(run))
    for name, row in sorted(run.items()):
        if name.startswith(NETWORK):
            errors = " | ".join(cell(row[k]) for k in ("first", "third"))
            yield f"| {name} | {errors} | {names(row['renamed'])} |"
    yield "\nOthers that are not right, or not called the same:\n"
    for name, row in sorted(run.items()):
        if not is_right(name, row) or (row["renamed"] and not name.startswith(NETWORK)):
            errors = ", ".join(cell(row[k]) for k in ("first", "third"))
            yield f"* `{name}`: {errors}; {names(row['renamed'])}"
    yield "\nRefused:\n"
    yield from (f"* `{n}`: {r['refused']}" for n, r in sorted(modules.items()) if "refused" in r)
    yield ""


def is_right(name: str, row: dict[str, Any]) -> bool:
    """Whether both ONNX models of a module are within the bound."""
    limit = LESS_EXACT.get(name, TOLERANCE)
    return all(not isinstance(row[k], str) and row[k] < limit for k in ("first", "third"))


def names(renamed: list[str]) -> str:
    """What is said of the names."""
    return "the same" if not renamed else f"**{', '.join(renamed)}**"


def cell(error: float | str) -> str:
    """An error, marked where it is too large."""
    if isinstance(error, str):
        return f"**{error}**"
    return f"{error:.0e}" if error < TOLERANCE else f"**{error:.0e}**"
