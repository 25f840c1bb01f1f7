"""Exported programs of PyTorch read into ONNX, beside what PyTorch's own exporter writes.

``$SERDE_TORCH_CPU`` names the folder with PyTorch, ``$SERDE_TORCH_ZOO`` one of packages that have
the models and what the exporter needs: onnx, onnxscript, torchvision, timm and transformers.
In ``$SERDE_PROGRAMS`` the exported files are kept, and used again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx

import serde
from serde.errors import SerdeError

from .matrix import Cell, last_line, reason
from .record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome
from .record import rows as rows_of

ROOT = Path(__file__).parents[1]
WAYS = {"serde": "serde", "dynamo": "torch.onnx"}
COLORS = re.compile(r"\x1b\[[\d;]*m")
Row = dict[str, Any]


def is_able() -> bool:
    """Whether the models and the exporter are here."""
    return bool(os.environ.get("SERDE_TORCH_ZOO") and os.environ.get("SERDE_TORCH_CPU"))


def run_script(*arguments: str) -> str:
    """What the script prints in the Python that has PyTorch."""
    python = Path(os.environ["SERDE_TORCH_CPU"], "v/bin/python")
    done = subprocess.run(
        [python, "-m", "conformance.exported_programs_script", *arguments],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(last_line(Exception(done.stderr)))
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


@contextmanager
def open_folder(name: str) -> Iterator[Path]:
    """The folder of exported files, which stays where one is named."""
    if "SERDE_PROGRAMS" in os.environ:
        folder = Path(os.environ["SERDE_PROGRAMS"], name)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory() as place:
            yield Path(place)


class Programs(Cell):
    """Cases that are exported in both ways; each way has an outcome, and nodes."""

    seconds = 1800

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        if "failed" in row:
            return {"serde": Outcome.of(WRONG, row["failed"])}
        return {"serde": Outcome.parse(row["serde"])}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the packages need not be here


class Models(Programs):
    """Architectures with random weights."""

    def cases(self) -> list[str]:
        return json.loads(run_script("list")) if is_able() else []

    def run(self, case: str) -> Row:
        with open_folder("models") as folder:
            name = case.replace("/", "-")
            if not (folder / f"{name}.npz").exists():
                run_script("export", case, str(folder / name))
            return measure(folder, name)


class Operators(Programs):
    """The cases of operators, which one process of PyTorch exports together."""

    @cached_property
    def by_name(self) -> dict[str, Any]:
        """The cases by name: the operator, and a number where it has several."""
        from testing.pt2.cases import list_cases

        names: dict[str, Any] = {}
        for case in list_cases():
            number = sum(name.split()[0] == case[0] for name in names)
            names[f"{case[0]} {number + 1}" if number else case[0]] = case
        return names

    @cached_property
    def exports(self) -> tuple[Path, dict[str, str]]:
        """The folder of the exported files, and their names by case."""
        from testing.pt2.run import export_cases

        cases = [*self.by_name.values()]
        with ExitStack() as stack:
            folder = stack.enter_context(open_folder("operators"))
            files = export_cases(cases, folder, "--onnx")
            self.close = stack.pop_all()
        return folder, dict(zip(self.by_name, files, strict=True))

    @cached_property
    def core(self) -> set[str]:
        """The overloads that PyTorch counts among the core ATen operators."""
        return set(json.loads(run_script("core")))

    def cases(self) -> list[str]:
        return [*self.by_name] if is_able() else []

    def run(self, case: str) -> Row:
        folder, files = self.exports
        op = self.by_name[case][0]
        return {**measure(folder, files[case]), "core": op in self.core}


def measure(folder: Path, name: str) -> Row:
    """The outcome of each way, and the nodes of its file where it is right."""
    theirs = folder / f"{name}.dynamo.onnx"
    ours = folder / f"{name}.onnx"
    opset = onnx.load(theirs).opset_import[0].version if theirs.exists() else None
    row: Row = {"serde": str(convert(folder / f"{name}.pt2", ours, opset)), "dynamo": ""}
    for way, path in (("serde", ours), ("dynamo", theirs)):
        outcome = Outcome.parse(row[way])
        if outcome.kind in (REFUSED, NOT_RUN):
            continue
        if path.exists():
            outcome = judge(folder / f"{name}.npz", path)
        else:
            text = COLORS.sub("", (folder / f"{name}.dynamo.error").read_text())
            outcome = Outcome.of(REFUSED, text.splitlines()[0][:100])
        row[way] = str(outcome)
        if outcome.kind == RIGHT:
            row[f"{way} nodes"] = count_nodes(onnx.load(path).graph)
    return row


def convert(program: Path, target: Path, opset: int | None) -> Outcome:
    """Convert a program for the opset that the other file has."""
    if not program.exists():
        return Outcome.of(NOT_RUN, program.with_suffix(".error").read_text())
    try:
        serde.convert(program, target, from_format="pt2", opset=opset, fold_batchnorm=True)
    except SerdeError as error:
        return Outcome.of(REFUSED, reason(error))
    return Outcome(RIGHT)


def judge(arrays: Path, model: Path) -> Outcome:
    """Whether ONNX Runtime computes what PyTorch did."""
    from testing.pt2.run import check

    try:
        difference = check(arrays, model)
    except Exception as error:  # whatever a runtime says of a file
        why = last_line(error).replace(f"{model.parent}{os.sep}", "")
        return Outcome.of(WRONG, f"{type(error).__name__}: {why}"[:150])
    return Outcome.of(WRONG, difference) if difference else Outcome(RIGHT)


def count_nodes(graph: onnx.GraphProto) -> int:
    """The nodes of a graph and its subgraphs, without constants."""
    total = sum(node.op_type != "Constant" for node in graph.node)
    bodies = (a.g for node in graph.node for a in node.attribute if a.HasField("g"))
    return total + sum(map(count_nodes, bodies))


HEADER = """# Exported programs of PyTorch

Made by `python -m conformance.pages`. Every case is exported by live PyTorch 2.13 in two ways:
`torch.export.save`, which serde reads without PyTorch, and `torch.onnx.export(dynamo=True)` with
onnxscript. ONNX Runtime runs both files, at the same opset, and the numbers are compared with those
PyTorch computes: 0.01 % of the largest number is allowed. Buffers that the module changes have to
be outputs, as serde writes them. Nodes are counted without `Constant`, subgraphs included, over the
cases that both ways have right; serde converts with `--fold-batchnorm`, as torch.onnx always does.
"""
OPERATORS = """## Operators

An operator counts as right where all its cases are. Core operators are those that PyTorch tags so,
without their forms that write to `out=`.
"""
ARCHITECTURES = """## Architectures

Weights are random. `training/` are networks in training mode, `buffers/` modules that change their
buffers. Batches, and lengths of texts, are of any size where PyTorch exports them so. Fifteen cases
are there for what a program can hold beside layers (control flow, complex numbers, buffers, batch
norms that train, projected LSTMs); of the other 98, serde has 98 right and torch.onnx 97.
"""


def page(models: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/exported-programs.md; of operators too, where they are recorded."""
    yield HEADER
    if operators := rows_of("pt2-operators/onnx"):
        yield from operator_lines(operators)
    yield from model_lines(models)


def operator_lines(operators: Mapping[str, Row]) -> Iterator[str]:
    """The section about operators."""
    yield OPERATORS
    yield f"| | {' | '.join(WAYS.values())} |"
    yield "|---|---|---|"
    core = {case: row for case, row in operators.items() if row.get("core")}
    for label, rows in (("cases", operators), ("of core operators", core)):
        yield f"| {label}: right of {len(rows)} | {_right(rows.values())} |"
    by_operator = group_by_operator(core)
    yield f"| core operators right, of {len(by_operator)} | {_right_operators(by_operator)} |"
    yield f"| nodes | {_nodes(operators.values())} |"
    yield ""
    yield from _details("case", {c: r for c, r in operators.items() if not _is_right(r)})


def model_lines(models: Mapping[str, Row]) -> Iterator[str]:
    """The section about architectures."""
    yield ARCHITECTURES
    yield f"| | {' | '.join(WAYS.values())} |"
    yield "|---|---|---|"
    yield f"| right, of {len(models)} | {_right(models.values())} |"
    yield f"| nodes | {_nodes(models.values())} |"
    yield ""
    yield from _details("model", models)


def group_by_operator(rows: Mapping[str, Row]) -> dict[str, list[Row]]:
    """Rows by the operator without its overload."""
    groups: dict[str, list[Row]] = {}
    for case, row in rows.items():
        groups.setdefault(case.split()[0].partition(".")[0], []).append(row)
    return groups


def _kind(row: Row, way: str) -> str:
    return Outcome.parse(row.get(way, WRONG)).kind


def _is_right(row: Row) -> bool:
    return all(_kind(row, way) == RIGHT for way in WAYS)


def _right(rows: Any) -> str:
    listed = list(rows)
    return " | ".join(str(sum(_kind(r, way) == RIGHT for r in listed)) for way in WAYS)


def _right_operators(groups: Mapping[str, Sequence[Row]]) -> str:
    counts = (
        sum(all(_kind(r, way) == RIGHT for r in rows) for rows in groups.values()) for way in WAYS
    )
    return " | ".join(map(str, counts))


def _nodes(rows: Any) -> str:
    both = [row for row in rows if _is_right(row)]
    return " | ".join(f"{sum(row[f'{way} nodes'] for row in both):,}" for way in WAYS)


def _details(label: str, rows: Mapping[str, Row]) -> Iterator[str]:
    """A line for each row, with its nodes where it is right."""
    yield f"| {label} | {' | '.join(WAYS.values())} |"
    yield "|---|---|---|"
    for name, row in rows.items():
        cells = (_cell(row, way) for way in WAYS)
        yield f"| `{name}` | {' | '.join(cells)} |"
    yield ""


def _cell(row: Row, way: str) -> str:
    if "failed" in row:
        return f"failed: {row['failed'][:60]}"
    if f"{way} nodes" in row:
        return f"{row[f'{way} nodes']} nodes"
    return row[way].replace("|", "\\|")[:110]
