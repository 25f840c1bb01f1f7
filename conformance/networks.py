"""Convert every network of tests/networks.py at its real size, and write docs/results/networks.md.

    python -m conformance.networks [--again] [NETWORK …]

What is known is kept in results/networks.json, so that an interrupted run goes on where it
stopped; ``--again`` forgets the named networks, or all, first.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.resuming import resume
from serde.errors import SerdeError
from tests.mxnet.network_runs import BATCHES, TOLERANCE, loaded, outcome, references
from tests.networks import ENCODERS, LANGUAGE, NETWORKS, VISION, build, export

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "conformance" / "results" / "networks.json"
PAGE = ROOT / "docs" / "results" / "networks.md"
OPSETS = (11, 13, 17, 21)
KINDS = {"Vision": VISION, "Language models": LANGUAGE, "Encoders": ENCODERS}
HEADER = f"""# Networks

Made by `python -m conformance.networks`. Every network is built in MXNet 1.9.1 with random weights,
exported, converted at each opset with static shapes (one sample) and with a named number of samples
(run with one and three), checked by `onnx.checker` with `full_check`, and run in ONNX Runtime.
The error is the largest difference from MXNet in terms of the largest number of the output; the
bound is {TOLERANCE:g}. Nodes are those of the file.
"""


def rows(name: str) -> dict[str, Any]:
    """Nodes and error, or the reason of a failure, by shapes and opset."""
    network = build(name)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        symbol, _ = export(network, folder)
        for mode in BATCHES:
            ir, runs = loaded(network, symbol, mode), references(network, mode)
            for opset in OPSETS:
                try:
                    made = outcome(ir, opset, mode, runs, Path(folder))
                    row = {"nodes": made.nodes, "error": made.error}
                    found[f"{mode} {opset}"] = row | {"needless": list(made.needless)}
                except SerdeError as error:
                    found[f"{mode} {opset}"] = {"failed": str(error)}
    return found


def page(known: dict[str, Any]) -> Iterator[str]:
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


def worst(found: dict[str, Any]) -> str:
    """The largest error of a network."""
    return f"{max(r.get('error', float('inf')) for r in found.values()):.1e}"


def main(arguments: list[str]) -> None:
    """Run what is not known yet, and write the page after each network."""
    resume(arguments, NETWORKS, KEPT, PAGE, rows, page, worst)


if __name__ == "__main__":
    main(sys.argv[1:])
