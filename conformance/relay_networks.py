"""Convert the networks TVM itself brings and imports, and write docs/results/relay-networks.md.

    SERDE_TVM=FOLDER python -m conformance.relay_networks [--again] [NETWORK …]

Needs live TVM (tests/relay/tvm_live.py) and MXNet. What is known is kept in
results/relay_networks.json, so that an interrupted run goes on where it stopped; ``--again``
forgets the named networks, or all, first.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.resuming import resume
from serde.errors import SerdeError
from tests.relay.networks import (
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
from tests.relay.tvm_live import TvmError

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "conformance" / "results" / "relay_networks.json"
PAGE = ROOT / "docs" / "results" / "relay-networks.md"
OPSETS = {"txt": (13, 21), "json": (11, 17)}
KINDS = {
    "relay.testing": list(TESTING),
    "Gluon's, by TVM's MXNet frontend": [f"gluon/{n}" for n in GLUON],
}
HEADER = f"""# Networks in Relay

Made by `python -m conformance.relay_networks`. TVM 0.17 writes each network as it is built or
imported, and once more after `SimplifyInference`, `FoldConstant`, `EliminateCommonSubexpr` and
`FuseOps`. Weights and BatchNorm statistics are random. Where a network of relay.testing ends in
a softmax, what that is taken of is made an output too. Both modules go to ONNX from their text
and from their JSON, with the same parameter file, are checked by `onnx.checker` with
`full_check`, and run in ONNX Runtime. A cell has the nodes of the file and the largest difference
from what TVM computes (its virtual machine's code for LLVM at level 3), in terms of the largest
number of the output; the bound is {TOLERANCE:g}. Of Gluon's, TVM computes {len(BY_TVM)}, one or
two of each kind (marked); for the others, which take it minutes to compile, MXNet computes what the
network it exported gives.
"""


def rows(name: str) -> dict[str, Any]:
    """Nodes and error, or the reason of a failure, by stage, form and opset."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(name, folder)
        for stage in STAGES:
            for form in FORMS:
                ir = read(folder, stage, form)
                for opset in OPSETS[form]:
                    try:
                        made = outcome(ir, opset, folder)
                        row: dict[str, Any] = {"nodes": made.nodes, "error": made.error}
                    except SerdeError as error:
                        row = {"failed": str(error)}
                    found[f"{stage} {form} {opset}"] = row
    return found


def page(known: dict[str, Any]) -> Iterator[str]:
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


def tried(name: str) -> dict[str, Any]:
    """The rows of a network, or why there are none."""
    try:
        return rows(name)
    except (SerdeError, TvmError) as error:
        return {"failed": " ".join(str(error).split())}


def worst(found: dict[str, Any]) -> str:
    """The largest error of a network."""
    results = [r for r in found.values() if isinstance(r, dict)]
    return f"{max((r.get('error', float('inf')) for r in results), default=float('inf')):.1e}"


def main(arguments: list[str]) -> None:
    """Run what is not known yet, and write the page after each network."""
    resume(
        arguments, [n for names in KINDS.values() for n in names], KEPT, PAGE, tried, page, worst
    )


if __name__ == "__main__":
    main(sys.argv[1:])
