"""Public models of TensorFlow Lite, read and written again, beside the files that they were.

The files are those of ``tflite_corpus``. Integers of outputs are compared bit by bit, in LiteRT's
reference kernels and with XNNPACK.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import serde
from serde.errors import SerdeError
from serde.formats.tflite.decode import decode
from serde.ir.graph import Graph

from .matrix import NotRun, reason
from .record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome, Packed
from .tflite_corpus import HASH, TfliteCorpus, differ, feed_variables, run_file, run_litert
from .tflite_corpus import page as corpus_page

KERNELS = {"reference": False, "XNNPACK": True}
EQUAL = "equal"
Array = np.ndarray[Any, Any]
Row = Mapping[str, Any]


class TfliteRoundTrips(TfliteCorpus):
    """What integers of outputs differ by, and how many operators there are before and behind."""

    variants = (*KERNELS, "transposes")

    def run(self, case: str) -> Row:
        path = self.paths[case]
        try:
            feeds, results, counted = run_file(path)
        except NotRun as error:
            return {"not run": str(error).replace(str(path), path.name)}
        except SerdeError as error:
            return {"refused": reason(error).replace(str(path), path.name)}
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder, "m.tflite")
            try:
                graph = serde.load(path)
                feeds = feed_variables(path, graph, feeds)
                serde.save(graph, again)
            except SerdeError as error:
                return {"refused": reason(error)}
            before, after = (count_operators(decode(p)) for p in (path, again))
            runs = [run_litert(again, decode(again), feeds, d) for d in (False, True)]
        row = {
            "operators": [before.total(), after.total()],
            "transposes": [before["TRANSPOSE"], after["TRANSPOSE"]],
        }
        if any(a.dtype.kind in "iub" for a in results[0]):
            pairs = zip(KERNELS, results, runs, strict=False)
            row["integers"] = {kernels: compare(a, b) for kernels, a, b in pairs}
        elif why := differ(results, runs[0], counted):
            return {"failed": why}
        return row

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        for key, kind in (("not run", NOT_RUN), ("refused", REFUSED), ("failed", WRONG)):
            if key in row:
                return {"": Outcome.of(kind, row[key])}
        before, after = row["transposes"]
        reasons = {k: how for k, how in row.get("integers", {}).items() if how != EQUAL}
        if after > before:
            reasons["transposes"] = f"{before} become {after}"
        return {
            v: Outcome.of(WRONG, reasons[v]) if v in reasons else Outcome(RIGHT)
            for v in (*row.get("integers", {}), "transposes")
        }

    def make_failed_row(self, why: str) -> Row:
        return {"failed": why}


def count_operators(graph: Graph) -> Counter[str]:
    """How many of each operator a graph and what it runs have."""
    counts = Counter(node.op for node in graph.nodes)
    for node in graph.nodes:
        for value in node.attrs.values():
            counts += count_operators(value) if isinstance(value, Graph) else Counter()
    return counts


def compare(before: Sequence[Array], after: Sequence[Array]) -> str:
    """Whether integers are equal, else how many are not, and by how much."""
    off = [
        np.abs(a.astype(np.int64) - b.astype(np.int64))
        for a, b in zip(before, after, strict=False)  # what operators keep is behind
        if a.dtype.kind in "iub"
    ]
    most, count = max(int(d.max(initial=0)) for d in off), sum(np.count_nonzero(d) for d in off)
    return f"{count} of {sum(d.size for d in off)} off, by {most} at most" if most else EQUAL


TITLE = """
## Read and written as TensorFlow Lite again

Integers of outputs are compared bit by bit with those of the file that was read, in LiteRT's
reference kernels and with XNNPACK: of {integers} files with integer outputs {equal} are equal in
both. Of {all} files {fewer} have fewer operators than before, {more} have more; {moved} have more
`TRANSPOSE`s. Variables are inputs and outputs then.

| file | operators | `TRANSPOSE` | integers, reference | XNNPACK |
|---|---|---|---|---|"""


def page(
    corpus: Mapping[str, Packed], rows: Mapping[str, Row], *frameworks: Mapping[str, Packed]
) -> Iterator[str]:
    """The page of the corpus."""
    yield from corpus_page(corpus, *frameworks)
    written = {name: row for name, row in rows.items() if "operators" in row}
    integers = [row["integers"] for row in written.values() if "integers" in row]
    sizes = [row["operators"] for row in written.values()]
    yield TITLE.format(
        all=len(written), integers=len(integers),
        equal=sum({*found.values()} == {EQUAL} for found in integers),
        fewer=sum(b < a for a, b in sizes), more=sum(b > a for a, b in sizes),
        moved=sum(_adds_transposes(row) for row in written.values()),
    )  # fmt: skip
    for name, row in written.items():
        found = row.get("integers", {})
        if _adds_transposes(row) or {*found.values()} - {EQUAL}:
            counts = (" → ".join(map(str, row[k])) for k in ("operators", "transposes"))
            cells = (name[HASH + 1 :], *counts, *(found.get(k, "") for k in KERNELS))
            yield f"| {' | '.join(cells)} |"
    yield ""


def _adds_transposes(row: Row) -> bool:
    before, after = row["transposes"]
    return bool(after > before)
