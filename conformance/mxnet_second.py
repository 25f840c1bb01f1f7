"""Networks of MXNet 2.0, exported by it and converted to ONNX: docs/results/mxnet-2.md.

They are those of ``testing.mxnet.second.networks.py``, run in ``$SERDE_MXNET``.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import serde
from serde import pipeline
from serde.errors import SerdeError
from testing.mxnet.releases_live import SECOND, VARIABLE, worker

from .matrix import Cell
from .record import REFUSED, WRONG, Outcome

MODULE = "testing.mxnet.second.networks"
OPSETS = (13, 21)
TOLERANCE = 1e-4
HEADER = f"""# Networks of MXNet 2.0

Made by `python -m conformance mxnet-2/onnx`. Each network is built in MXNet 2.0.0b1 with random
weights, exported by `HybridBlock.export`, converted at each opset with the sizes of its inputs, and
run in ONNX Runtime: Gluon's vision zoo, its recurrent layers, networks of NumPy's interface of
the kinds that the chapters of *Dive into Deep Learning* build, and `book_…`, those of its package
d2l 1.0.3. The error is the largest difference from MXNet in terms of the largest number of an
output; the bound is {TOLERANCE:g}. With *named* the number of samples has a name in the converted
model: MXNet 2.0 writes the shapes that a `forward` computed into the file, so it may be refused.

`npx.while_loop` and `npx.cond` are exported without their attributes: MXNet 2.0 cannot load such a
file either.
"""
Array = np.ndarray[Any, Any]
Row = dict[str, Any]


class SecondNetworks(Cell):
    """Nodes and error, or the reason of a refusal, of each conversion."""

    seconds = 600

    def cases(self) -> list[str]:
        names: list[str] = (
            worker(SECOND).ask("call", MODULE, "names") if VARIABLE in os.environ else []
        )
        return names

    def run(self, case: str) -> Row:
        with tempfile.TemporaryDirectory() as folder:
            worker(SECOND).ask("call", MODULE, "export", case, folder)
            with np.load(Path(folder, f"{case}.npz")) as held:
                arrays = dict(held)
            feeds = {n[2:]: x for n, x in arrays.items() if n.startswith("x:")}
            expected = [arrays[n] for n in sorted(arrays) if n.startswith("y")]
            fixed: dict[str, Any] = {n: (x.shape, x.dtype) for n, x in feeds.items()}
            row = {
                f"opset {opset}": measure(Path(folder, case), fixed, feeds, expected, opset)
                for opset in OPSETS
            }
            named: dict[str, Any] = {n: (name_batch(x), x.dtype) for n, x in feeds.items()}
            row["named"] = measure(Path(folder, case), named, feeds, expected, OPSETS[-1])
            return row

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        if "failed" in row:
            return {"": Outcome.of(WRONG, row["failed"])}
        return {variant: outcome_of(entry) for variant, entry in row.items()}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return rows or before  # MXNet 2.0 need not be here


def name_batch(x: Array) -> tuple[int | str, ...]:
    """The shape of an input, whose batch of two has a name, if it has one."""
    if 2 not in x.shape:
        return x.shape
    at = x.shape.index(2)
    return (*x.shape[:at], "N", *x.shape[at + 1 :])


def measure(
    source: Path, inputs: Mapping[str, Any], feeds: Mapping[str, Array], expected: list[Array],
    opset: int,
) -> Row:  # fmt: skip
    """What becomes of a network at an opset."""
    target = source.with_suffix(".onnx")
    try:
        serde.convert(source, target, inputs=inputs, opset=opset)
    except SerdeError as error:
        return {"refused": str(error)}
    session = onnxruntime.InferenceSession(target)
    got = session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})
    pairs = zip(got, expected, strict=True)
    return {
        "nodes": len(pipeline.read(target)[0].nodes),
        "error": max(differ(a, b) for a, b in pairs),
    }


def differ(y: Array, expected: Array) -> float:
    """The largest difference in terms of the largest number; infinite for another shape."""
    if (y.shape, y.dtype) != (expected.shape, expected.dtype) or not np.isfinite(y).all():
        return float("inf")
    y, expected = y.astype("float64"), expected.astype("float64")
    return float(np.abs(y - expected).max(initial=0.0) / (np.abs(expected).max(initial=0.0) or 1.0))


def outcome_of(entry: Row) -> Outcome:
    if "refused" in entry:
        return Outcome.of(REFUSED, entry["refused"])
    return Outcome.judge_error(entry["error"], TOLERANCE)


def page(known: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/mxnet-2.md."""
    yield HEADER
    columns = [*(f"opset {o}" for o in OPSETS), "named"]
    for column in columns:
        kinds = Counter(outcome_of(row[column]).kind for row in known.values() if column in row)
        yield f"* {column}: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    yield f"\n| network | {' | '.join(columns)} |"
    yield "|---|" + "---|" * len(columns)
    for name, row in known.items():
        yield f"| {name} | {' | '.join(cell(row.get(c, row)) for c in columns)} |"
    yield ""


def cell(entry: Row) -> str:
    """Nodes and error of one conversion, or why there is none."""
    if "error" not in entry:
        why = " ".join(next(iter(entry.values())).replace("|", "/").split())
        return f"refused: {why.partition('converted: ')[2][:100] or why[:100]}"
    text = f"{entry['nodes']}, {entry['error']:.0e}"
    return text if entry["error"] < TOLERANCE else f"**{text}**"
