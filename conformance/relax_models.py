"""Run models in live Relax by TVM's importer and the profile relax, and write relax.md.

    SERDE_RELAX=FOLDER python -m conformance.relax_models CORPUS [--again] [MODEL …]

MXNet's networks with random weights, the light models of the onnx package, and the modules of the
Relay corpus in the folder CORPUS (see conformance/relay_corpus.py). What is known is kept in
results/relax_models.json, so that an interrupted run goes on where it stopped; ``--again``
forgets the named models, or all, first.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from conformance.relay_corpus import INCOMPLETE, RIGHT, compared, fed, reader
from conformance.resuming import resume
from serde.errors import SerdeError, Unconvertible
from serde.formats.onnx.consumers.relax.dynamic_shape_support import SYMBOLIC
from serde.formats.onnx.consumers.relax.support_table import TAKEN
from serde.formats.onnx.consumers.relax.target import OPSET, recasts
from serde.formats.relay.io.params import read_params
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.ir.graph import Graph, Tensor
from serde.legalize.profiles import get_profile
from serde.passes import tidy
from serde.passes.change_batch import fixed
from tests import light_models, networks
from tests.onnx_live import error, run_model
from tests.relax.relax_live import RELAX, RelaxError, run

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "conformance" / "results" / "relax_models.json"
PAGE = ROOT / "docs" / "results" / "relax.md"
TOLERANCE = 1e-4
Result = list[Any]  # what became of a model, and the error, or why


def in_relax(graph: Graph, feeds: Any) -> list[Any]:
    """What Relax's virtual machine computes."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.onnx"
        serde.save(graph, path, **get_profile("relax").writing())
        return run(path, {v.name: feeds[v.name] for v in graph.inputs})


def network(name: str) -> Result:
    """One of MXNet's networks, for one sample."""
    size = networks.smallest(name) if name in networks.VISION else None
    built = networks.build(name, size)
    given = networks.feeds(built, 1)
    wanted = networks.expected(built, given)
    with tempfile.TemporaryDirectory() as folder:
        symbol, _ = networks.export(built, Path(folder))
        got = in_relax(serde.load(symbol, inputs=given), given)
    return judged(max(error(a, b) for a, b in zip(got, wanted, strict=True)))


def light(name: str) -> Result:
    """One of the light models."""
    path = light_models.model_path(name)
    given = light_models.feeds(onnx.load(path))
    got = in_relax(serde.load(path), given)
    wanted = run_model(onnx.load(path), given)
    return judged(max(error(a, b) for a, b in zip(got, wanted, strict=True)))


def module(folder: Path, name: str) -> Result:
    """A module of the corpus."""
    case = reader(folder).load(folder / name)
    params = {n: Tensor.of(np.asarray(a)) for n, a in case.weights.items()}
    if case.params_file is not None:
        params |= read_params(case.params_file)
    graph = tidy(to_ir(module_graph(parse_json(case.json, name), params, name)))
    names = [v.name for v in graph.inputs]
    given = dict(zip(names, fed(names, case), strict=True)) if case.outputs else {}
    if set(names) - given.keys() or not case.outputs or name in INCOMPLETE:
        return ["not compared", "the corpus has no numbers"]
    sizes = {
        d: a for v in graph.inputs for d, a in zip(v.shape or (), given[v.name].shape, strict=False)
        if isinstance(d, str)
    }  # fmt: skip
    graph = tidy(fixed(graph, sizes)) if sizes else graph
    kind, why = compared(in_relax(graph, given), case)
    return ["right", 0.0] if kind == RIGHT else ["wrong", why]


def judged(worst: float) -> Result:
    """An error, and whether it is small enough."""
    return ["right" if worst < TOLERANCE else "wrong", worst]


def tried(folder: Path, name: str) -> Result:
    """What becomes of a model."""
    try:
        if name in light_models.LIGHT:
            return light(name)
        return network(name) if name in networks.NETWORKS else module(folder, name)
    except Unconvertible as problem:
        said = (f"{p.op}: {p.reason}" for p in problem.problems)
        return ["refused", "; ".join(dict.fromkeys(said))]
    except SerdeError as problem:
        return ["refused", str(problem)]
    except RelaxError as problem:
        return ["failed", str(problem).strip().splitlines()[-1]]


HEADER = """# Models in Relax

Made by `python -m conformance.relax_models`. Each model is written with the profile `relax`, read
by
TVM's own importer (`tvm.relax.frontend.onnx.from_onnx`, apache-tvm {tvm}), compiled for LLVM and
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


def page(known: dict[str, Result]) -> Iterator[str]:
    """The lines of docs/results/relax.md."""
    yield HEADER.format(tvm=RELAX.ask("version"), tolerance=TOLERANCE)
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


def cell(found: Result) -> str:
    """An error, or what else became of a model."""
    kind, said = found
    if isinstance(said, float):
        return f"{said:.0e}" if kind == "right" else f"**{said:.0e}**"
    flat = " ".join(str(said).split()).replace("|", "/")
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
    for op in sorted({*TAKEN, *recasts.rules}):
        ties = TAKEN.get(op, {})
        types = "; ".join(
            f"{tie}: {', '.join(sorted(d.value for d in right))}" for tie, right in ties.items()
        )
        marks = " | ".join("✓" if op in some else "" for some in (SYMBOLIC, recasts))
        yield f"| {op} | {types} | {marks} |"
    yield ""


def main(arguments: list[str]) -> None:
    """Run what is not known yet, and write the page after each."""
    folder, rest = Path(arguments[0]), arguments[1:]
    corpus = sorted(p.name for p in folder.iterdir() if p.is_dir())
    every = [*networks.VISION, *networks.LANGUAGE, *networks.ENCODERS, *light_models.LIGHT, *corpus]
    resume(rest, every, KEPT, PAGE, partial(tried, folder), page, str)


if __name__ == "__main__":
    main(sys.argv[1:])
