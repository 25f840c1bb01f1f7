"""Nodes that optimizers of ONNX files find to remove from whole models."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx

import serde
from serde.errors import SerdeError
from testing.consumers.consumers_live import CONSUMERS, OPTIMIZERS, ConsumerError

from .consumer_models import GROUPS
from .matrix import Cell, last_line, reason
from .model_sources import names, open_model
from .record import REFUSED, RIGHT, WRONG, Outcome

TOOLS = ("onnxslim", "onnxsim", "onnxoptimizer")
FOLDED = {"fold_batchnorm": True}
Row = dict[str, Any]


class Optimizers(Cell):
    """The nodes of a file, and those that each tool removes, by variant of the model."""

    seconds = 1200

    def cases(self) -> list[str]:
        return names()

    def run(self, case: str) -> Row:
        with tempfile.TemporaryDirectory() as place:
            model = open_model(case, Path(place))
            return {v: count_nodes(model.reads[v], Path(place)) for v in model.reads}

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        if "failed" in row:
            return {"": Outcome.of(WRONG, row["failed"])}
        return {
            f"{variant} {tool}".strip(): _outcome(entry, tool)
            for variant, entry in row.items() for tool in TOOLS
        }  # fmt: skip

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the libraries need not be here


def count_nodes(read: Any, folder: Path) -> Row:
    """What each tool leaves of a model."""
    path, new_path = folder / "written.onnx", folder / "optimized.onnx"
    try:
        serde.save(read(**FOLDED), path, external_data="never")
    except SerdeError as problem:
        return {"refused": reason(problem)}
    before = operators(path)
    entry: Row = {"nodes": before.total()}
    for tool in TOOLS:
        try:
            CONSUMERS.ask(tool, str(path), str(new_path))
        except ConsumerError as problem:
            entry[tool] = f"failed: {last_line(problem)}"
            continue
        after = operators(new_path)
        if after.total() < before.total():
            entry[tool] = {op: n for op in before | after if (n := before[op] - after[op])}
    return entry


def operators(path: Path) -> Counter[str]:
    """The nodes of a file by operator, those of its subgraphs too; constants are none."""
    stack, counts = [onnx.load(path).graph], Counter[str]()
    while stack:
        for node in stack.pop().node:
            counts[node.op_type] += node.op_type != "Constant"
            stack += [a.g for a in node.attribute if a.HasField("g")]
    return +counts


def _outcome(entry: Row, tool: str) -> Outcome:
    if "refused" in entry:
        return Outcome.of(REFUSED, entry["refused"])
    removed = entry.get(tool)
    if not removed or isinstance(removed, str):
        return Outcome(RIGHT)
    return Outcome.of(WRONG, f"{tool} removes {show(removed)}")


def show(removed: Mapping[str, int]) -> str:
    """``2 Transpose, 1 Reshape``, with what is made in their place."""
    gone = ", ".join(f"{n} {op}" for op, n in removed.items() if n > 0)
    new_ops = ", ".join(f"{-n} {op}" for op, n in removed.items() if n < 0)
    return f"{gone} for {new_ops}" if new_ops else gone


HEADER = """# Nodes that optimizers remove

Made by `python -m conformance.pages`. Each model is written with `--fold-batchnorm` at the default
opset, and handed to {tools}. A cell has the nodes that the tool removes, and those that it makes of
them; an empty one, that it finds none. A second row is of a named number of samples.
"""


def page(known: Mapping[str, Mapping[str, Row]]) -> Iterator[str]:
    """The lines of docs/results/optimizers.md."""
    yield HEADER.format(tools=", ".join(t.replace("==", " ") for t in OPTIMIZERS))
    for title, belongs in GROUPS.items():
        yield f"## {title}\n"
        yield f"| model | nodes | {' | '.join(TOOLS)} |\n|---|---:|" + "---|" * len(TOOLS)
        for name in known:
            for variant, entry in known[name].items() if belongs(name) else ():
                cells = (_cell(entry.get(tool)) for tool in TOOLS)
                label = f"{name.partition('/')[2] or name} {variant}".strip()
                nodes = entry.get("nodes", f"refused: {entry.get('refused')}")
                yield f"| {label} | {nodes} | {' | '.join(cells)} |"
        yield ""


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value.replace("|", "/")[:100]
    return f"**{show(value)}**" if value else ""
