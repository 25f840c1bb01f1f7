"""Whole models as PyTorch modules: numbers, gradients, and ``torch.export.export``.

``$SERDE_PYTORCH`` names a Python with PyTorch (``torch_models_script.py``).
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import serde
from serde.errors import SerdeError

from . import consumer_models
from .consumer_models import bound_of
from .matrix import Cell, last_line, reason
from .model_sources import Model, names, open_model
from .record import NOT_RUN, RANK, REFUSED, RIGHT, WRONG, Outcome, Packed, unpack
from .relay_corpus import CLOSE

SCRIPT = Path(__file__).with_name("torch_models_script.py")
TOLERANCE = 1e-5  # of the largest number of an output
Row = dict[str, Any]


class TorchModels(Cell):
    """The error of a written module, what of it has no gradient, and whether it is exported."""

    seconds = 1200

    def cases(self) -> list[str]:
        """Those of floats: integers are not trained."""
        able = os.environ.get("SERDE_PYTORCH")
        return [n for n in names() if "int8" not in n and "/qnn" not in n] if able else []

    def run(self, case: str) -> Row:
        with tempfile.TemporaryDirectory() as place:
            model = open_model(case, Path(place))
            return {variant: measure(model, variant, Path(place)) for variant in model.reads}

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        if "failed" in row:
            return {"": Outcome.of(WRONG, row["failed"])}
        return {variant: judge(found, find_bound(case)) for variant, found in row.items()}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the corpus and the libraries need not be here


def find_bound(case: str) -> float:
    """How far a model may be off: others than ``TOLERANCE`` have a reason."""
    bound = bound_of(case)
    return bound if bound > consumer_models.TOLERANCE else TOLERANCE


def measure(model: Model, variant: str, folder: Path) -> Row:
    """What becomes of a model in one form."""
    feeds, expected = model.runs[variant]
    source = folder / "written" / "net.py"
    source.parent.mkdir(exist_ok=True)
    try:
        graph = model.reads[variant](training=True)
        serde.save(graph, source)
    except SerdeError as problem:
        return {"refused": reason(problem)}
    np.savez(folder / "in.npz", *(feeds[v.name] for v in graph.inputs))
    paths = source, folder / "in.npz", folder / "out.npz"
    done = subprocess.run([os.environ["SERDE_PYTORCH"], SCRIPT, *paths], capture_output=True)
    if done.returncode:
        return {"wrong": last_line(Exception(done.stderr.decode()))}
    with np.load(folder / "out.npz") as arrays:
        got = [arrays[f"arr_{at}"] for at in range(len(arrays.files))]
    methods = [n for n in ast.walk(ast.parse(source.read_text())) if isinstance(n, ast.FunctionDef)]
    statements = sum(len(n.body) for n in methods if n.name == "forward")
    row = json.loads(done.stdout.splitlines()[-1])
    return {"error": model.difference(got, expected), **row, "layers": len(graph.nodes),
            "statements": statements}  # fmt: skip


def judge(found: Row, bound: float) -> Outcome:
    """A module that is off is wrong; what is not trained or exported refuses a part of its use."""
    if "refused" in found:
        return Outcome.of(REFUSED, found["refused"])
    if "wrong" in found:
        return Outcome.of(WRONG, found["wrong"])
    if found["error"] > bound:
        return Outcome.of(WRONG, f"off by {found['error']:.1e}")
    if found["untrained"]:
        return Outcome.of(REFUSED, f"no gradient: {', '.join(found['untrained'])}")
    return Outcome(RIGHT) if not found["export"] else Outcome.of(REFUSED, found["export"])


HEADER = f"""# Whole models in PyTorch

Made by `python -m conformance relay-corpus/torch onnx-models/torch models/torch`. Modules of the
Relay corpus, models of the onnx package and whole models are written as PyTorch modules and run in
`eval()`. Modules of the corpus are right within {CLOSE:g} of the largest number of the output,
models of the onnx package within the bounds of its tests.

Whole models are written in the form that is trained; the error is the largest difference from what
their own framework computes, in terms of the largest number of the output. The bound is
{TOLERANCE:g}, for GluonCV's networks {consumer_models.DETECTIONS:g}, as detections are compared
row by row. *Parameters* are those of the module, and those of them that have no gradient of the
squares of all outputs. *Exported* tells whether `torch.export.export` takes the module.
*Layers* are nodes of the IR, statements those of all `forward` methods together. Vision
networks are at a small image size.
"""


def page(
    known: Mapping[str, Row], corpus: Mapping[str, Packed], others: Mapping[str, Packed]
) -> Iterator[str]:
    """The lines of docs/results/torch-models.md."""
    yield HEADER
    yield "| | right | refused | not run | wrong |\n|---|---|---|---|---|"
    for title, rows in (("the Relay corpus", corpus), ("the models of the onnx package", others)):
        counts = Counter(o.kind for row in rows.values() for o in unpack(row, ("",)).values())
        listing = " | ".join(str(counts[kind]) for kind in (RIGHT, REFUSED, NOT_RUN, WRONG))
        yield f"| {title} | {listing} |"
    yield ""
    found = [(case, variant, row) for case, rows in known.items() for variant, row in rows.items()]
    counts = Counter(judge(row, find_bound(case)).kind for case, _, row in found)
    listing = ", ".join(f"{counts[kind]} {kind}" for kind in RANK if counts[kind])
    yield f"{len(found)} forms of {len(known)} whole models have been run so far: {listing}.\n"
    yield "| model | error | parameters | without a gradient | exported | layers | statements |"
    yield "|---|---|---|---|---|---|---|"
    for case, variant, row in found:
        title = f"{case}{', samples by name' if variant else ''}"
        if "error" not in row:
            yield f"| {title} | {' '.join(map(str, row.values()))[:100]} | | | | | |"
            continue
        left = ", ".join(row["untrained"][:3]) or "0"
        exported = "yes" if not row["export"] else row["export"][:60]
        numbers = f"{row['layers']} | {row['statements']}"
        error = f"{row['error']:.1e}"
        yield f"| {title} | {error} | {row['parameters']} | {left} | {exported} | {numbers} |"
    yield ""
