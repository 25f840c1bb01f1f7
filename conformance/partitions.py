"""Models in parts: for the backends that come with serde, opsets, and random operator lists.

Each model is partitioned, saved, and run part by part in ONNX Runtime, beside the whole model in
ONNX Runtime.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx

import serde
from serde.backends.description import Backend, backend_names, get_backend
from serde.backends.partition import partition, prepare_graph
from serde.backends.parts import ACCELERATOR, Partitioned
from serde.errors import SerdeError
from serde.ir.graph import Graph
from serde.legalize.target import Target
from serde.verification.source_runs import GRAPH_OPSET
from tests import light_models, networks
from tests.onnx_live import error, run_model

from . import relay_corpus
from .matrix import Cell, reason
from .record import REFUSED, WRONG, Outcome

TOLERANCE = 1e-5
OPSETS = ("opset 11", "opset 17")
LISTS = 50  # random lists of operators that each model is partitioned for
Row = dict[str, Any]


class Partitions(Cell):
    """Parts of the backend, all parts, share of nodes taken, bytes moved, and error, by backend."""

    seconds = 3600

    def cases(self) -> list[str]:
        return [*networks.NETWORKS, *light_models.LIGHT, *relay_corpus.names()]

    def run(self, case: str) -> Row:
        graph, feeds = _read(case)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "whole.onnx"
            serde.save(graph, path, opset=GRAPH_OPSET)
            wanted = run_model(path, feeds)
        backends = [get_backend(name) for name in (*backend_names(), *OPSETS)]
        backends += [Backend(_random_target(graph, seed)) for seed in range(LISTS)]
        return {b.name: _outcome(graph, b, feeds, wanted) for b in backends}

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        return {name: _outcome_of(found) for name, found in row.items()}

    def make_failed_row(self, why: str) -> Row:
        return {"": {"failed": why}}

    def recorded(self, before: Mapping[str, Any], found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **found}  # the corpus need not be here


def _outcome_of(found: Any) -> Outcome:
    if "failed" in found:
        return Outcome.of(WRONG, found["failed"])
    if "refused" in found:
        return Outcome.of(REFUSED, found["refused"])
    return Outcome.judge_error(found["error"], TOLERANCE)


def _read(case: str) -> tuple[Graph, Mapping[str, Any]]:
    """A model as it is partitioned, and inputs for it."""
    if case in light_models.LIGHT:
        path = light_models.model_path(case)
        return prepare_graph(path), light_models.feeds(onnx.load(path))
    if case in networks.NETWORKS:
        size = networks.smallest(case) if case in networks.VISION else None
        built = networks.build(case, size)
        given = networks.feeds(built, 1)
        with tempfile.TemporaryDirectory() as folder:
            symbol, _ = networks.export(built, Path(folder))
            graph = prepare_graph(symbol, inputs=given)
            for value in graph.constants():  # the files are gone soon
                value.tensor = value.tensor and type(value.tensor).of(value.tensor.load())
        return graph, given
    _, graph, given = relay_corpus.load_static(case)
    return prepare_graph(graph), given


def _random_target(graph: Graph, seed: int) -> Target:
    """A target that takes some of a model's operators."""
    rng = random.Random(seed)
    operators = sorted({n.op for n in graph.all_nodes() if not n.domain})
    chosen = rng.sample(operators, rng.randint(1, max(len(operators) - 1, 1))) if operators else []
    return Target(f"list {seed}", GRAPH_OPSET, {op: {} for op in chosen})


def _outcome(graph: Graph, backend: Backend, feeds: Mapping[str, Any], wanted: Any) -> Row:
    try:
        found = partition(graph, backend)
        check_parts(found)
        with tempfile.TemporaryDirectory() as folder:
            found.save(folder)
            given = {v.name: feeds[v.name] for v in graph.inputs}
            got = list(serde.run(folder, given).values())
    except SerdeError as problem:
        return {"refused": reason(problem)}
    except Exception as problem:  # whatever it raises is a defect
        return {"failed": f"{type(problem).__name__}: {problem}"[:300]}
    worst = max((error(a, b) for a, b in zip(got, wanted, strict=True)), default=0.0)
    return {
        "parts": len(found.accelerator_parts), "of": len(found.parts), "bytes": found.bytes_moved,
        "share": round(found.report.share_of_nodes, 4), "error": float(worst),
    }  # fmt: skip


def check_parts(found: Partitioned) -> None:
    """Raise ValueError for parts out of order, or an operator that the backend does not take."""
    known = {v.name for v in found.graph.inputs}
    supports = found.backend.target.supports
    for part in found.parts:
        if late := {v.name for v in part.graph.inputs} - known:
            raise ValueError(f"{part.name} reads {min(late)!r} before it is computed")
        known |= {v.name for v in part.graph.outputs}
        if part.kind == ACCELERATOR and part.legalized is not None and supports is not None:
            others = {n.op for n in part.legalized.all_nodes()} - supports.keys()
            if others:
                raise ValueError(f"{part.name} has {min(others)}, which is not taken")


HEADER = f"""# Models in parts

Made by `python -m conformance models/partitions`. Each model is partitioned for the backends that
come with serde, for two opsets, and for {LISTS} random lists of its operators
([partition-a-model.md](../how-to/partition-a-model.md)). Its parts run in ONNX Runtime, one after
another, and so does the whole model; right is within {TOLERANCE:g} of the largest number of the
output. It is checked that parts are in order and that the backend's have operators of its list
only.
"""


def page(rows: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/partitions.md."""
    yield HEADER
    backends = (*backend_names(), *OPSETS)
    yield f"A cell has the backend's parts, and the share of nodes it takes. {len(rows)} models.\n"
    yield f"| model | {' | '.join(backends)} | random lists | worst error |"
    yield "|---|" + "---|" * (len(backends) + 2)
    for case, row in sorted(rows.items()):
        cells = [_cell(row.get(b, {})) for b in backends]
        lists = [found for name, found in row.items() if name.startswith("list ")]
        right = sum(_outcome_of(found).kind == "right" for found in lists)
        errors = [found["error"] for found in row.values() if "error" in found]
        worst = f"{max(errors):.0e}" if errors else "-"
        yield f"| {case} | {' | '.join(cells)} | {right} of {len(lists)} right | {worst} |"
    yield ""
    problems = [(case, name, _outcome_of(found)) for case, row in sorted(rows.items())
                for name, found in row.items() if _outcome_of(found).kind != "right"]  # fmt: skip
    yield from (f"* {case} for {name}: {outcome}" for case, name, outcome in problems)
    yield ""


def _cell(found: Mapping[str, Any]) -> str:
    if "parts" not in found:
        return _outcome_of(found).kind if found else "-"
    return f"{found['parts']}, {found['share']:.0%}"
