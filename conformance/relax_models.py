"""Models in Relax: MXNet's networks, the light models of onnx, and the corpus of Relay modules.

Each is written with the profile ``relax`` and run by TVM's importer in an environment of its own,
see testing/relax/relax_live.py. The page lists what the profile does with each operator as well.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx

import serde
from serde.errors import SerdeError
from serde.formats.onnx.consumers.relax.dynamic_shape_support import SYMBOLIC
from serde.formats.onnx.consumers.relax.support_table import SUPPORTED
from serde.formats.onnx.consumers.relax.target import OPSET, RELAX
from serde.ir.graph import Graph
from testing import light_models, networks
from testing.onnx_live import error, run_model
from testing.relax.relax_live import NEEDS, RelaxError, run

from . import relay_corpus
from .matrix import Cell, NotRun, last_line, reason
from .record import NOT_RUN, RIGHT, WRONG, Outcome

TOLERANCE = 1e-4
KINDS = {"failed": WRONG, "not compared": NOT_RUN}  # what they count as
Result = list[Any]  # what became of a model, and the error, or why


def in_relax(graph: Graph, feeds: Any) -> list[Any]:
    """What Relax's virtual machine computes."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.onnx"
        serde.save(graph, path, profile="relax")
        return run(path, {v.name: feeds[v.name] for v in graph.inputs})


class RelaxModels(Cell):
    """What became of a model, and the error, or why there is none."""

    seconds = 1200

    def cases(self) -> list[str]:
        return [*networks.NETWORKS, *light_models.LIGHT, *relay_corpus.names()]

    def run(self, case: str) -> Result:
        try:
            if case in light_models.LIGHT:
                return light(case)
            return network(case) if case in networks.NETWORKS else module(case)
        except NotRun as problem:
            return ["not compared", str(problem)]
        except SerdeError as problem:
            return ["refused", reason(problem)]
        except RelaxError as problem:
            return ["failed", last_line(problem)]

    def outcomes(self, case: str, row: Result) -> dict[str, Outcome]:
        kind, why = row
        return {"": Outcome.of(KINDS.get(kind, kind), "" if kind == RIGHT else why)}

    def make_failed_row(self, why: str) -> Result:
        return ["failed", why]

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the corpus need not be here


def network(name: str) -> Result:
    """One of MXNet's networks, for one sample."""
    size = networks.smallest(name) if name in networks.VISION else None
    built = networks.build(name, size)
    feeds = networks.feeds(built, 1)
    expected = networks.compute(built, feeds)
    with tempfile.TemporaryDirectory() as folder:
        symbol, _ = networks.export(built, Path(folder))
        got = in_relax(serde.load(symbol, inputs=feeds), feeds)
    return judge(max(error(a, b) for a, b in zip(got, expected, strict=True)))


def light(name: str) -> Result:
    """One of the light models."""
    path = light_models.model_path(name)
    feeds = light_models.feeds(onnx.load(path))
    got = in_relax(serde.load(path), feeds)
    expected = run_model(onnx.load(path), feeds)
    return judge(max(error(a, b) for a, b in zip(got, expected, strict=True)))


def module(name: str) -> Result:
    """A module of the corpus, with numbers for its named sizes."""
    case, graph, feeds = relay_corpus.load_static(name)
    how = relay_corpus.difference(name, case.outputs, in_relax(graph, feeds))
    return ["right", 0.0] if how is None else ["wrong", how]


def judge(worst: float) -> Result:
    """An error, and whether it is small enough."""
    return ["right" if worst < TOLERANCE else "wrong", worst]


HEADER = """# Models in Relax

Made by `python -m conformance models/relax`. Each model is written with the profile `relax`, read
by TVM's own importer (`tvm.relax.frontend.onnx.from_onnx`, apache-tvm {tvm}), compiled for LLVM and
run in Relax's virtual machine. Right is within {tolerance:g} of the source's numbers in its own
runtime, in terms of the largest number of the output; sizes are numbers. ONNX's node tests are on a
page of their own, `node-tests-relax.md`.
"""
GROUPS = {
    "MXNet's networks": "random weights, vision networks at a small image size; beside MXNet 1.9.1",
    "The light models of the onnx package": "beside ONNX Runtime",
    "The Relay corpus": "modules TVM 0.17 wrote; beside the outputs it computed",
}


def group(name: str) -> str:
    """The group a model belongs to."""
    first, second, third = GROUPS
    return second if name in light_models.LIGHT else first if name in networks.NETWORKS else third


def page(known: Mapping[str, Result]) -> Iterator[str]:
    """The lines of docs/results/relax.md."""
    yield HEADER.format(tvm=NEEDS[0].partition("==")[2], tolerance=TOLERANCE)
    kinds = ("right", "refused", "failed", "wrong", "not compared")
    yield "| | " + " | ".join(kinds) + " |\n|---|" + "---|" * len(kinds)
    for title in GROUPS:
        counts = Counter(known[n][0] for n in known if group(n) == title)
        yield f"| {title} | " + " | ".join(str(counts[k]) for k in kinds) + " |"
    for title, about in GROUPS.items():
        yield f"\n## {title}\n\n{about[0].upper()}{about[1:]}.\n"
        names = [n for n in known if group(n) == title]
        if title != "The Relay corpus":
            yield "| model | error |\n|---|---|"
            yield from (f"| {n} | {cell(known[n])} |" for n in names)
            continue
        reasons: dict[str, list[str]] = {}
        for n in names:
            if known[n][0] != "right":
                reasons.setdefault(cell(known[n]), []).append(f"`{n}`")
        yield from (f"* {why}: {', '.join(some)}" for why, some in sorted(reasons.items()))
    yield from operators()


def cell(result: Result) -> str:
    """An error, or what else became of a model."""
    kind, detail = result
    if isinstance(detail, float):
        return f"{detail:.0e}" if kind == "right" else f"**{detail:.0e}**"
    flat = " ".join(str(detail).split()).replace("|", "/")
    return f"{kind if kind == 'refused' else f'**{kind}**'}: {flat[:160]}"


def operators() -> Iterator[str]:
    """What the profile does with each operator."""
    yield "\n## Operators\n"
    yield (
        f"Measured by `python -m conformance.relax_operators` at opset {OPSET}. *Rewritten* are "
        "those of which some form, or all, is said in other operators. Other element types are "
        "computed in wider ones. *Symbolic* are those that are right with named sizes as well "
        "(`--symbolic`); others are refused with them. What is not listed is said in these, or "
        "refused.\n"
    )
    yield "| operator | element types | symbolic | rewritten |\n|---|---|---|---|"
    for op in sorted({*SUPPORTED, *RELAX.rewrites.rules}):
        ties = SUPPORTED.get(op, {})
        types = "; ".join(
            f"{tie}: {', '.join(sorted(d.value for d in right))}" for tie, right in ties.items()
        )
        marks = " | ".join("✓" if op in some else "" for some in (SYMBOLIC, RELAX.rewrites))
        yield f"| {op} | {types} | {marks} |"
    yield ""
