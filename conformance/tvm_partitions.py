"""Parts and bytes of serde's partitions beside those of TVM's own passes, of the same modules.

TVM annotates what the same lists take, and merges and partitions by ``AnnotateTarget``,
``MergeCompilerRegions`` and ``PartitionGraph``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.relay import networks
from tests.relay.tvm_live import beside

from .matrix import Cell
from .record import RIGHT, WRONG, Outcome

LISTS = 10  # random lists of operators for each module
SCRIPT = Path(__file__).with_name("tvm_partitions_script.py")
Row = dict[str, Any]  # parts and bytes of serde, and of TVM, by list


class TvmPartitions(Cell):
    """Parts and bytes of serde, then of TVM, by random list of operators."""

    seconds = 3600

    def cases(self) -> list[str]:
        return list(networks.TESTING)

    def run(self, case: str) -> Row:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            networks.write(case, folder)
            files = (str(folder / name) for name in ("imported.json", "net.params"))
            found = dict(beside(SCRIPT, folder, *files, str(LISTS)))
        return dict(found["row"])

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        return {name: _outcome(name, counts) for name, counts in row.items()}

    def recorded(self, before: Mapping[str, Any], found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **found}


def _outcome(name: str, counts: Any) -> Outcome:
    """Right where serde has no more parts, and with as many parts moves no more bytes."""
    if name == "failed":
        return Outcome.of(WRONG, counts)
    parts, moved, their_parts, their_bytes = counts
    if parts > their_parts or (parts == their_parts and moved > their_bytes):
        reason = f"{parts} parts and {moved} bytes; TVM has {their_parts} and {their_bytes}"
        return Outcome.of(WRONG, reason)
    return Outcome(RIGHT)


HEADER = f"""# Partitions beside TVM's

Made by `python -m conformance relay-networks/partitions`. Networks of `tvm.relay.testing` are
partitioned for {LISTS} random lists of their operators, by serde and by TVM 0.17: `AnnotateTarget`,
`MergeCompilerRegions` and `PartitionGraph`. Both cut the same graph, that of the calls of the
module, where the same calls are taken. Bytes are those that parts read
and make. Parts of TVM that only take a tuple apart do not count.

| network | parts | TVM's parts | MB | TVM's MB | fewer parts | fewer bytes | equal | worse |
|---|---|---|---|---|---|---|---|---|
"""


def page(rows: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/tvm-partitions.md."""
    yield HEADER.rstrip()
    for case, row in sorted(rows.items()):
        lists = [counts for name, counts in row.items() if name != "failed"]
        sums = [sum(counts[at] for counts in lists) for at in range(4)]
        fewer = sum(a < c for a, _, c, _ in lists)
        saved = sum(a == c and b < d for a, b, c, d in lists)
        equal = sum(a == c and b == d for a, b, c, d in lists)
        ours, theirs = f"{sums[1] / 1e6:.1f}", f"{sums[3] / 1e6:.1f}"
        cells = (case, sums[0], sums[2], ours, theirs, fewer, saved,
                 equal, len(lists) - fewer - saved - equal)  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    worse = [(case, name, _outcome(name, counts)) for case, row in sorted(rows.items())
             for name, counts in row.items()]  # fmt: skip
    yield from (f"* {c}, {n}: {o.reason}" for c, n, o in worse if o.kind != RIGHT)
    yield ""
