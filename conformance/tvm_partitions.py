"""Parts and bytes of serde's partitions beside those of TVM's own passes, of the same modules.

TVM annotates what the same lists take, and merges and partitions by ``AnnotateTarget``,
``MergeCompilerRegions`` and ``PartitionGraph``.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from testing.networks import VISION, build, export, feeds, load_params, smallest
from testing.relay.networks import TESTING
from testing.relay.tvm_live import run_script

from .matrix import Cell
from .record import NOT_RUN, RIGHT, WRONG, Outcome

LISTS = 10  # random lists of operators for each module
SCRIPT = Path(__file__).with_name("tvm_partitions_script.py")
Row = dict[str, Any]  # parts and bytes of serde, and of TVM, by list


class TvmPartitions(Cell):
    """Parts and bytes of serde, then of TVM, by random list of operators."""

    seconds = 3600

    def cases(self) -> list[str]:
        testing = [n for n in TESTING if n != "lstm"]  # its cells are functions
        return [*testing, *(f"gluon/{n}" for n in VISION)]

    def run(self, case: str) -> Row:
        kind, _, plain = case.rpartition("/")
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            arguments = _export_gluon(plain, folder) if kind else _describe_testing(plain)
            answers = dict(run_script(SCRIPT, folder, str(LISTS), *arguments))
        return dict(answers["row"])

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        return {name: _outcome(name, counts) for name, counts in row.items()}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}


def _describe_testing(name: str) -> tuple[str, ...]:
    module, options = TESTING[name]
    return "testing", module, json.dumps(options)


def _export_gluon(name: str, folder: Path) -> tuple[str, ...]:
    """Write a network of Gluon into a folder."""
    network = build(name, smallest(name))
    symbol, params = export(network, folder)
    weights = str(folder / "weights.npz")
    np.savez(weights, **load_params(params))
    shapes = {n: x.shape for n, x in feeds(network, 1).items()}
    return "gluon", str(symbol), weights, json.dumps(shapes)


def _outcome(name: str, counts: Any) -> Outcome:
    """Right where serde has no more parts and moves no more bytes."""
    if name == "failed":
        return Outcome.of(WRONG, counts)
    parts, moved, their_parts, their_bytes = counts
    if their_parts is None:
        return Outcome.of(NOT_RUN, "TVM's passes take too long")
    if parts > their_parts or moved > their_bytes:
        reason = f"{parts} parts and {moved} bytes; TVM has {their_parts} and {their_bytes}"
        return Outcome.of(WRONG, reason)
    return Outcome(RIGHT)


HEADER = f"""# Partitions beside TVM's

Made by `python -m conformance relay-networks/partitions`. Networks of `tvm.relay.testing`, and
those of Gluon by TVM's frontend, are partitioned for random lists of their operators, by serde and
by TVM 0.17: `AnnotateTarget`, `MergeCompilerRegions` and `PartitionGraph`. There are {LISTS} lists,
or 3 for networks of more than 150 nodes, for which TVM's passes take minutes; lists that take TVM
more than 20 seconds are left out.

Both cut the same graph, that of the calls of the module, where the same calls are taken. Bytes are
those that parts read and make, weights left out. Parts of TVM that only take a tuple apart do not
count. *Fewer* and *worse* are lists: with fewer parts, with as many parts and fewer bytes, with
more parts or bytes than TVM.

| network | lists | parts | TVM's | MB | TVM's | fewer parts | fewer bytes | equal | worse |
|---|---|---|---|---|---|---|---|---|---|
"""


def page(rows: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/tvm-partitions.md."""
    yield HEADER.rstrip()
    everything: list[Any] = []
    for case, row in sorted(rows.items()):
        lists = [c for name, c in row.items() if name != "failed" and c[2] is not None]
        everything += lists
        if lists:
            yield f"| {' | '.join(map(str, (case, *_count(lists))))} |"
    yield f"| all | {' | '.join(map(str, _count(everything)))} |"
    yield ""
    worse = [(case, name, _outcome(name, counts)) for case, row in sorted(rows.items())
             for name, counts in row.items()]  # fmt: skip
    late = dict.fromkeys(c for c, _, o in worse if o.kind == NOT_RUN)
    if late:
        yield f"TVM's passes took too long on lists of {', '.join(late)}.\n"
    yield from (f"* {c}, {n}: {o.reason}" for c, n, o in worse if o.kind == WRONG)
    yield ""


def _count(lists: Sequence[Any]) -> Iterator[Any]:
    """The cells of a row behind the name of the network."""
    sums = [sum(counts[at] for counts in lists) for at in range(4)]
    fewer = sum(a < c for a, _, c, _ in lists)
    saved = sum(a == c and b < d for a, b, c, d in lists)
    equal = sum(a == c and b == d for a, b, c, d in lists)
    yield from (len(lists), sums[0], sums[2], f"{sums[1] / 1e6:.1f}", f"{sums[3] / 1e6:.1f}")
    worse = sum(_outcome("", counts).kind == WRONG for counts in lists)
    yield from (fewer, saved, equal, worse)
