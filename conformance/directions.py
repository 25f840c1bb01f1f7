"""Models from every format to every other: nine directions, each result run in its own runtime."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from serde.errors import SerdeError
from serde.formats.relay.io.params import read_params
from serde.ir.graph import Graph
from testing import light_models
from testing.directions import DIRECTIONS, TOLERANCE, directions, reason, run_onnx
from testing.networks import ENCODERS, LANGUAGE, VISION, build, compute, export, feeds, smallest
from testing.relay import networks as relay_networks
from testing.relay.networks import TESTING

from . import relay_corpus
from .matrix import Cell, NotRun
from .record import NOT_RUN, RANK, REFUSED, Outcome
from .relay_corpus import DEFINED, LESS_EXACT
from .zoo import has_packages
from .zoo.compare import live

SECONDS = 400
CORPUS = "corpus/"
NO_MODEL = "no such model"  # as the one it would be made of is refused
# Of halves, where TVM at level 1 is 2.5e-3 off what it recorded of the very module.
IN_TVM = {"pass-ToMixedPrecision-fp16": 2.5e-3}
ZOO = tuple(
    """
    gluoncv/ssd_512_mobilenet1.0_voc gluoncv/yolo3_mobilenet1.0_voc
    gluoncv/faster_rcnn_resnet50_v1b_voc gluoncv/mask_rcnn_resnet18_v1b_coco
    gluoncv/center_net_resnet18_v1b_dcnv2_voc gluoncv/simple_pose_resnet18_v1b
    gluoncv/siamrpn_alexnet_v2_otb15 gluoncv/monodepth2_resnet18_kitti_stereo_640x192
    gluoncv/deeplab_resnet50_citys gluoncv/hrnet_w18_small_v1_c gluonnlp/bert_12_768_12
    gluonnlp/roberta_12_768_12 gluonnlp/elmo_2x1024_128_2048cnn_1xhighway
    gluonnlp/standard_lstm_lm_200 gluonnlp/transformer_en_de_512 gluonts/LSTNet gluonts/MQ-CNN
    gluonts/MQ-RNN gluonts/N-BEATS gluonts/SimpleFeedForward gluonts/TFT
    """.split()
)
KINDS = {
    "MXNet's networks": (*VISION, *LANGUAGE, *ENCODERS),
    "The `light` models of the onnx package": tuple(light_models.LIGHT),
    "Networks of tvm.relay.testing": tuple(f"testing/{n}" for n in TESTING),
    "Networks of GluonCV, GluonNLP and GluonTS": ZOO,
}
HEADER = f"""# Nine directions

Made by `python -m conformance models/directions`. Every model is taken from its own format to
MXNet, ONNX and Relay, and what came of it there from each of these to all three once more. Each of
the nine results runs in its own runtime: MXNet 1.9.1, ONNX Runtime, and TVM 0.17, which compiles
Relay's JSON at level 1 without the passes that only make code faster
(`testing/relay/tvm_running.py`). The numbers are those of the source in *its* runtime. A cell has
the largest difference in terms of the largest number of the output; the bound is {TOLERANCE:g}. TVM
is given {SECONDS} s for a model.

Vision networks are at a small image size, with one sample. *M*, *O* and *R* are the formats.
"""
CORPUS_HEADER = """
## The Relay corpus

{count} modules that TVM 0.17 wrote, with what it computed of them where it could run them.

| direction | right | refused | not run | wrong | largest error |
|---|---|---|---|---|---|"""
Row = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A model, what its own runtime computes of ``feeds``, and the names of its weights."""

    ir: Graph
    form: str
    feeds: Mapping[str, np.ndarray]
    expected: list[np.ndarray]
    weights: frozenset[str] = frozenset()


class Directions(Cell):
    """The error of one model in every direction, or why there is none."""

    seconds = 9 * SECONDS

    def cases(self) -> list[str]:
        every = [n for names in KINDS.values() for n in names if has_packages() or n not in ZOO]
        return [*every, *(CORPUS + n for n in relay_corpus.names())]

    def run(self, case: str) -> Row:
        with tempfile.TemporaryDirectory() as folder:
            try:
                source = load(case, Path(folder))
            except NotRun:
                return {"refused": "no outputs to compare with"}
            except SerdeError as error:
                return {"refused": reason(error)}
            rows = DEFINED.get(case.removeprefix(CORPUS))
            args = source.ir, source.form, source.feeds, source.expected
            return dict(directions(*args, Path(folder), SECONDS, rows))

    def outcomes(self, case: str, row: Row) -> dict[str, Outcome]:
        if (why := row.get("refused", row.get("failed"))) is not None:
            return {"": Outcome.of(NOT_RUN if "to compare" in why else REFUSED, why)}
        return {d: outcome(case, d, error) for d, error in row.items()}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the corpus and the libraries need not be here


def load(name: str, folder: Path) -> Source:
    """The model of that name; ``folder`` is for files."""
    if name.startswith(CORPUS):
        return from_corpus(name.removeprefix(CORPUS))
    if name.startswith("testing/"):
        return from_testing(name.removeprefix("testing/"), folder)
    if name in ZOO:
        return from_zoo(name, folder)
    if name in light_models.LIGHT:
        path = light_models.model_path(name)
        inputs = light_models.feeds(onnx.load(path))
        return Source(serde.load(path), "onnx", inputs, run_onnx(path, inputs, SECONDS))
    network = build(name, smallest(name) if name in VISION else None)
    inputs = feeds(network, 1)
    outputs = compute(network, inputs)
    symbol, _ = export(network, folder)
    return Source(serde.load(symbol, inputs=inputs), "mxnet", inputs, outputs)


def from_zoo(name: str, folder: Path) -> Source:
    """A network of a library, with random weights, exported by MXNet."""
    library, _, rest = name.partition("/")
    sample = import_module(f"conformance.zoo.{library}").sample(rest, folder)
    return Source(serde.load(sample.prefix, inputs=sample.feeds), "mxnet", sample.feeds,
                  live(sample, sample.feeds))  # fmt: skip


def from_testing(name: str, folder: Path) -> Source:
    """A network of relay.testing, written by TVM."""
    relay_networks.write(name, folder)
    ir = relay_networks.read(folder, "imported", "json")
    with np.load(folder / "in.npz") as held, np.load(folder / "out.npz") as outputs:
        inputs = dict(zip((v.name for v in ir.inputs), held.values(), strict=True))
        weights = frozenset(read_params(folder / "net.params"))
        return Source(ir, "relay", inputs, list(outputs.values()), weights)


def from_corpus(name: str) -> Source:
    """A module of the corpus, with what is recorded of it."""
    case, ir, weights = relay_corpus.load(name)
    return Source(ir, "relay", relay_corpus.feeds(case, ir), case.outputs, frozenset(weights))


def page(known: Mapping[str, Row]) -> Iterator[str]:
    """The lines of docs/results/directions.md."""
    yield HEADER
    short = " | ".join(" → ".join(f[0].upper() for f in d.split(" → ")) for d in DIRECTIONS)
    notes: dict[str, int] = {}
    for title, names in KINDS.items():
        yield f"## {title}\n"
        yield f"| model | {short} |"
        yield "|---|" + "---|" * len(DIRECTIONS)
        for name in names:
            if name in known:
                row = known[name]
                cells = [
                    cell(row.get(d, row.get("refused", row.get("failed"))), notes)
                    for d in DIRECTIONS
                ]
                yield f"| {name.removeprefix('testing/')} | {' | '.join(cells)} |"
        yield ""
    yield from (f"{number}. {text}" for text, number in notes.items())
    yield from corpus_lines({n: r for n, r in known.items() if n.startswith(CORPUS)})


def cell(error: Any, notes: dict[str, int]) -> str:
    """An error or the number of the note that says why there is none, marked if it is bad."""
    if isinstance(error, str):
        number = notes.setdefault(error, len(notes) + 1)
        return (
            f"note {number}" if error.startswith(("refused", "not run")) else f"**note {number}**"
        )
    return f"{error:.0e}" if error < TOLERANCE else f"**{error:.0e}**"


def corpus_lines(known: Mapping[str, Row]) -> Iterator[str]:
    """How many modules of the corpus came right in each direction, and why the others did not."""
    comparable = {n: r for n, r in known.items() if "refused" not in r}
    why: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    yield CORPUS_HEADER.format(count=len(known))
    for direction in DIRECTIONS:
        count, worst = Counter[str](), 0.0
        for name, row in comparable.items():
            kind, text = outcome(name, direction, row[direction])
            count[kind] += 1
            if kind == "right":
                worst = max(worst, row[direction])
            elif text != NO_MODEL:
                why[f"{kind}: {text}"][name].add(direction)
        yield f"| {direction} | {' | '.join(str(count[k]) for k in RANK)} | {worst:.0e} |"
    unread = {n: r["refused"] for n, r in known.items() if "refused" in r}
    yield f"\nNot counted: {len(unread)}, which cannot be read ([relay-corpus.md](relay-corpus.md))"
    yield "or have nothing to compare with. A result that is refused is no source of three others,"
    yield "which count as refused. Behind a module is the number of its directions.\n"
    for text, names in sorted(why.items()):
        shown = (f"`{n.removeprefix(CORPUS)}` ({len(d)})" for n, d in sorted(names.items()))
        yield f"* {text}: {', '.join(shown)}"
    yield ""


def outcome(name: str, direction: str, error: Any) -> Outcome:
    """What a result counts as, and the reason."""
    module = name.removeprefix(CORPUS)
    limit = (IN_TVM if direction.endswith("relay") else LESS_EXACT).get(module, TOLERANCE)
    return Outcome.judge_error(f"refused: {NO_MODEL}" if error == NO_MODEL else error, limit)
