"""What releases of MXNet make of what is written for them: docs/results/mxnet-releases.md.

``$SERDE_MXNET`` holds the releases; MXNet 1.9.1 is the one that imports here.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from serde.errors import SerdeError
from testing import networks
from testing.light_models import feeds, model_path
from testing.live_worker import LiveError
from testing.mxnet.releases_live import READ, VARIABLE, WRITTEN, worker
from testing.mxnet.round_trips import errors
from testing.mxnet_live import run_symbol
from testing.onnx_live import run_model

from .matrix import Cell, reason
from .mxnet_reading import DIFFERENT, ENDS, LACKS, PLAIN, SAME, UNDEFINED
from .record import NOT_RUN, RANK, REFUSED, RIGHT, WRONG, Outcome, Packed, pack, unpack
from .targets import MXNET_LACKS

NETWORKS = (
    "squeezenet1.0 resnet18_v2 mobilenetv2_0.25 densenet121 inceptionv3 "
    "lstm_states lstm_bidirectional gru_states bert_interleaved_where"
).split()
LIGHT = "light_densenet121 light_inception_v2 light_resnet50 light_shufflenet".split()
NEWEST = "1.9.1"
# Why cases of operators are computed otherwise by the releases they are written for.
WRITTEN_OTHERWISE = {
    "Deconvolution": "of bytes, where another order of adding up rounds to the byte beside",
    "_contrib_quantized_pooling": "means of bytes that lie halfway between two before 1.7",
    "relu": "that of NaN is 0 before 1.5",
}
SHOWN, NEAR = 160, 1e-4
COLUMNS = tuple(sorted((*WRITTEN, NEWEST), key=lambda r: [int(n) for n in r.split(".")[:2]]))
Tables = dict[str, dict[str, Outcome]]
Arrays = Mapping[str, np.ndarray[Any, Any]]


class ReleaseNetworks(Cell):
    """Networks from ONNX, written for every release and run by it."""

    seconds = 600

    def cases(self) -> list[str]:
        return [*NETWORKS, *LIGHT] if VARIABLE in os.environ else []

    def run(self, case: str) -> Packed:
        with tempfile.TemporaryDirectory() as folder:
            path, inputs = make_model(case, Path(folder))
            expected = run_model(onnx.load(path), inputs)
            outcomes = {r: run_in_release(r, path, inputs, expected) for r in COLUMNS}
        return pack(outcomes, COLUMNS)

    def outcomes(self, case: str, row: Packed) -> dict[str, Outcome]:
        return unpack(row, COLUMNS)

    def make_failed_row(self, why: str) -> Packed:
        return str(Outcome.of(WRONG, why))

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return rows or before  # the releases need not be here


def make_model(name: str, folder: Path) -> tuple[Path, Arrays]:
    """A network as ONNX, and what it is run on."""
    if name in LIGHT:
        path = model_path(name)
        return path, feeds(onnx.load(path))
    network = networks.build(name, networks.smallest(name) if name in networks.VISION else None)
    inputs = networks.feeds(network, 2)
    source, _ = networks.export(network, folder)
    sizes: dict[str, Any] = {n: (x.shape, x.dtype) for n, x in inputs.items()}
    serde.convert(source, folder / "m.onnx", inputs=sizes)
    return folder / "m.onnx", inputs


def run_in_release(release: str, path: Path, inputs: Arrays, expected: Sequence[Any]) -> Outcome:
    """What becomes of a model in a release."""
    with tempfile.TemporaryDirectory() as folder:
        symbol, params = f"{folder}/m-symbol.json", f"{folder}/m-0000.params"
        try:
            serde.convert(path, symbol, mxnet=release)
        except SerdeError as error:
            return Outcome.of(REFUSED, reason(error))
        try:
            if release == NEWEST:
                got = run_symbol(Path(symbol).read_text(), networks.load_params(params), inputs)
            else:
                got = worker(release).run([symbol, params], inputs, command="run_files")
        except LiveError as error:
            return Outcome.of(WRONG, error)
    return Outcome.judge_error(errors(got, expected), NEAR)


def page(
    nodes: Mapping[str, Packed], in_newest: Mapping[str, Packed], operators: Mapping[str, Packed],
    rows: Mapping[str, Packed], read: Mapping[str, Packed],
) -> Iterator[str]:  # fmt: skip
    """The lines of docs/results/mxnet-releases.md."""
    tests = by_release(nodes, WRITTEN) | {NEWEST: by_release(in_newest, ("",))[""]}
    yield "# Releases of MXNet\n"
    yield "Made by `python -m conformance mxnet-releases`. Every release runs on a CPU, in an"
    yield "environment that `testing/mxnet/releases_live.py` made of the wheel on PyPI.\n"
    yield "## Written for a release\n"
    yield "What `--mxnet RELEASE` writes is loaded and run by the release: up to 1.9 bound by an"
    yield "executor, in 2.0 imported by `SymbolBlock.imports`. The node tests of ONNX have their"
    yield "bounds, axes and sizes as constants; the operators are the cases of the reading rules,"
    yield "read and written again. *Not run* is what the release does on GPUs only: "
    yield f"{'; '.join(MXNET_LACKS)}.\n"
    yield f"| release | {' | '.join(COLUMNS)} |"
    yield "|---|" + "---:|" * len(COLUMNS)
    own = by_release(operators, WRITTEN)
    for title, table in (("node tests of ONNX", tests), ("operators", own)):
        for kind in RANK:
            yield count_row(f"{title}: {kind}", kind, [table.get(r) for r in COLUMNS])
    for name in (*NETWORKS, *LIGHT):
        yield f"| {name} | {' | '.join(show(o) for o in unpack(rows[name], COLUMNS).values())} |"
    yield from explain_refusals(tests)
    yield from explain_wrong(own)
    yield from reading_lines(read)


def by_release(rows: Mapping[str, Packed], variants: Sequence[str]) -> Tables:
    """The outcomes of every case by release."""
    tables: Tables = {v: {} for v in variants}
    for case, row in rows.items():
        for variant, outcome in unpack(row, variants).items():
            tables[variant][case] = outcome
    return tables


def count_row(title: str, kind: str, tables: Sequence[Mapping[str, Outcome] | None]) -> str:
    """How many outcomes of a kind there are in each column."""
    counts = ("" if t is None else str(sum(o.kind == kind for o in t.values())) for t in tables)
    return f"| {title} | {' | '.join(counts)} |"


def show(outcome: Outcome) -> str:
    """An outcome in a cell."""
    return str(outcome)[:80].replace("|", "/")


def explain_refusals(tests: Mapping[str, Mapping[str, Outcome]]) -> Iterator[str]:
    """The lines on what a release refuses that the newest 1.x has."""
    yield f"\n### Node tests that are right in {NEWEST} only\n"
    yield "| release | tests | reason |\n|---|---:|---|"
    for release in WRITTEN:
        why = Counter(
            str(outcome).replace(f"MXNet {'.'.join(release.split('.')[:3])}", "the release")
            for case, outcome in tests[release].items()
            if outcome.kind != RIGHT and tests[NEWEST][case].kind == RIGHT
        )
        for text, count in why.most_common():
            yield f"| {release} | {count} | {text[:SHOWN].replace('|', '/')} |"


def explain_wrong(own: Mapping[str, Mapping[str, Outcome]]) -> Iterator[str]:
    """The lines on operators that a release computes otherwise than 1.9.1, as written for it."""
    yield "\n### Operators that a release computes otherwise, as written for it\n"
    yield "| operator | releases (cases) | why |\n|---|---|---|"
    listed: dict[str, Counter[str]] = {}
    for release, table in own.items():
        for case, outcome in table.items():
            if outcome.kind == WRONG:
                listed.setdefault(case.split()[0], Counter())[release] += 1
    for op, counted in sorted(listed.items()):
        releases = ", ".join(f"{r} ({n})" for r, n in counted.items())
        yield f"| {op} | {releases} | {WRITTEN_OTHERWISE.get(op, '')} |"


def reading_lines(read: Mapping[str, Packed]) -> Iterator[str]:
    """The lines on how files of each release are read."""
    tables = by_release(read, READ)
    yield "\n## Read as a release computes\n"
    yield "Each case of the reading rules is a symbol that the release saved. *The same* is what"
    yield "the release computes as 1.9.1 does, and what the rule of 1.9.1 reads; *by its own rule*"
    yield "what ONNX Runtime computes as the release does of the file that the release's own rule"
    yield "reads.\n"
    yield f"| release | {' | '.join(READ)} |"
    yield "|---|" + "---:|" * len(READ)
    kinds = {
        "the same": (RIGHT, SAME), "right by its own rule": (RIGHT, ""),
        "right with `--kernels plain`": (RIGHT, PLAIN), "refused": (REFUSED, None),
        "not run by the release": (NOT_RUN, LACKS), "ends the release": (NOT_RUN, ENDS),
        "otherwise, and not read so": (WRONG, None),
    }  # fmt: skip
    for title, (kind, why) in kinds.items():
        counts = (
            sum(o.kind == kind and why in (None, o.reason) for o in tables[r].values())
            for r in READ
        )
        yield f"| {title} | {' | '.join(map(str, counts))} |"
    yield "\n### What a release computes otherwise\n"
    yield "*Wrong* is read as 1.9.1 computes it, for the reason given.\n"
    yield "| operator | outcome | releases (cases) | why |\n|---|---|---|---|"
    listed: dict[tuple[str, str], Counter[str]] = {}
    for release, table in tables.items():
        for case, outcome in table.items():
            if outcome.kind in (REFUSED, WRONG):
                listed.setdefault((case.split()[0], outcome.kind), Counter())[release] += 1
    for (op, kind), counted in sorted(listed.items()):
        why = DIFFERENT.get(op, "") if kind == WRONG else ""
        yield f"| {op} | {kind} | {', '.join(f'{r} ({n})' for r, n in counted.items())} | {why} |"
    right = {c.split()[0] for t in tables.values() for c, o in t.items() if o == Outcome(RIGHT)}
    yield f"\nRead by rules of releases, right: {', '.join(f'`{op}`' for op in sorted(right))}."
    yield "\nCases that cannot be compared:\n"
    yield from (f"* `{op}`: {why}" for op, why in UNDEFINED.items())
    yield ""
