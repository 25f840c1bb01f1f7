"""Write what becomes of every forward operator of MXNet 1.9.1's registry.

    python -m tests.mxnet.make_table

``docs/reference/mxnet-operators.md`` puts each of them in one class, told by the rule tables, the declared
reasons and the cases that are run against live MXNet; ``test_registry.py`` compares the file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from serde.formats.mxnet.bind.op_names import CANONICAL
from serde.formats.mxnet.operators import describe
from serde.formats.mxnet.ops.random.sampling import draws
from serde.formats.mxnet.rules import SECOND, changed_rules, reads
from serde.formats.mxnet.unsupported_ops import REFUSED
from testing.mxnet.cases import Case, Refusal
from testing.mxnet.make_registry import FILE, SECOND_FILE
from tests.mxnet.draws import DRAWN

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "reference" / "mxnet-operators.md"
FEWEST = 3  # configurations compared with live MXNet before an operator counts as converted
CONVERTED, FORM, RANDOM, NOT_CONVERTED, OPEN = CLASSES = (
    "converted", "inference form", "random", "refused", "not yet",
)  # fmt: skip
GPU_ONLY = "compared with NumPy: MXNet computes it on GPUs only"
NOTES = {
    "RNN": "with sequence lengths, which MXNet honours on GPUs only, each sample is as if alone",
    "_contrib_count_sketch": GPU_ONLY,
    "_contrib_fft": GPU_ONLY,
    "_contrib_ifft": GPU_ONLY,
    "_npx_constraint_check": "tells whether the constraint holds, and never raises",
}
MEANING = {
    CONVERTED: f"computes what MXNet computes, compared in at least {FEWEST} configurations",
    FORM: "training only: does what the note says, and the report of a conversion says so",
    RANDOM: "refused unless `--random` says `onnx` or `input`; then drawn from the same distribution",
    NOT_CONVERTED: "for the reason in the note, which the error gives too",
    OPEN: "",
}


class Row(NamedTuple):
    """One operator: its class, the configurations that are run, and what there is to say."""

    name: str
    kind: str
    cases: int
    refusals: int
    note: str


@cache
def count_cases(folder: str) -> tuple[Counter[str], Counter[str]]:
    """How many configurations of each operator are compared, and how many must be refused."""
    compared, refused = Counter[str](), Counter[str]()
    for path in sorted(Path(__file__).parent.glob(f"{folder}/test_*.py")):
        for case in getattr(import_module(f"tests.mxnet.{folder}.{path.stem}"), "CASES", ()):
            if isinstance(case, Case):
                compared[case.op] += 1
            elif isinstance(case, Refusal):
                refused[case.op] += 1
    return compared, refused


def row(name: str, folder: str = "ops") -> Row:
    """What becomes of one operator, with the cases of a folder."""
    compared, refused = count_cases(folder)
    counts = compared[name], refused[name]
    if name in reads or (folder != "ops" and name in changed_rules(SECOND)):
        inference = describe(name).inference
        kind = FORM if inference else CONVERTED
        return Row(name, kind, *counts, inference or NOTES.get(name, ""))
    if name in draws.rules:
        return Row(name, RANDOM, len(DRAWN.get(name, ())), counts[1], "")
    if name in REFUSED:
        return Row(name, NOT_CONVERTED, *counts, REFUSED[name])
    return Row(name, OPEN, *counts, "")


def rows() -> list[Row]:
    """Every forward operator, by name."""
    return [row(name) for name in sorted(json.loads(FILE.read_text()))]


def rows_of_second() -> list[Row]:
    """The forward operators of MXNet 2.0 that MXNet 1.9.1 has not, or has otherwise."""
    known = json.loads(FILE.read_text())
    listed = {n for n in json.loads(SECOND_FILE.read_text()) if CANONICAL.get(n, n) not in known}
    return [row(name, "releases") for name in sorted(listed | set(changed_rules(SECOND)))]


def as_markdown() -> Iterator[str]:
    """The lines of the file."""
    every = rows()
    counts = Counter(r.kind for r in every)
    yield "# MXNet's operators"
    yield ""
    yield "Made by `python -m tests.mxnet.make_table`; a test compares it with the rules and cases."
    yield f"MXNet 1.9.1 registers {len(every)} forward operators (backward ones and second names"
    yield "left out). A configuration is a set of attributes, ranks and element types that is run by"
    yield "MXNet and, converted with static and with named sizes at three opsets, by ONNX Runtime."
    yield ""
    yield "| class | operators | |"
    yield "|---|---:|---|"
    for kind in CLASSES:
        if counts[kind]:
            yield f"| {kind} | {counts[kind]} | {MEANING[kind]} |"
    yield ""
    yield "| operator | class | configurations | refusals tested | note |"
    yield "|---|---|---:|---:|---|"
    for r in every:
        yield as_line(r)
    second = rows_of_second()
    counts = Counter(r.kind for r in second)
    yield ""
    yield "## MXNet 2.0"
    yield ""
    yield f"MXNet 2.0.0b1 brought {len(second)} operators, or computes them otherwise; its other"
    yield f"operators are those above. Of these {counts[CONVERTED]} are converted; the numbers that"
    yield "configurations are compared with are recorded (`tests/mxnet/recorded.py`)."
    yield ""
    yield "| operator | class | configurations | refusals tested | note |"
    yield "|---|---|---:|---:|---|"
    yield from map(as_line, second)


def as_line(r: Row) -> str:
    """An operator's line."""
    return f"| `{r.name}` | {r.kind} | {r.cases or ''} | {r.refusals or ''} | {r.note} |"


if __name__ == "__main__":
    TABLE.write_text("\n".join(as_markdown()) + "\n")
