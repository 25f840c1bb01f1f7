"""Whole models in the consumers of ONNX files, each written with the consumer's profile."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import serde
from serde.errors import SerdeError
from serde.plugins.targets import get_consumer
from testing.consumers.runtimes import HERE, TITLES, VERSIONS, is_here, run
from testing.live_worker import LiveError
from testing.onnx_live import PLAIN, run_at

from .matrix import Cell, last_line, reason
from .model_sources import Model, names, open_model
from .record import RANK, REFUSED, RIGHT, WRONG, Outcome, Packed
from .relay_corpus import LESS_EXACT

TOLERANCE = 1e-4  # of the largest number of an output
DETECTIONS = 1e-3  # of those of GluonCV
FAILED = "failed"  # written, and not loaded
Result = list[Any]  # what became of a model, and the error, or why there is none


class ConsumerModels(Cell):
    """What became of a model in each consumer, by variant."""

    seconds = 1200

    def cases(self) -> list[str]:
        return names()

    def run(self, case: str) -> dict[str, Result]:
        row: dict[str, Result] = {}
        with tempfile.TemporaryDirectory() as place:
            model = open_model(case, Path(place))
            for consumer in (c for c in TITLES if is_here(c)):
                for variant in model.reads:
                    key = f"{consumer} {variant}".strip()
                    row[key] = run_consumer(model, variant, consumer, bound_of(case), Path(place))
        return row

    def outcomes(self, case: str, row: Any) -> dict[str, Outcome]:
        if "failed" in row:
            return {"": Outcome.of(WRONG, row["failed"])}
        return {key: read_outcome(result) for key, result in row.items()}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        """With what libraries and runtimes that are not here gave before."""
        merged = {case: merge(before.get(case, {}), row) for case, row in rows.items()}
        return {**before, **merged}


def merge(before: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row of a model with what runtimes that are not here gave before, in the usual order."""
    if "failed" in row:
        return row
    known = {key: value for key, value in {**before, **row}.items() if key != "failed"}
    return {key: known[key] for c in TITLES for key in known if key.partition(" ")[0] == c}


def read_outcome(result: Result) -> Outcome:
    """What a recorded result comes to."""
    kind, detail = result[:2]
    if kind == RIGHT:
        return Outcome(RIGHT)
    return Outcome.of(REFUSED if kind == REFUSED else WRONG, detail)


def bound_of(case: str) -> float:
    """How far outputs may be from the source's."""
    kind, _, name = case.partition("/")
    if kind == "relay":
        return LESS_EXACT.get(name, TOLERANCE)
    return DETECTIONS if kind == "gluoncv" else TOLERANCE


def run_consumer(model: Model, variant: str, consumer: str, bound: float, folder: Path) -> Result:
    """Write a model for a consumer and run it."""
    path, (feeds, expected) = folder / f"{consumer}.onnx", model.runs[variant]
    try:
        graph = model.reads[variant](**get_consumer(consumer).reading)
        serde.save(graph, path, external_data="never", profile=consumer)
        feeds = {v.name: feeds[v.name] for v in graph.inputs}
        got = run(consumer, str(path), feeds)
    except SerdeError as problem:
        return [REFUSED, reason(problem)]
    except LiveError as problem:
        return [FAILED, last_line(problem)]
    worst = model.difference(got, expected)
    if model.own is None:
        return [RIGHT if worst < bound else WRONG, worst]
    reference = 0.0 if consumer == HERE else model.difference(run_at(PLAIN, path, feeds), expected)
    nearest = max(2 * reference, model.own, bound)
    return [RIGHT if worst <= nearest else WRONG, worst, reference, model.own]


HEADER = """# Models in the consumers of ONNX

Made by `python -m conformance.pages`. Each model is written with the consumer's profile and run on
a processor, in float32: {runtimes}. The numbers are the largest difference from what the source's
own framework computes, in terms of the largest number of the output; right is below {bound:g}, for
GluonCV's networks below {detections:g}, for the Relay module of float16 below {half:g}. Weights are
random. *Named* files have a named number of samples, and are run with two. Networks of integers are
right where they are as near to MXNet as ONNX Runtime is with the same file (second number), or
MXNet to itself when each input is changed by 1e-4 of its spread (third number).
"""
GROUPS = {
    "MXNet's networks": lambda name: "/" not in name,
    "Networks that MXNet quantized": lambda name: name.startswith("int8/"),
    "GluonCV": lambda name: name.startswith("gluoncv/"),
    "GluonNLP": lambda name: name.startswith("gluonnlp/"),
    "Relay modules": lambda name: name.startswith("relay/"),
    "The light models of the onnx package": lambda name: name.startswith("light/"),
}


def page(known: Mapping[str, Mapping[str, Result]], *others: Mapping[str, Packed]) -> Iterator[str]:
    """The lines of docs/results/consumers.md.

    ``others`` are the outcomes of the node tests and Relay modules, by consumer.
    """
    runtimes = ", ".join(f"{title} {VERSIONS[name]}" for name, title in TITLES.items())
    (half,) = LESS_EXACT.values()
    yield HEADER.format(runtimes=runtimes, bound=TOLERANCE, detections=DETECTIONS, half=half)
    for title, belongs in GROUPS.items():
        rows = {n: known[n] for n in known if belongs(n)}
        if not rows:  # of the optimizers only
            continue
        columns = [f"{c} {v}".strip() for c in TITLES for v in ("", "named")]
        columns = [c for c in columns if any(c in row for row in rows.values())]
        yield f"## {title}\n"
        yield f"| model | {' | '.join(columns)} |\n|---|" + "---|" * len(columns)
        for name, row in rows.items():
            cells = (cell(row.get(c, row.get("failed"))) for c in columns)
            yield f"| {name.partition('/')[2] or name} | {' | '.join(cells)} |"
        yield ""
    tables = (f"{title}, {what}" for title in TITLES.values() for what in OTHERS)
    yield from summary(dict(zip(tables, others, strict=True)))


OTHERS = ("ONNX's node tests", "the Relay corpus")


def summary(tables: Mapping[str, Mapping[str, Packed]]) -> Iterator[str]:
    """How many outcomes of each kind there are, and why what is not right is not."""
    yield "## Operators\n"
    yield f"| | {' | '.join(RANK)} |\n|---|" + "---:|" * len(RANK)
    groups = {
        what: [Outcome.parse(str(row)) for row in rows.values()] for what, rows in tables.items()
    }
    for what, outcomes in groups.items():
        counts = Counter(o.kind for o in outcomes)
        yield f"| {what} | {' | '.join(str(counts[kind]) for kind in RANK)} |"
    for what, outcomes in groups.items():
        yield f"\n### {what}: what is not right\n\n| cases | why |\n|---:|---|"
        reasons = Counter(f"{o.kind}: {o.reason}" for o in outcomes if o.kind != RIGHT)
        for why, count in reasons.most_common():
            yield f"| {count} | {' '.join(why.split()).replace('|', '/')[:160]} |"
    yield ""


def cell(result: Result | str | None) -> str:
    """An error, or what else became of a model."""
    if result is None or isinstance(result, str):
        return f"**failed**: {result}" if result else ""
    kind, detail, *reference = result
    if isinstance(detail, str):
        flat = " ".join(detail.split()).replace("|", "/")
        return f"{kind if kind == REFUSED else f'**{kind}**'}: {flat[:160]}"
    text = ", ".join(f"{e:.0e}" for e in (detail, *reference))
    return text if kind == RIGHT else f"**{text}**"
