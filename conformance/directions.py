"""Take models from every format to every other, run all results, and write directions.md.

    SERDE_TVM=FOLDER python -m conformance.directions [--corpus=FOLDER] [--packages=FOLDER]
        [MODEL …]

Needs live MXNet and TVM. The corpus is that of conformance/relay_corpus.py, the packages are those
of conformance/zoo; without them their models are left as they are known. What is known is kept in
results/directions.json, so that an interrupted run goes on where it stopped; ``--again`` forgets
the named models, or all, first.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from conformance.relay_corpus import DEFINED, INCOMPLETE, LESS_EXACT, fed, reader
from conformance.resuming import resume
from conformance.zoo.compare import live
from serde.errors import SerdeError
from serde.formats.relay.io.params import read_params
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.ir.graph import Graph, Tensor
from serde.passes import tidy
from tests import light_models
from tests.directions import DIRECTIONS, TOLERANCE, directions, reason, run_onnx
from tests.networks import ENCODERS, LANGUAGE, VISION, build, expected, export, feeds, smallest
from tests.relay import networks as relay_networks
from tests.relay.networks import TESTING

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "conformance" / "results" / "directions.json"
PAGE = ROOT / "docs" / "results" / "directions.md"
SECONDS = 400
OPEN = "not run: not yet in TVM"
CORPUS = "corpus/"
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

Made by `python -m conformance.directions`. Every model is taken from its own format to MXNet, ONNX
and Relay, and what came of it there from each of these to all three once more. Each of the nine
results runs in its own runtime: MXNet 1.9.1, ONNX Runtime, and TVM 0.17, which compiles Relay's
JSON at level 1 without the passes that only make code faster (`tests/relay/tvm_running.py`). The
numbers are those of the source in *its* runtime. A cell has the largest difference in terms of the
largest number of the output; the bound is {TOLERANCE:g}. TVM is given {SECONDS} s for a model.

Vision networks are at a small image size, with one sample. *M*, *O* and *R* are the formats.
"""
CORPUS_HEADER = """
## The Relay corpus

{count} modules that TVM 0.17 wrote, with what it computed of them where it could run them.

| direction | right | refused | not run | wrong | failed | largest error |
|---|---|---|---|---|---|---|"""
Row = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A model, what its own runtime computes of ``feeds``, and the names of its weights."""

    ir: Graph
    form: str
    feeds: Mapping[str, np.ndarray]
    wanted: list[np.ndarray]
    weights: frozenset[str] = frozenset()


def row(name: str, corpus: Path | None) -> Row:
    """What became of one model in every direction."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            source = load(name, folder, corpus)
        except SerdeError as error:
            return {"refused": reason(error)}
        if not source.wanted:
            return {"refused": "no outputs to compare with"}
        rows = DEFINED.get(name.removeprefix(CORPUS))
        given = source.ir, source.form, source.feeds, source.wanted
        return dict(directions(*given, folder, SECONDS, rows))


def load(name: str, folder: Path, corpus: Path | None) -> Source:
    """The model of that name; ``folder`` is for files."""
    if name.startswith(CORPUS):
        assert corpus is not None, "needs --corpus=FOLDER"
        return from_corpus(corpus / name.removeprefix(CORPUS))
    if name.startswith("testing/"):
        return from_testing(name.removeprefix("testing/"), folder)
    if name in ZOO:
        return from_zoo(name, folder)
    if name in light_models.LIGHT:
        path = light_models.model_path(name)
        given = light_models.feeds(onnx.load(path))
        return Source(serde.load(path), "onnx", given, run_onnx(path, given, SECONDS))
    network = build(name, smallest(name) if name in VISION else None)
    given = feeds(network, 1)
    wanted = expected(network, given)
    symbol, _ = export(network, folder)
    return Source(serde.load(symbol, inputs=given), "mxnet", given, wanted)


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
    with np.load(folder / "in.npz") as held, np.load(folder / "out.npz") as made:
        given = dict(zip((v.name for v in ir.inputs), held.values(), strict=True))
        weights = frozenset(read_params(folder / "net.params"))
        return Source(ir, "relay", given, list(made.values()), weights)


def from_corpus(folder: Path) -> Source:
    """A module of the corpus, with what is recorded of it."""
    case = reader(folder.parent).load(folder)
    params = {n: Tensor.of(np.asarray(a)) for n, a in case.weights.items()}
    if case.params_file is not None:
        params |= read_params(case.params_file)
    ir = tidy(to_ir(module_graph(parse_json(case.json, folder.name), params, folder.name)))
    if folder.name in INCOMPLETE or not case.outputs:
        return Source(ir, "relay", {}, [])
    given = dict(zip((names := [v.name for v in ir.inputs]), fed(names, case), strict=True))
    return Source(ir, "relay", given, case.outputs, frozenset(params))


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
                found = known[name]
                cells = [cell(found.get(d, found.get("refused")), notes) for d in DIRECTIONS]
                yield f"| {name.removeprefix('testing/')} | {' | '.join(cells)} |"
        yield ""
    yield from (f"{number}. {text}" for text, number in notes.items())
    yield from corpus_lines({n: r for n, r in known.items() if n.startswith(CORPUS)})


def cell(found: Any, notes: dict[str, int]) -> str:
    """An error or the number of the note that says why there is none, marked if it is bad."""
    if isinstance(found, str):
        number = notes.setdefault(found, len(notes) + 1)
        return (
            f"note {number}" if found.startswith(("refused", "not run")) else f"**note {number}**"
        )
    return f"{found:.0e}" if found < TOLERANCE else f"**{found:.0e}**"


def corpus_lines(known: Mapping[str, Row]) -> Iterator[str]:
    """How many modules of the corpus came right in each direction, and why the others did not."""
    comparable = {n: r for n, r in known.items() if "refused" not in r}
    kinds = ("right", "refused", "not run", "wrong", "failed")
    why: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    yield CORPUS_HEADER.format(count=len(known))
    for direction in DIRECTIONS:
        count, worst = Counter[str](), 0.0
        for name, found in comparable.items():
            kind, text = outcome(name, direction, found[direction])
            count[kind] += 1
            if kind == "right":
                worst = max(worst, found[direction])
            elif not text.startswith("no such"):
                why[f"{kind}: {text}"][name].add(direction)
        yield f"| {direction} | {' | '.join(str(count[k]) for k in kinds)} | {worst:.0e} |"
    unread = {n: r["refused"] for n, r in known.items() if "refused" in r}
    yield f"\nNot counted: {len(unread)}, which cannot be read ([relay-corpus.md](relay-corpus.md))"
    yield "or have nothing to compare with. A result that is refused is no source of three others,"
    yield "which count as refused. Behind a module is the number of its directions.\n"
    for text, names in sorted(why.items()):
        shown = (f"`{n.removeprefix(CORPUS)}` ({len(d)})" for n, d in sorted(names.items()))
        yield f"* {text}: {', '.join(shown)}"
    yield ""


def outcome(name: str, direction: str, found: Any) -> tuple[str, str]:
    """What a result counts as, and the reason."""
    module = name.removeprefix(CORPUS)
    limit = (IN_TVM if direction.endswith("relay") else LESS_EXACT).get(module, TOLERANCE)
    if not isinstance(found, str):
        return ("right", "") if found < limit else ("wrong", f"off by {found:.0e} of scale")
    if found == "no such model":
        return "refused", found
    kind, _, text = found.partition(": ")
    return kind, text


def shown(found: Row) -> str:
    """The largest error of a model and what else there is."""
    texts = sorted({v for v in found.values() if isinstance(v, str)})
    errors = [v for v in found.values() if not isinstance(v, str)]
    return "; ".join([f"{max(errors, default=float('inf')):.0e}", *texts])


def is_done(found: Row) -> bool:
    """Whether all results of a model are there, and none is still to come from TVM."""
    return OPEN not in found.values()


def folder_of(option: str, arguments: list[str]) -> Path | None:
    """The folder that ``option=`` names."""
    places = [a.partition("=")[2] for a in arguments if a.startswith(f"{option}=")]
    return Path(places[0]) if places else None


def modules_of(corpus: Path | None) -> list[str]:
    """The names of the corpus's modules."""
    return [CORPUS + p.name for p in sorted(corpus.iterdir()) if p.is_dir()] if corpus else []


def main(arguments: list[str]) -> None:
    """Run what is not known yet, and write the page after each."""
    corpus, packages = (folder_of(f"--{what}", arguments) for what in ("corpus", "packages"))
    if packages is not None:
        sys.path.append(str(packages))
    every = [n for names in KINDS.values() for n in names if packages or n not in ZOO]
    every += modules_of(corpus)
    resume(arguments, every, KEPT, PAGE, partial(row, corpus=corpus), page, shown, is_done)


if __name__ == "__main__":
    main(sys.argv[1:])
