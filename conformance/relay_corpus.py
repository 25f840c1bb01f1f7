"""A corpus of Relay modules, with what TVM computed of them: ``SERDE_CORPUS`` names its folder.

It has a folder for each module, with ``module.json`` (or ``.json.gz``), ``params.bin`` and
``io.npz``, and beside them ``corpus.py``, which reads them. No outcomes are recorded so far:
docs/results/relay-corpus.md stands as its last run wrote it until ``python -m conformance
relay-corpus/onnx`` records them.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from serde.formats.relay.io.params import read_params
from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.ir.graph import Graph, Tensor
from serde.passes import tidy
from serde.passes.change_batch import fix_dimensions

from .matrix import NotRun, Pair, Sample, Source
from .record import NOT_RUN, RANK, REFUSED, RIGHT, WRONG, Packed, unpack
from .targets import Onnx

TOLERANCE, CLOSE = 1e-4, 1e-5
OPSETS = ("11", "13", "17", "21")  # shown on the page
# Modules whose output TVM leaves undefined behind so many leading rows.
DEFINED = {"op-all_class_nms": 4, "dyn-unique": 4}
# Modules whose numbers are computed in halves, of which a step is 9.8e-4 of scale. On this one TVM
# is off by 5.1e-4 from what the network computes in float32, ONNX Runtime by 2.3e-4 to 2.8e-4, and
# LiteRT, where each operator is rounded, by 8.1e-4; TVM and LiteRT differ by 9.6e-4.
LESS_EXACT = {"pass-ToMixedPrecision-fp16": 1e-3}
# Modules with two parameters of one name, of which the corpus holds one input only.
INCOMPLETE = {"name-duplicate", "name-duplicate-clash"}


def names() -> list[str]:
    """The modules of the corpus; none where there is no corpus."""
    folder = os.environ.get("SERDE_CORPUS")
    return sorted(p.name for p in Path(folder).iterdir() if p.is_dir()) if folder else []


@cache
def _reader(folder: Path) -> Any:
    """The corpus's own reader."""
    path = next(p for p in (folder / "corpus.py", folder.parent / "corpus.py") if p.is_file())
    spec = importlib.util.spec_from_file_location("relay_corpus_reader", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def load(name: str) -> tuple[Any, Graph, Mapping[str, Tensor]]:
    """A module as the corpus has it, its graph, and its weights."""
    folder = Path(os.environ["SERDE_CORPUS"])
    case = _reader(folder).load(folder / name)
    params = {n: Tensor.of(np.asarray(a)) for n, a in case.weights.items()}
    if case.params_file is not None:
        params |= read_params(case.params_file)
    graph = tidy(to_ir(module_graph(parse_json(case.json, name), params, name)))
    return case, graph, params


def feeds(case: Any, graph: Graph) -> dict[str, Any]:
    """The corpus's inputs: by name, or by that of the parameter where two had the same.

    Raises:
        NotRun: where the corpus has no numbers to compare with.
    """
    if not case.outputs or case.name in INCOMPLETE:
        raise NotRun("the corpus has no numbers")
    params = [n for n, _ in case.meta.get("main_params") or () if n in case.feeds]
    inputs = [v.name for v in graph.inputs]
    return {n: case.feeds[n if n in case.feeds else params[at]] for at, n in enumerate(inputs)}


def load_static(name: str) -> tuple[Any, Graph, dict[str, Any]]:
    """A module, its graph with numbers for the named sizes, and the corpus's inputs."""
    case, graph, _ = load(name)
    inputs = feeds(case, graph)
    sizes = {
        dim: size
        for value in graph.inputs
        for dim, size in zip(value.shape or (), inputs[value.name].shape, strict=False)
        if isinstance(dim, str)
    }
    return case, tidy(fix_dimensions(graph, sizes)) if sizes else graph, inputs


def difference(
    name: str, expected: Sequence[Any], got: Sequence[Any], tolerance: float = TOLERANCE
) -> str | None:
    """How results differ from what TVM computed of a module."""
    if len(got) != len(expected):
        return f"{len(got)} outputs for {len(expected)}"
    limit = LESS_EXACT.get(name, tolerance)
    for at, (a, b) in enumerate(zip(got, expected, strict=True)):
        rows = DEFINED.get(name, len(b) if b.ndim else 0) if at == 0 else None
        a, b = (a, b) if rows is None or not b.ndim else (a[:rows], b[:rows])
        if text := _differs(np.asarray(a), np.asarray(b), limit):
            return f"output {at}: {text}"
    return None


def _differs(actual: Any, expected: Any, limit: float) -> str:
    """What is wrong with ``actual``, empty where it is within ``limit`` of scale."""
    kinds = {actual.dtype.kind, expected.dtype.kind}
    is_float = expected.dtype.kind in "fc"
    if actual.dtype != expected.dtype if is_float else len(kinds) > 1 and "b" not in kinds:
        return f"{actual.dtype} for {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {actual.shape} for {expected.shape}"
    if expected.dtype.kind not in "f":
        count = int((actual != expected).sum())
        return f"{count} of {expected.size} integers differ" if count else ""
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    special = ~np.isfinite(a) | ~np.isfinite(b)
    if not np.array_equal(a[special], b[special], equal_nan=True):
        return "infinite or no numbers differ"
    scale = max(float(np.abs(b[~special]).max(initial=0)), 1e-6)
    worst = float(np.abs(a[~special] - b[~special]).max(initial=0)) / scale
    return f"off by {worst:.1e} of scale" if worst > limit else ""


class RelayCorpus(Source):
    """The modules of the corpus."""

    name = "relay-corpus"

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self.tolerance = tolerance

    def cases(self) -> list[str]:
        return names()

    def sample(self, case: str) -> Sample:
        test, graph, _ = load(case)
        data = [(feeds(test, graph), test.outputs)]
        judge = partial(difference, case, tolerance=self.tolerance)
        return Sample(graph, data, judge)


class CloseCorpus(Pair):
    """The modules in targets that are within a tenth of what others may differ by."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.source = RelayCorpus(CLOSE)


HEADER = f"""# The Relay corpus

Made by `python -m conformance.pages`.

{{count}} modules that TVM 0.17 wrote, with the outputs it computed for them. *Not run* are modules
without outputs to compare with: TVM could not run them, or an input is not in the corpus.

Right is within {TOLERANCE:g} of the largest number of the output. One module is allowed 1e-3:
`pass-ToMixedPrecision-fp16` computes in float16, where TVM is off by 5.1e-4 from what the network
computes in float32 (`pass-00-base`), ONNX Runtime by 2.8e-4, LiteRT by 8.1e-4.
"""


def page(rows: Mapping[str, Packed]) -> Iterator[str]:
    """The page of the corpus."""
    outcomes = {name: unpack(row, Onnx.variants) for name, row in rows.items()}
    yield HEADER.format(count=len(rows))
    yield f"| opset | {' | '.join(RANK)} |\n|---" + "|---" * len(RANK) + "|"
    for opset in OPSETS:
        counts = (sum(o[opset].kind == kind for o in outcomes.values()) for kind in RANK)
        yield f"| {opset} | {' | '.join(map(str, counts))} |"
    for kind in (WRONG, NOT_RUN, REFUSED):
        reasons: dict[str, list[str]] = defaultdict(list)
        for name, row in rows.items():
            spans = {row: ""} if isinstance(row, str) else {w: f" ({at})" for w, at in row.items()}
            for text, at in spans.items():
                if text.startswith(kind) and text != RIGHT:
                    reasons[text.removeprefix(f"{kind}: ")].append(f"`{name}`{at}")
        yield f"\n## {kind.capitalize()}\n"
        yield from (f"* {why}: {', '.join(some)}" for why, some in sorted(reasons.items()))
        yield from () if reasons else ("None.",)
    yield ""
