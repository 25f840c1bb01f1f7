"""ONNX's own node tests and models as sources, and the pages that tell what becomes of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import onnx
import onnxruntime

from serde.formats.onnx.reader import decode
from serde.ir.graph import Graph
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing.model_cases import light_model, light_names, small_models
from testing.node_cases import Case, all_cases, difference, freeze, results

from . import record
from .matrix import Sample, Source
from .record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome, unpack
from .targets import Onnx

HALF = 2e-3  # relative tolerance of float16: two units in the last place


class NodeTests(Source):
    """The node tests of the installed onnx, as they are."""

    name = "onnx-nodes"

    @cached_property
    def by_name(self) -> Mapping[str, Case]:
        """Every node test."""
        return {c.name: c for c in all_cases()}

    def cases(self) -> list[str]:
        return [*self.by_name]

    def prepare(self, case: str) -> Case:
        """The test as it is run."""
        return self.by_name[case]

    def read(self, model: onnx.ModelProto) -> Any:
        """The model as the target takes it."""
        return read(model)

    def sample(self, case: str) -> Sample:
        test = self.prepare(case)
        return sample_of(test, self.read(test.model))


def read(model: onnx.ModelProto) -> Graph:
    """The model in the IR."""
    return tidy(raise_to_ir(decode(model)))


def sample_of(case: Case, graph: Any) -> Sample:
    """A test with the graph of its model.

    A result is right too if it is what a runtime of ONNX computes for the test's own model.
    """
    held = {t.name for t in case.model.graph.initializer}
    names = [i.name for i in case.model.graph.input if i.name not in held]
    if any(getattr(y, "dtype", None) == np.float16 for _, outs in case.data for y in outs):
        case = replace(case, rtol=max(case.rtol, HALF))

    def differs(expected: Any, got: Any) -> str | None:
        how = difference(case, expected, got)
        if how is None or graph is case.model:
            return how
        feeds = next(inputs for inputs, outputs in case.data if outputs is expected)
        own = (result for _, result in results(case.model, feeds))  # the runtimes of the test
        same = (not isinstance(r, Exception) and difference(case, r, got) is None for r in own)
        return None if any(same) else how

    data = [(dict(zip(names, feeds, strict=True)), expected) for feeds, expected in case.data]
    return Sample(graph, data, differs)


class ConstantNodeTests(NodeTests):
    """The node tests with bounds, axes and sizes as constants, as they are in models."""

    name = "onnx-nodes-constant"

    def prepare(self, case: str) -> Case:
        return freeze(self.by_name[case]) or self.by_name[case]


class FirstOperandTests(NodeTests):
    """The node tests of tensors with all operands but the first as constants.

    Those of training, of ai.onnx.ml and of operators as functions are left out.
    """

    name = "onnx-nodes-first"

    def cases(self) -> list[str]:
        return [n for n, case in self.by_name.items() if is_of_tensors(case)]

    def prepare(self, case: str) -> Case:
        return freeze(self.by_name[case], holds_all=True) or self.by_name[case]


def is_of_tensors(case: Case) -> bool:
    """Whether a test of the standard's inference operators has tensors, no strings among them."""
    others = ("expanded", "training", "ai_onnx_ml")
    if any(word in case.name for word in others) or len(case.data) != 1:
        return False
    (feeds, results), domains = case.data[0], {n.domain for n in case.model.graph.node}
    return not any("training" in d or "ml" in d for d in domains) and all(
        isinstance(v, np.ndarray) and v.dtype.kind in "fiub" for v in (*feeds, *results)
    )


class NodeTestFiles(ConstantNodeTests):
    """The same, as models of ONNX: for importers that are not ours."""

    name = "onnx-nodes-file"

    def read(self, model: onnx.ModelProto) -> onnx.ModelProto:
        return model


class Models(NodeTests):
    """The models in the wheel of onnx."""

    name = "onnx-models"

    @cached_property
    def by_name(self) -> Mapping[str, Case]:
        return {c.name: c for c in small_models()}

    def cases(self) -> list[str]:
        return [*self.by_name, *(f"light/{name}" for name in light_names())]

    def prepare(self, case: str) -> Case:
        kind, _, name = case.partition("/")
        return light_model(name) if kind == "light" else self.by_name[case]


KINDS = (RIGHT, REFUSED, NOT_RUN, WRONG)
SHOWN = 100  # letters of a reason
FRAMEWORKS = {  # target: its title, its own importer, and what the page says of the comparison
    "mxnet": (
        "MXNet 1.9.1",
        "`mxnet.contrib.onnx.import_model`",
        "MXNet's tensors have at least one axis: one of shape `(1,)` counts as right where ONNX "
        "has one of no axes, in both columns.",
    ),
    "relay": (
        "TVM 0.17",
        "`tvm.relay.frontend.from_onnx`",
        "Both are compiled at level 1 for TVM's virtual machine.",
    ),
    "relax": (
        "Relax",
        "`tvm.relax.frontend.onnx.from_onnx`",
        "The importer reads what the profile `relax` writes in the first column, and the tests as "
        "they are in the second (apache-tvm 0.27).",
    ),
    "torch": (
        "PyTorch 2.13",
        "onnx2torch 1.5.15",
        "The first column are sources that serde writes. The second was measured once: the modules "
        "that onnx2torch made of ONNX files that a former profile wrote for it.",
    ),
    "litert": (
        "LiteRT",
        "",
        "LiteRT 2.3 runs each file with XNNPACK's kernels and without; a file that it refuses "
        "counts as wrong. Tests of all element types are counted, also of those it has not.",
    ),
}


def framework_page(*records_and_target: Any) -> Iterator[str]:
    """ONNX's node tests in a framework, by serde and by its own importer, if it has one."""
    *records, target = records_and_target
    title, importer, notes = FRAMEWORKS[target]
    columns = f"| serde | {importer} |" if importer else "| serde |"
    cases = [c for c in all_cases() if all(c.name in side for side in records)]
    sides = [[Outcome.parse(side[c.name]) for c in cases] for side in records]
    yield f"# ONNX's node tests in {title}\n"
    yield (
        f"Made by `python -m conformance.pages`: the {len(cases)} node tests of onnx "
        f"{onnx.__version__}, converted and run. Small integer and scalar operands (bounds, axes, "
        f"sizes) are constants, as they are in models. {notes}\n"
    )
    rule = "|---" * (len(sides) + 1) + "|"
    yield f"| {columns}\n{rule}"
    for kind in KINDS:
        yield f"| {kind} | " + " | ".join(str(_count(kind, side)) for side in sides) + " |"
    yield "\n## By operator\n\nRight, of how many; what else there is in words.\n"
    yield f"| operator {columns}\n{rule}"
    families: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        families.setdefault(family(case), []).append(number)
    for op, numbers in sorted(families.items()):
        yield f"| {op} | " + " | ".join(_cell([side[n] for n in numbers]) for side in sides) + " |"
    yield "\n## Why serde refuses\n\n| tests | reason |\n|---|---|"
    reasons = Counter(o.reason[:SHOWN] for o in sides[0] if o.kind != RIGHT)
    for why, count in reasons.most_common():
        yield f"| {count} | {why.replace('|', '/')} |"
    yield ""


def litert_page(
    nodes: Mapping[str, record.Packed], first: Mapping[str, str], target: str
) -> Iterator[str]:
    """The page of LiteRT, and what becomes of tests whose other operands are constants."""
    yield from framework_page(nodes, target)
    counts = Counter(Outcome.parse(row).kind for row in first.values())
    yield "## With constants\n"
    yield (
        f"Of the {len(first)} tests of tensors (no strings, no training, no ai.onnx.ml, none of "
        "operators as functions), with all operands but the first as constants, "
        + ", ".join(f"{counts[kind]} are {kind}" for kind in KINDS) + ".\n"
    )  # fmt: skip


def family(case: Case) -> str:
    """The operator a test is about: the name up to the first words that are not one."""
    (*_, last) = sorted(case.ops or {"others"}, key=lambda op: (op.lower() in case.name, op))
    return last if len(case.ops) == 1 else case.name.removeprefix("test_").split("_")[0]


def _count(kind: str, outcomes: Sequence[Outcome]) -> int:
    return sum(o.kind == kind for o in outcomes)


def _cell(outcomes: Sequence[Outcome]) -> str:
    """``12 of 14, 1 wrong``."""
    rest = (f", {n} {kind}" for kind in (NOT_RUN, WRONG) if (n := _count(kind, outcomes)))
    return f"{_count(RIGHT, outcomes)} of {len(outcomes)}" + "".join(rest)


def onnx_page(
    nodes: Mapping[str, record.Packed], models: Mapping[str, record.Packed]
) -> Iterator[str]:
    """ONNX's own tests and models at every opset."""
    kinds: dict[str, dict[str, Mapping[str, Outcome]]] = defaultdict(dict)
    for case, row in {**nodes, **models}.items():
        kinds[case.rpartition("/")[0] or "node"][case] = unpack(row, Onnx.variants)
    yield "# ONNX's own tests\n"
    yield (
        "Made by `python -m conformance.pages`. The tests and models in the wheel of onnx "
        f"{onnx.__version__} are read into the IR, written at every opset, and run in ONNX Runtime "
        f"{onnxruntime.__version__} with its optimizers and without, or in onnx.reference where "
        "that has no such operator. [Operators by opset](opsets.md) says what older opsets lack.\n"
    )
    yield "| opset | " + " | ".join(f"{kind} ({len(of)})" for kind, of in kinds.items()) + " |"
    yield "|---" * (1 + len(kinds)) + "|"
    for opset in Onnx.variants:
        cells = (_cell([outcomes[opset] for outcomes in of.values()]) for of in kinds.values())
        yield f"| {opset} | {' | '.join(cells)} |"
    yield "\n## The models that are not right, and why\n"
    for case, row in sorted(models.items()):
        if not isinstance(row, str):
            yield from (f"* {case} at {at}: {why}" for why, at in row.items() if why != RIGHT)
        elif row != RIGHT:
            yield f"* {case}: {row}"
    yield ""
