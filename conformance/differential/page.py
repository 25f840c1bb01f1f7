"""The page of the record: counts by direction, refusals, and what is left out of the comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .campaign import KINDS
from .domains import RULES, WINDOWS, Rule, window_fits
from .known import KNOWN
from .quirks import QUIRKS
from .recording import OPEN, RESOLVED, RUNS, count_programs

TITLE = """# Differential testing

Made by `python -m conformance.pages` from what runs recorded:

    python -m conformance.differential --seconds N --first SEED --record

Random well-typed graphs of up to twenty nodes, with bodies of `If`, `Loop` and `Scan`, named sizes,
all element types that the runtimes have and extreme values, are run node by node in ONNX Runtime
(in onnx.reference where that has no kernel). Each is sent every way, run with several sets of
numbers and two of sizes, and compared. A graph is known by its seed;
`python -m conformance.differential --show SEED` shrinks one that differs, and `--rerun` runs again
what the record has as different.

* *ONNX, lowered*: at a random opset from 7 to 26; *raised again*: from there to a newer one.
* *MXNet*, *Relay, read again*: written, read and written as ONNX. *profile relax*: what is written
  for TVM's importer, in ONNX Runtime.
* *MXNet*, *Relay*, *Relax*, *PyTorch*: in the live frameworks.
* *MNN*, *ncnn*, *OpenVINO*, *tract*: written with the profile of a consumer, and run
  by it. *LiteRT*: written for TensorFlow Lite, and run with one of LiteRT's two sets of kernels;
  *read again*: in ONNX Runtime. Graphs have a few nodes and plain numbers, in float32 mostly; those
  for ncnn have static shapes, and no other type.

Counts are of graphs in a direction, and of nodes of the source for every set of data. *Unstable*:
no more than what errors of rounding within the graph itself make of the result, which is tried.
*Not run*: no runtime has the result's kernels, or TVM's importer the operator. *Known*: a
difference that is a runtime's own, listed below. *Crashed*: the process of a runtime ended
(*the source*: that of ONNX Runtime, which computes what is compared with). The
counts are those of the runs as they were; below stands what became of each difference since.
"""
STATE = """
## Runs and differences

{graphs:,} graphs were sent in a direction, made of {programs:,} different programs. What differed
or crashed: {found:,}, of which {open:,} are open. Of the rest the record has the seed, how it
differed, and what became of it when it was run again with the code as it is:

| now | differences |
|---|---:|
"""
LEFT_OPEN = """
## What the standard leaves open

Graphs have no such operands.

| operators | what is open |
|---|---|
"""
RUNTIME = """
## How ONNX Runtime departs from the standard

Graphs have no such operands either: there would be nothing to compare with.

| operators | what it does |
|---|---|
"""


def page(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The lines of docs/results/differential.md."""
    yield TITLE
    rows = dict(rows)
    spans, open_now, resolved = (rows.pop(n, {}) for n in (RUNS, OPEN, RESOLVED))
    fields = ("seconds", "graphs", "nodes", *KINDS)
    yield f"| direction | {' | '.join(fields)} |"
    yield "|---|" + "---:|" * len(fields)
    total = {f: sum(row[f] for row in rows.values()) for f in fields}
    for name, row in {**rows, "all": total}.items():
        yield f"| {name} | {' | '.join(f'{round(row[f]):,}' for f in fields)} |"
    yield from state_lines(total["graphs"], spans, open_now, resolved)
    yield LEFT_OPEN.rstrip()
    yield from rule_lines({**RULES, **dict.fromkeys(sorted(WINDOWS), window_fits)})
    yield RUNTIME.rstrip()
    yield from rule_lines(QUIRKS)
    yield "\n## Known differences\n"
    yield from (f"* {', '.join(k.directions)}: {k.reason}." for k in KNOWN)
    yield "\n## What is refused most\n"
    for name, row in rows.items():
        reasons = sorted(row["refusals"].items(), key=lambda item: (-item[1], item[0]))[:8]
        yield from (f"* {name}, {count:,}: {reason}" for reason, count in reasons)
    yield ""


def state_lines(
    graphs: int,
    spans: list[dict[str, Any]],
    open_now: Mapping[str, Mapping[str, str]],
    resolved: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """How much was run, and what became of the differences."""
    programs, total = count_programs(spans), len(open_now) + len(resolved)
    yield STATE.rstrip().format(graphs=graphs, programs=programs, found=total, open=len(open_now))
    now = Counter(one["is"] for one in resolved.values())
    yield from (f"| {kind} | {count:,} |" for kind, count in now.most_common())
    if open_now:
        yield "\nOpen, by seed and direction:\n"
        yield from (f"* {name}: `{one['why']}`" for name, one in open_now.items())
    yield "\n| seeds | programs | directions |\n|---|---:|---|"
    for span in spans:
        names = ", ".join(span["directions"])
        yield f"| {span['first']}–{span['last']} | {span['programs']:,} | {names} |"


def rule_lines(rules: Mapping[str, Rule]) -> Iterator[str]:
    """A row for each rule with the operators that have it."""
    operators: dict[str, list[str]] = {}
    for op, rule in rules.items():
        text = " ".join((rule.__doc__ or "").split()).removeprefix("ONNX Runtime: ")
        operators.setdefault(text, []).append(op)
    for text, ops in operators.items():
        yield f"| {' '.join(sorted(ops))} | {text} |"
