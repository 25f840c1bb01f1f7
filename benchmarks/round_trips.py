"""Take models there and back, run every result where it belongs, and write docs/round-trips.md.

    python -m benchmarks.round_trips [--again] [NETWORK …]

MXNet's networks go MXNet → ONNX → MXNet → ONNX, the models of the onnx package ONNX → MXNet.
What is known is kept in benchmarks/round_trips.json, so that an interrupted run goes on where it
stopped; ``--again`` forgets the named networks, or all, first.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.resuming import resume
from tests.light_models import LIGHT, model_path
from tests.mxnet.round_trips import Trip, from_onnx, there_and_back
from tests.networks import ENCODERS, LANGUAGE, VISION, smallest

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "round_trips.json"
PAGE = ROOT / "docs" / "round-trips.md"
TOLERANCE = 1e-4
HEADER = f"""# Round trips

Made by `python -m benchmarks.round_trips`. Errors are the largest difference from the source in its
own runtime in terms of the largest number of the output; the bound is {TOLERANCE:g}.
"""
NETWORKS = """
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


def trip(name: str) -> dict[str, Any]:
    """What became of one network or model."""
    with tempfile.TemporaryDirectory() as folder:
        if name in LIGHT:
            return dict(
                zip(("nodes", "error"), from_onnx(model_path(name), Path(folder)), strict=True)
            )
        size = smallest(name) if name in VISION else None
        return there_and_back(name, Path(folder), size)._asdict()


def page(known: dict[str, Any]) -> Iterator[str]:
    """The lines of docs/round-trips.md."""
    yield HEADER + NETWORKS
    for name in (*VISION, *LANGUAGE, *ENCODERS):
        if name in known:
            found = Trip(**known[name])
            errors = " | ".join(cell(e) for e in (found.first, found.second, found.third))
            names = "the same" if not found.renamed else f"**{', '.join(found.renamed)}**"
            yield f"| {name} | {errors} | {names} |"
    yield MODELS
    for name in LIGHT:
        if name in known:
            yield f"| {name} | {known[name]['nodes']} | {cell(known[name]['error'])} |"
    yield ""


def cell(error: float) -> str:
    """An error, marked where it is too large."""
    return f"{error:.0e}" if error < TOLERANCE else f"**{error:.0e}**"


def main(arguments: list[str]) -> None:
    """Run what is not known yet, and write the page after each."""
    resume(arguments, [*VISION, *LANGUAGE, *ENCODERS, *LIGHT], KEPT, PAGE, trip, page, str)


if __name__ == "__main__":
    main(sys.argv[1:])
