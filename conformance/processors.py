"""Quantized models in ONNX Runtime on processors without VNNI instructions, which QEMU emulates.

``qemu-x86_64`` (of Debian's package qemu-user) runs ONNX Runtime as on such a processor.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import serde
from serde.bridges.int8_products import adds_int8_exactly
from serde.errors import SerdeError
from serde.plugins.targets import get_consumer
from testing.onnx_live import OPTIMIZED, error, run_at

from .matrix import Cell, last_line, reason
from .model_sources import Model, names, open_model
from .record import REFUSED, RIGHT, WRONG, Outcome

EMULATOR = "qemu-x86_64"
SCRIPT = Path(__file__).with_name("processors_script.py")
PROCESSORS = {"Haswell": "Intel Haswell (AVX2)", "EPYC-Milan": "AMD EPYC 7003 (AVX2)"}
QDQ, INT8 = "--integers qdq", "--int8-weights"
WAYS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "default": ("generic", {}, {}),  # the profile, and more options to read and to write with
    "--profile onnxruntime": ("onnxruntime", {}, {}),
    INT8: ("generic", {}, {"int8_weights": True}),
    QDQ: ("generic", {"integers": "qdq"}, {}),
}
INEXACT = frozenset({INT8, QDQ})  # ways that are known to differ there
SAME = 1e-6  # of the largest number of an output
Row = dict[str, Any]


class Processors(Cell):
    """How far the outputs of a file are from those of this processor, by way and processor."""

    seconds = 3600

    def cases(self) -> list[str]:
        able = shutil.which(EMULATOR) and adds_int8_exactly()
        return [n for n in names() if "int8" in n or n.startswith("relay/qnn")] if able else []

    def run(self, case: str) -> Row:
        with tempfile.TemporaryDirectory() as place:
            model = open_model(case, Path(place))
            return {way: measure(model, way, Path(place)) for way in WAYS}

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        if "failed" in row:
            return {"": Outcome.of(WRONG, row["failed"])}
        return {
            f"{way} {processor}": _outcome(error, way in INEXACT)
            for way, errors in row.items() for processor, error in errors.items()
        }  # fmt: skip

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the libraries need not be here


def measure(model: Model, way: str, folder: Path) -> Row:
    """The largest difference on each processor, in terms of the output's largest number."""
    profile, reading, writing = WAYS[way]
    path = folder / "model.onnx"
    try:
        graph = model.reads[""](**{**get_consumer(profile).reading, **reading})
        serde.save(graph, path, external_data="never", profile=profile, **writing)
    except SerdeError as problem:
        return dict.fromkeys(PROCESSORS, f"{REFUSED}: {reason(problem)}")
    feeds = {v.name: model.runs[""][0][v.name] for v in graph.inputs}
    expected = run_at(OPTIMIZED, path, feeds)
    return {p: _compare(p, path, feeds, expected) for p in PROCESSORS}


def _compare(
    processor: str, path: Path, feeds: Mapping[str, Any], expected: Sequence[Any]
) -> float | str:
    try:
        got = run_emulated(processor, path, feeds)
    except subprocess.CalledProcessError as problem:
        return f"failed: {last_line(Exception(problem.stderr))}"
    return max(error(a, b) for a, b in zip(got, expected, strict=True))


def run_emulated(processor: str, path: Path, feeds: Mapping[str, Any]) -> list[Any]:
    """What ONNX Runtime computes on a processor that QEMU emulates."""
    inputs, outputs = path.with_suffix(".in.npz"), path.with_suffix(".out.npz")
    np.savez(inputs, **feeds)
    # The interpreter itself: QEMU starts no other program.
    python = os.path.realpath(sys.executable)
    packages = os.pathsep.join(p for p in sys.path if p.endswith("site-packages"))
    command = [EMULATOR, "-cpu", processor, python, SCRIPT, path, inputs, outputs]
    environment = {**os.environ, "PYTHONPATH": packages}
    subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    with np.load(outputs) as arrays:
        return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


def _outcome(error: float | str, is_inexact: bool) -> Outcome:
    outcome = Outcome.judge_error(error, SAME)
    return Outcome(RIGHT) if outcome.kind == WRONG and is_inexact else outcome


HEADER = """# Processors without VNNI

Made by `python -m conformance.pages`. Quantized models in ONNX Runtime {version}, on processors
whose kernels for uint8 by int8 saturate, as QEMU emulates them: the largest difference from the
same file on a processor with VNNI instructions, in terms of the largest number of the output.
*Same* is below {same:g}. The default has weights of uint8, which are exact on every processor;
`--profile onnxruntime` has both types of weights in the file, and asks the processor; with
`--int8-weights` and `--integers qdq` sums saturate there.
[quantized-models.md](../how-to/quantized-models.md) tells which to use.
"""


def page(known: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/processors.md."""
    yield HEADER.format(version=onnxruntime.__version__, same=SAME)
    for processor, title in PROCESSORS.items():
        yield f"## {title}\n"
        yield f"| model | {' | '.join(f'`{w}`' if '-' in w else w for w in WAYS)} |"
        yield "|---|" + "---|" * len(WAYS)
        for name, row in known.items():
            cells = (_cell(row.get(way, {}).get(processor, row.get("failed"))) for way in WAYS)
            yield f"| {name} | {' | '.join(cells)} |"
        yield ""


def _cell(error: Any) -> str:
    if isinstance(error, str):
        return error.replace("|", "/")[:60]
    return "same" if error < SAME else f"{error:.1e}"
