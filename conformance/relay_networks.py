"""The networks that TVM brings and imports, as TVM writes them, converted to ONNX and run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from serde.errors import SerdeError
from testing.relay.networks import (
    BY_TVM,
    FORMS,
    GLUON,
    STAGES,
    TESTING,
    TOLERANCE,
    outcome,
    read,
    write,
)

from .matrix import Cell
from .networks import outcomes_of
from .record import Outcome

OPSETS = {"txt": (13, 21), "json": (11, 17)}
KINDS = {
    "relay.testing": list(TESTING),
    "Gluon's, by TVM's MXNet frontend": [f"gluon/{n}" for n in GLUON],
}
HEADER = f"""# Networks in Relay

Made by `python -m conformance relay-networks/onnx`. TVM 0.17 writes each network as it is built or
imported, and once more after `SimplifyInference`, `FoldConstant`, `EliminateCommonSubexpr` and
`FuseOps`. Weights and BatchNorm statistics are random. Where a network of relay.testing ends in a
softmax, what that is taken of is made an output too. Both modules go to ONNX from their text and
from their JSON, with the same parameter file, are checked by `onnx.checker` with `full_check`, and
run in ONNX Runtime. A cell has the nodes of the file and the largest difference from what TVM
computes (its virtual machine's code for LLVM at level 3), in terms of the largest number of the
output; the bound is {TOLERANCE:g}. Of Gluon's, TVM computes {len(BY_TVM)}, one or two of each kind
(marked); for the others, which take it minutes to compile, MXNet computes what the network it
exported gives.
"""


class RelayNetworks(Cell):
    """Nodes and error, or the reason of a failure, by stage, form and opset."""

    seconds = 1200

    def cases(self) -> list[str]:
        return [n for names in KINDS.values() for n in names]

    def run(self, name: str) -> dict[str, Any]:
        rows: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            write(name, folder)
            for stage in STAGES:
                for form in FORMS:
                    ir = read(folder, stage, form)
                    for opset in OPSETS[form]:
                        try:
                            result = outcome(ir, opset, folder)
                            row: dict[str, Any] = {"nodes": result.nodes, "error": result.error}
                        except SerdeError as error:
                            row = {"failed": str(error)}
                        rows[f"{stage} {form} {opset}"] = row
        return rows

    def outcomes(self, case: str, row: Any) -> dict[str, Outcome]:
        return outcomes_of(row, TOLERANCE)


def page(known: Mapping[str, Any]) -> Iterator[str]:
    """The lines of docs/results/relay-networks.md."""
    yield HEADER
    columns = [f"{s} {f} {o}" for s in STAGES for f in FORMS for o in OPSETS[f]]
    for title, names in KINDS.items():
        yield f"## {title}\n"
        yield f"| network | {' | '.join(c.replace('txt', 'text') for c in columns)} |"
        yield "|---|" + "---|" * len(columns)
        for name in names:
            if name in known:
                cells = " | ".join(cell(known[name].get(c, known[name])) for c in columns)
                plain = name.removeprefix("gluon/")
                mark = " *" if plain in BY_TVM and plain != name else ""
                yield f"| {plain}{mark} | {cells} |"
        yield ""


def cell(row: dict[str, Any]) -> str:
    """Nodes and error of one conversion, marked where it is not as it should be."""
    if "failed" in row:
        return f"**failed**: {row['failed'][:80]}"
    text = f"{row['nodes']}, {row['error']:.0e}"
    return text if row["error"] < TOLERANCE else f"**{text}**"
