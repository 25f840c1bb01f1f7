"""Models in parts: for the backends that come with serde, opsets, and random operator lists.

Each model is partitioned, saved, and run part by part in ONNX Runtime, beside the whole model in
ONNX Runtime: without its optimizers, where the same kernels run on the same numbers, so that parts
of which nothing is legalized have to give the same bits; for the backends with them too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from serde.backends.description import documented_names, get_backend
from serde.backends.partition import prepare_graph
from serde.errors import SerdeError
from serde.ir.graph import Graph, Tensor
from serde.verification.random_inputs import make_random_inputs
from testing import light_models, networks

from . import relay_corpus
from .matrix import Cell, NotRun, reason
from .model_sources import weight_of, with_weights
from .part_runs import LISTS, Arrays, Model, Row
from .record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome

TOLERANCE = 1e-5
HALF_TOLERANCE = 2e-3  # four units in the last place: ONNX Runtime computes float16 in float32
OPSETS = ("opset 11", "opset 17")
LARGE = ("gluon", "testing")  # how names of networks in the corpus begin
DETECTORS = tuple(
    """
    ssd_300_mobilenet0.25_voc ssd_300_mobilenet1.0_lite_coco ssd_300_resnet34_v1b_voc
    ssd_300_vgg16_atrous_voc ssd_512_mobilenet1.0_voc ssd_512_resnet18_v1_voc
    yolo3_mobilenet0.25_voc yolo3_mobilenet1.0_coco yolo3_darknet53_voc
    center_net_resnet18_v1b_voc center_net_resnet18_v1b_dcnv2_voc center_net_dla34_voc
    center_net_mobilenetv3_small_duc_voc
    faster_rcnn_resnet50_v1b_voc mask_rcnn_resnet18_v1b_coco
    """.split()
)


class Partitions(Cell):
    """What became of a model in parts, by backend; the random lists together, and those that fail.

    A backend has its parts, all parts, the share of nodes taken, the bytes moved, errors, and
    whether bits differ.
    """

    seconds = 3600

    def cases(self) -> list[str]:
        networks_of_corpus = [n for n in relay_corpus.names() if n.startswith(LARGE)]
        small = [n for n in relay_corpus.names() if not n.startswith(LARGE)]
        vision = sorted(networks.VISION, key=weight_of)
        detectors = [f"gluoncv/{n}" for n in zoo_detectors()]
        return [*networks.LANGUAGE, *networks.ENCODERS, *small, *vision, *detectors,
                *light_models.LIGHT, *networks_of_corpus]  # fmt: skip

    def run(self, case: str) -> Row:
        try:
            graph, feeds = read_model(case)
        except NotRun as error:
            return {"": {"not run": str(error)}}
        except SerdeError as error:
            return {"": {"not run": f"serde does not read it: {reason(error)}"}}
        model = Model(graph, feeds)
        if model.failure:
            return {"": {"not run": model.failure}}
        names = (*documented_names(), *OPSETS)
        rows = {name: model.examine(get_backend(name)) for name in names}
        known: dict[Any, Row] = {}
        lists = {f"list {number}": model.examine_list(number, known) for number in range(LISTS)}
        return {**rows, **summarize_lists(lists)}

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        return {name: judge(entry) for name, entry in row.items()}

    def make_failed_row(self, why: str) -> Row:
        return {"": {"failed": why}}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the corpus and the model zoo need not be here


def judge(entry: Any) -> Outcome:
    """The outcome of a model for one backend, or for all its lists."""
    for kind, key in ((WRONG, "failed"), (REFUSED, "refused"), (NOT_RUN, "not run")):
        if key in entry:
            return Outcome.of(kind, entry[key])
    if entry.get("bits differ"):
        return Outcome.of(WRONG, "bits differ where nothing is legalized")
    worst = max(entry["error"], entry.get("optimized", 0.0))
    tolerance = HALF_TOLERANCE if entry.get("halves") else TOLERANCE
    return Outcome(RIGHT) if worst <= tolerance else Outcome.of(WRONG, f"off by {worst:.0e}")


def summarize_lists(rows: Mapping[str, Row]) -> Row:
    """The lists that are right in one row, and the others."""
    right = [row for row in rows.values() if judge(row).kind == RIGHT]
    merged = {
        "right": len(right), "parts": sum(r["parts"] for r in right),
        "same bits": sum("same bits" in r for r in right),
        "error": max((r["error"] for r in right), default=0.0),
        **({"halves": True} if any("halves" in r for r in right) else {}),
    }  # fmt: skip
    wrong = {name: row for name, row in rows.items() if judge(row).kind != RIGHT}
    return {"lists": merged, **wrong} if right else wrong


def zoo_detectors() -> list[str]:
    """Detectors of GluonCV, where it is here."""
    from .zoo import has_packages

    return [*DETECTORS] if has_packages() else []


def read_model(case: str) -> tuple[Graph, Arrays]:
    """A model as it is partitioned, and inputs for it."""
    if case in light_models.LIGHT:
        proto = with_weights(onnx.load(light_models.model_path(case)))
        return prepare_graph(proto), light_models.feeds(proto)
    if case in networks.NETWORKS:
        size = networks.smallest(case) if case in networks.VISION else None
        built = networks.build(case, size)
        feeds = networks.feeds(built, 1)
        return _read_symbol(lambda folder: networks.export(built, folder)[0], feeds), feeds
    if case.startswith("gluoncv/"):
        from .zoo import has_packages

        has_packages()  # they can be imported from now on
        from .zoo import gluoncv

        with tempfile.TemporaryDirectory() as folder:
            sample = gluoncv.sample(case.removeprefix("gluoncv/"), Path(folder))
            return _read_symbol(lambda _: sample.prefix, sample.feeds), sample.feeds
    try:
        _, graph, feeds = relay_corpus.load_static(case)
    except NotRun:  # of numbers to compare with; the whole model gives those here
        _, graph, _ = relay_corpus.load(case)
        feeds = make_random_inputs(graph)
    return prepare_graph(graph), feeds


def _read_symbol(export: Any, feeds: Arrays) -> Graph:
    """The graph of a model of MXNet, with its weights in memory."""
    with tempfile.TemporaryDirectory() as folder:
        graph = prepare_graph(export(Path(folder)), inputs=feeds)
        for value in graph.constants():
            if value.tensor is not None:
                value.tensor = Tensor.of(value.tensor.load())
    return graph


HEADER = f"""# Models in parts

Made by `python -m conformance models/partitions`. Each model is partitioned for the backends that
come with serde, for two opsets, and for {LISTS} random lists of its operators
([partition-a-model.md](../how-to/partition-a-model.md)); every second list partitions the subgraphs
of control flow as well. It is checked that

* parts are in an order in which they can run, and those of the backend have operators of its list
  only;
* the files of the backends' parts have only what the description takes: opset, operators, element
  types, ranks, attributes and constant operands. A checker does that which reads the TOML and the
  ONNX file itself, with onnx's shape inference;
* the parts, run one after another in ONNX Runtime, compute what the whole model does in ONNX
  Runtime, within {TOLERANCE:g} of the largest number of the output;
* without ONNX Runtime's optimizers, parts have the same bits as the whole, where nothing is
  legalized and the opset is the same. Its optimizers fuse nodes and change layouts across the
  places where a model is cut, which changes the last digits: *optimized* is the error with them.
  ONNX Runtime has few kernels for float16 on a CPU: it computes in float32, and rounds where a
  model is cut, but not inside. Models of float16 are right within {HALF_TOLERANCE:g}.

A cell has the backend's parts, and the share of nodes it takes.
"""


def page(rows: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/partitions.md."""
    backends = (*documented_names(), *OPSETS)
    named = {c: r for c, r in rows.items() if _is_listed(c)}
    corpus = {c: r for c, r in rows.items() if not _is_listed(c)}
    yield HEADER
    yield from _summarize(rows)
    yield f"| model | {' | '.join(backends)} | lists right | same bits | worst error | optimized |"
    yield "|---|" + "---|" * (len(backends) + 4)
    for case, row in sorted(named.items()):
        yield f"| {case} | {' | '.join(_cells(row, backends))} |"
    yield ""
    yield f"## The Relay corpus\n\n{len(corpus)} modules. Parts are those of all modules.\n"
    yield "| backend | modules | right | whole module | parts | worst error | optimized |"
    yield "|---|---|---|---|---|---|---|"
    for name in (*backends, "lists"):
        yield f"| {name} | {' | '.join(_sum_of([r[name] for r in corpus.values() if name in r]))} |"
    yield ""
    yield from _list_problems(rows)
    yield ""


def _is_listed(case: str) -> bool:
    return case in light_models.LIGHT or case in networks.NETWORKS or case.startswith("gluoncv/")


def _summarize(rows: Mapping[str, Row]) -> Iterator[str]:
    """How many models there are, and how many runs of each outcome."""
    kinds: dict[str, int] = {}
    for row in rows.values():
        for name, entry in row.items():
            number = entry.get("right", 0) if name == "lists" else 1
            kind = judge(entry).kind
            kinds[kind] = kinds.get(kind, 0) + number
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    yield f"{len(rows)} models; {counts}.\n"


def _cells(row: Row, backends: Sequence[str]) -> Iterator[str]:
    for backend in backends:
        entry = row.get(backend, {})
        shown = f"{entry['parts']}, {entry['share']:.0%}" if "parts" in entry else ""
        yield shown or (judge(entry).kind if entry else "-")
    lists = row.get("lists", {})
    yield f"{lists.get('right', 0)} of {LISTS}"
    yield str(lists.get("same bits", "-"))
    for key in ("error", "optimized"):
        errors = [entry[key] for entry in row.values() if key in entry]
        yield f"{max(errors):.0e}" if errors else "-"


def _sum_of(entries: Sequence[Row]) -> Iterator[str]:
    right = [r for r in entries if judge(r).kind == RIGHT]
    yield str(len(entries))
    yield str(len(right))
    is_backend = all("share" in r for r in right)
    yield str(sum(r["share"] == 1 for r in right)) if is_backend else "-"
    yield str(sum(r["parts"] for r in right))
    for key in ("error", "optimized"):
        errors = [r[key] for r in right if key in r]
        yield f"{max(errors):.0e}" if errors else "-"


def _list_problems(rows: Mapping[str, Row]) -> Iterator[str]:
    """The outcomes that are not right, those of one reason in one line."""
    reasons: dict[str, list[str]] = {}
    for case, row in sorted(rows.items()):
        for name, entry in row.items():
            outcome = judge(entry)
            if outcome.kind != RIGHT:
                at = f"`{case}` for {name}" if name else f"`{case}`"
                reasons.setdefault(str(outcome), []).append(at)
    for why, cases in sorted(reasons.items()):
        yield f"* {why}: {', '.join(cases)}"
