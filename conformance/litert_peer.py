"""Networks as files of TensorFlow Lite by serde and by onnx2tf, run in LiteRT beside MXNet.

``$SERDE_ONNX2TF`` names a Python that has onnx2tf and TensorFlow. It is given the ONNX file that
serde writes, and told to keep the shapes of inputs, as serde does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import serde
from serde.bridges.litert import FOLDER, LitertWorker
from serde.errors import SerdeError
from serde.formats.tflite.decode import decode
from testing.networks import VISION, build, compute, export, feeds, smallest

from .litert_networks import distance
from .litert_networks import page as networks_page
from .matrix import Cell, last_line
from .record import RANK, RIGHT, WRONG, Outcome
from .tflite_round_trips import count_operators

VARIABLE, SECONDS, TOLERANCE = "SERDE_ONNX2TF", 900, 1e-4
NETWORKS = (
    "resnet18_v1", "mobilenetv2_1.0", "squeezenet1.0", "lstm", "gru", "bert_interleaved",
    "resnet18_v2", "mobilenet1.0", "resnet50_v1", "densenet121", "inceptionv3",
)  # fmt: skip
Row = Mapping[str, Any]


class Onnx2tf(Cell):
    """Sizes and errors of both files, and how long ours takes in terms of the other."""

    seconds = 2 * SECONDS

    def cases(self) -> list[str]:
        return [*NETWORKS] if os.environ.get(VARIABLE) else []

    def run(self, name: str) -> Row:
        network = build(name, smallest(name) if name in VISION else None)
        inputs = feeds(network, 1)
        with tempfile.TemporaryDirectory() as folder:
            symbol, _ = export(network, folder)
            graph = serde.load(symbol, inputs={k: v.shape for k, v in inputs.items()})
            paths = {"serde": Path(folder, "net.tflite")}
            serde.save(graph, paths["serde"])
            serde.save(graph, Path(folder, "net.onnx"), opset=17)
            expected = compute(network, inputs)
            arrays = {v.name: inputs[v.name].astype(v.type.numpy) for v in graph.inputs}
            row: dict[str, Any] = {}
            try:
                paths["onnx2tf"] = run_onnx2tf(Path(folder), [*arrays])
                row = {who: measure(path, arrays, expected) for who, path in paths.items()}
            except (SerdeError, subprocess.SubprocessError, LookupError) as error:
                row = {"serde": measure(paths["serde"], arrays, expected),
                       "failed": last_line(error)[:200]}  # fmt: skip
            if len(row) == len(paths) and "failed" not in row:
                row["ratio"] = compare_times(*paths.values())
        return row

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        if "serde" not in row:
            return {"": Outcome.of(WRONG, row["failed"])}
        outcomes = {"error": Outcome.judge_error(row["serde"]["error"], TOLERANCE)}
        if "onnx2tf" in row:
            more = row["serde"]["operators"] - row["onnx2tf"]["operators"]
            outcomes["operators"] = (
                Outcome(RIGHT) if more <= 0 else Outcome.of(WRONG, f"{more} more")
            )
        return outcomes

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return rows or before  # onnx2tf need not be here


def run_onnx2tf(folder: Path, names: list[str]) -> Path:
    """The file of floats that onnx2tf makes of ``net.onnx``."""
    command = [os.environ[VARIABLE], "-m", "onnx2tf", "-i", "net.onnx", "-o", "out", "-n", "-kat"]
    done = subprocess.run(
        [*command, *names], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    files = sorted((folder / "out").glob("*_float32.tflite"))
    if done.returncode or not files:
        lines = (done.stdout + done.stderr).strip().splitlines() or [f"code {done.returncode}"]
        raise LookupError(lines[-1])
    return files[0]


def measure(path: Path, arrays: Mapping[str, Any], expected: Any) -> dict[str, Any]:
    """Operators of a file, and its error with XNNPACK; inputs are found by name or shape."""
    graph, left = decode(path), dict(arrays)
    fed = []
    for value in graph.inputs:
        same = [n for n, a in left.items() if a.shape == value.shape]
        fed.append(left.pop(next((n for n in same if n in value.name), same[0])))
    counts = count_operators(graph)
    got = LitertWorker().run(str(path), fed, delegates=True)
    found = [next(a for a in got if a.shape == e.shape) for e in expected]
    return {
        "operators": counts.total(), "transposes": counts["TRANSPOSE"],
        "error": distance(expected, found),
    }  # fmt: skip


def compare_times(ours: Path, theirs: Path) -> float:
    """How long our file takes in terms of the other: the median of rounds."""
    path = os.pathsep.join(filter(None, (os.environ.get(FOLDER), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-c", TIMING, str(ours), str(theirs)], capture_output=True, text=True,
        check=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    return float(np.median(json.loads(done.stdout.splitlines()[-1])))


TIMING = """
import json, sys, time
import numpy as np
from ai_edge_litert.interpreter import Interpreter

models = []
for path in sys.argv[1:]:
    model = Interpreter(path, num_threads=1)
    model.allocate_tensors()
    for detail in model.get_input_details():
        draws = np.random.default_rng(0)
        array = draws.integers(0, 2, detail["shape"]) if np.dtype(detail["dtype"]).kind in "iu" \\
            else draws.standard_normal(detail["shape"])
        model.set_tensor(detail["index"], array.astype(detail["dtype"]))
    models.append(model)

def seconds(model, count):
    start = time.process_time()
    for _ in range(count):
        model.invoke()
    return (time.process_time() - start) / count

counts = [max(1, round(0.02 / seconds(m, 3))) for m in models]
rounds = []
for at in range(43):
    order = (0, 1) if at % 2 else (1, 0)
    took = {k: seconds(models[k], counts[k]) for k in order}
    rounds.append(took[0] / took[1])
print(json.dumps(rounds[3:]))
"""
HEADER = """
## Beside onnx2tf

`python -m conformance networks/onnx2tf`: onnx2tf 1.29 with TensorFlow 2.19 is given the ONNX file
that serde writes, and told to keep the shapes of inputs (`-kat`), as serde does. Both files run in
LiteRT with XNNPACK on one thread, in turn; the ratio is the median of rounds of the time of serde's
file in terms of the other's. A result is wrong from an error of {bound:g} on. Operators of
subgraphs are counted too: onnx2tf writes a GRU as a `WHILE`, which has fewer and takes six times as
long as its steps one after the other, which serde writes up to 64 of.

| network | operators | onnx2tf | `TRANSPOSE` | onnx2tf | error | onnx2tf | time |
|---|---|---|---|---|---|---|---|"""


SETS = """
## {title}

`python -m conformance {cell}`: {text} {counts}.

| cases | why they are not right |
|---|---|"""


def set_lines(title: str, cell: str, text: str, rows: Mapping[str, str]) -> Iterator[str]:
    """What becomes of a set of models, and why those that are not right are not."""
    outcomes = [Outcome.parse(row) for row in rows.values()]
    kinds = Counter(outcome.kind for outcome in outcomes)
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in RANK)
    yield SETS.format(title=title, cell=cell, text=text, counts=counts)
    reasons = Counter(str(o).replace("|", "/") for o in outcomes if o.kind != RIGHT)
    yield from (f"| {count} | {why} |" for why, count in reasons.most_common())


def page(
    networks: Mapping[str, Any], peer: Mapping[str, Row], modules: Mapping[str, str],
    models: Mapping[str, str],
) -> Iterator[str]:  # fmt: skip
    """The lines of docs/results/networks-litert.md."""
    yield from networks_page(networks)
    yield HEADER.format(bound=TOLERANCE)
    for name, row in peer.items():
        ours, theirs = row["serde"], row.get("onnx2tf")
        if theirs is None:
            sizes = f"{ours['operators']} | none: {row['failed']} | {ours['transposes']}"
            yield f"| {name} | {sizes} | | {ours['error']:.1e} | | |"
            continue
        wrong = " (wrong)" if not theirs["error"] < TOLERANCE else ""
        sizes = " | ".join(f"{ours[k]} | {theirs[k]}" for k in ("operators", "transposes"))
        errors = f"{ours['error']:.1e} | {theirs['error']:.1e}{wrong}"
        yield f"| {name} | {sizes} | {errors} | {row['ratio']:.2f} |"
    yield from set_lines(
        "Modules of Relay", "relay-corpus/litert",
        "modules that TVM 0.17 wrote, within 1e-5 of the largest number of what it computed.",
        modules,
    )  # fmt: skip
    yield from set_lines(
        "Models of ONNX", "onnx-models/litert",
        "the models in the wheel of onnx, the `light` ones among them, beside its own values.",
        models,
    )  # fmt: skip
    yield ""
