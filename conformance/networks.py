"""Every network of testing/networks.py at its real size, converted to ONNX and run beside MXNet."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from serde.errors import SerdeError
from testing.mxnet.network_runs import BATCHES, TOLERANCE, load_ir, outcome, references
from testing.networks import ENCODERS, LANGUAGE, VISION, build, export

from .matrix import Cell
from .record import REFUSED, WRONG, Outcome

OPSETS = (11, 13, 17, 21)
KINDS = {"Vision": VISION, "Language models": LANGUAGE, "Encoders": ENCODERS}
HEADER = f"""# Networks

Made by `python -m conformance networks/onnx`. Every network is built in MXNet 1.9.1 with random
weights, exported, converted at each opset with static shapes (one sample) and with a named number
of samples (run with one and three), checked by `onnx.checker` with `full_check`, and run in ONNX
Runtime. The error is the largest difference from MXNet in terms of the largest number of the
output; the bound is {TOLERANCE:g}. Nodes are those of the file.
"""


class Networks(Cell):
    """Nodes and error, or the reason of a failure, by shapes and opset."""

    seconds = 1200

    def cases(self) -> list[str]:
        return [n for names in KINDS.values() for n in names]

    def run(self, name: str) -> dict[str, Any]:
        network = build(name)
        rows: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as folder:
            symbol, _ = export(network, folder)
            for mode in BATCHES:
                ir, runs = load_ir(network, symbol, mode), references(network, mode)
                for opset in OPSETS:
                    try:
                        result = outcome(ir, opset, mode, runs, Path(folder))
                        row = {"nodes": result.nodes, "error": result.error}
                        rows[f"{mode} {opset}"] = row | {"needless": list(result.needless)}
                    except SerdeError as error:
                        rows[f"{mode} {opset}"] = {"failed": str(error)}
        return rows

    def outcomes(self, case: str, row: Any) -> dict[str, Outcome]:
        return outcomes_of(row, TOLERANCE)


def outcomes_of(row: dict[str, Any], bound: float) -> dict[str, Outcome]:
    """The outcomes of measured conversions."""
    if "failed" in row:
        return {"": Outcome.of(WRONG, row["failed"])}
    return {variant: _outcome(entry, bound) for variant, entry in row.items()}


def _outcome(entry: dict[str, Any], bound: float) -> Outcome:
    if "failed" in entry:
        return Outcome.of(REFUSED, entry["failed"])
    if entry.get("needless"):
        return Outcome.of(WRONG, f"needless {', '.join(entry['needless'])}")
    return Outcome.judge_error(entry["error"], bound)


def page(known: Mapping[str, Any]) -> Iterator[str]:
    """The lines of docs/results/networks.md."""
    yield HEADER
    columns = [f"{mode} {opset}" for mode in BATCHES for opset in OPSETS]
    for title, names in KINDS.items():
        yield f"## {title}\n"
        yield f"| network | {' | '.join(columns)} |"
        yield "|---|" + "---|" * len(columns)
        for name in names:
            if name in known:
                yield f"| {name} | {' | '.join(cell(known[name][c]) for c in columns)} |"
        yield ""


def cell(row: dict[str, Any]) -> str:
    """Nodes and error of one conversion, marked where it is not as it should be."""
    if "failed" in row:
        return f"**failed**: {row['failed'][:80]}"
    good = row["error"] < TOLERANCE and not row["needless"]
    text = f"{row['nodes']}, {row['error']:.0e}"
    return text if good else f"**{text}** {', '.join(row['needless'])}".strip()
