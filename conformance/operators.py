"""The operator cases of the tests as sources: one operator of a framework each, run live."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from testing.mxnet import cases as mxnet_cases
from testing.mxnet.int8 import REASON, is_inexact
from testing.mxnet.rewriting import every_case
from testing.relay import running
from testing.relay.operators import ARCHIVE, EXPECTED

from .matrix import NotRun, Sample, Source
from .record import RANK, RIGHT, Outcome


class MXNetOperators(Source):
    """Cases of the MXNet reader's rules, judged by live MXNet."""

    name = "mxnet-operators"

    @cached_property
    def by_name(self) -> Mapping[str, mxnet_cases.Case]:
        """Every case; those alike in operator, shapes and attributes are numbered."""
        cases: dict[str, mxnet_cases.Case] = {}
        for case in every_case():
            name, number = str(case), 2
            while name in cases:
                name, number = f"{case} #{number}", number + 1
            cases[name] = case
        return cases

    def cases(self) -> list[str]:
        return [*self.by_name]

    def sample(self, case: str) -> Sample:
        test = self.by_name[case]
        if is_inexact(test):
            raise NotRun(REASON)
        try:
            expected = test.oracle(test)
        except Exception as error:  # MXNet's errors are of its own class
            raise NotRun(f"MXNet: {error}") from error
        graph = mxnet_cases._graph(mxnet_cases._symbol_json(test, len(expected)), test, "static")
        feeds = {f"x{i}": x for i, x in enumerate(test.inputs)}

        def differs(expected: Any, got: Any) -> str | None:
            for a, b in zip(expected, got, strict=True):
                if a.shape != b.shape or a.dtype != b.dtype:
                    return f"{b.dtype} {list(b.shape)}, not {a.dtype} {list(a.shape)}"
                error = mxnet_cases._error(b, a)
                if error > (test.tolerance or mxnet_cases._tolerance(a)):
                    return f"off by {error:.2g}"
            return None

        return Sample(graph, [({v.name: feeds[v.name] for v in graph.inputs}, expected)], differs)


class RelayOperators(Source):
    """Cases of the Relay reader's rules, with what TVM computed for them."""

    name = "relay-operators"

    def cases(self) -> list[str]:
        return list(running.names(ARCHIVE))

    def sample(self, case: str) -> Sample:
        recorded = running.read_module(ARCHIVE, case)
        with tempfile.TemporaryDirectory() as folder:
            graph = running.graph_of(recorded, case, Path(folder))
        feeds = {v.name: recorded.feeds[v.name] for v in graph.inputs}

        def differs(expected: Any, got: Any) -> str | None:
            try:
                running.assert_equal(got, expected, EXPECTED[case].rows)
            except AssertionError as error:
                return str(error).splitlines()[0]
            return None

        return Sample(graph, [(feeds, recorded.outputs)], differs)


SHOWN = 150  # letters of a reason
EMPTY = "tensors without elements, and MXNet's have some"


def mxnet_page(rows: Mapping[str, str]) -> Iterator[str]:
    """What becomes of all that the MXNet reader emits when it is written back."""
    outcomes = [(case, Outcome.parse(row)) for case, row in rows.items()]
    counts = Counter(outcome.kind for _, outcome in outcomes)
    yield "# MXNet's operators, written back\n"
    yield f"Made by `python -m conformance.pages`: {len(outcomes)} cases of the reading rules, from"
    yield "MXNet to the IR, back to MXNet, and run by MXNet 1.9.1 beside the original.\n"
    yield "| | cases |\n|---|---:|"
    yield from (f"| {kind} | {counts[kind]} |" for kind in RANK)
    yield "\n| what | cases | operators | why |\n|---|---:|---|---|"
    reasons: dict[tuple[str, str], list[str]] = {}
    for case, (kind, why) in outcomes:
        if kind != RIGHT:
            why = EMPTY if "without elements" in why else why
            reasons.setdefault((kind, why), []).append(case.partition("(")[0].split()[0])
    for (kind, why), ops in sorted(reasons.items(), key=lambda r: (r[0][0], -len(r[1]))):
        names = ", ".join(f"`{op}`" for op in sorted(set(ops))[:12])
        names += ", …" * (len(set(ops)) > 12)
        yield f"| {kind} | {len(ops)} | {names} | {' '.join(why.split())[:SHOWN]} |"
    yield ""
