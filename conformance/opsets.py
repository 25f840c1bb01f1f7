"""Every operator's node tests at every opset, run, and the table of what each opset can say.

An operator is native at an opset where all its tests are that operator there, decomposed where
some need others, and refused where some cannot be said; for those the reasons are listed. Operands
that older opsets hold in attributes come as inputs in onnx's tests: a test that is not native so is
tried again with them held constant, as models have them, and the sign is of that. What sequences
and optionals become within a graph is tried on the models of testing/legalize/sequence_cases.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from serde.errors import SerdeError, Unconvertible
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import IR_OPSET, Graph
from serde.legalize.convert import lower_to, raise_to_ir
from serde.legalize.target import LOWEST_WRITTEN
from serde.spec import schema
from testing.legalize.sequence_cases import cases_of
from testing.node_cases import Case, all_cases, freeze, subject, verdict

from .matrix import Cell
from .record import REFUSED, RIGHT, WRONG, Outcome

TARGETS = range(LOWEST_WRITTEN, IR_OPSET)
OLD_NAMES = {"ScatterElements": "Scatter", "Resize": "Upsample"}
WHY = """\
An operand that was an attribute in an older opset may be computed, and a size may be dynamic:
neither is a reason. What is left cannot be expressed:

* *Element types.* Where an opset has no such elements, no tensor of them can enter or leave the
  graph, which is what these tests do. Within the graph they are carried in a wider type:
  constants, what Cast and QuantizeLinear give, and what only moves or chooses elements. Arithmetic
  in bfloat16 rounds after each operator as float32 does not; it is refused below opset 13.
* *Sequences and optionals* that enter or leave the graph, or whose length follows from data. Those
  built and read within the graph at constant places are resolved (○), and so is a loop that
  carries one, where its number of iterations is static.
* *Strings.* Before opset 20 no operator makes one string of others or searches one, but for
  StringNormalizer, of opset 10; before opset 11, where Unique came, none compares two.
* *ImageDecoder*: no operator reads the formats of image files.
* *BitCast* of floats: one that is NaN has bits of its own, which no arithmetic can tell or make.
* *TfIdfVectorizer*, of strings at 7 and 8: no operator compares them.
"""
MARKS = {"native": "●", "decomposed": "○", "refused": "–"}


@dataclass
class Row:
    """What became of one operator at one opset, over its tests."""

    kinds: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    unrun: list[str] = field(default_factory=list)  # by no runtime, as the test's own model
    own: bool = True  # whether no test of onnx's is about the operator

    @property
    def mark(self) -> str:
        """The sign for the table: of a mixture, the one that promises least, and both."""
        marks = [m for kind, m in MARKS.items() if kind in self.kinds]
        return "".join(marks[-2:] if "refused" in self.kinds else marks[-1:])


def is_native(op: str, case: Case, graph: Graph) -> bool:
    """Whether the graph still says it with the operator itself, if in a wider element type."""
    ops = {n.op for n in graph.nodes}
    old = OLD_NAMES.get(op, op)
    if len(case.ops - {"Constant"}) > 1 and op in case.ops:
        return op in ops
    has = schema.find(op, graph.opset) or schema.find(old, graph.opset)
    return has is not None and ops <= {op, old, "Identity", "Cast"}


def lower(case: Case, opset: int) -> tuple[Case, Graph]:
    """The case at ``opset``."""
    return case, lower_to(raise_to_ir(decode(case.model)), opset)


def try_case(op: str, case: Case, opset: int, row: Row) -> None:
    """Lower and run one test, and note in ``row`` what came of it.

    What its operands become when they are held constant, as models have them, decides the sign.
    """
    kind, reasons = attempt(op, case, opset, row)
    fixed = freeze(case) if kind != "native" else None
    if fixed is not None:
        kind, reasons = attempt(op, fixed, opset, row)
    row.kinds.add(kind)
    row.reasons.update(reasons)


def attempt(op: str, case: Case, opset: int, row: Row) -> tuple[str, set[str]]:
    """Whether a test is native, decomposed or refused, and why; a wrong result is noted."""
    try:
        new_case, graph = lower(case, opset)
    except Unconvertible as error:
        return "refused", {p.reason for p in error.problems}
    if (how := verdict(new_case, to_proto(graph))) != "right":
        nowhere = case.opset == opset or verdict(case, case.model) != "right"
        (row.unrun if nowhere and "cannot run" in how else row.wrong).append(f"{case.name}: {how}")
    return "native" if is_native(op, case, graph) else "decomposed", set()


def subjects() -> Iterator[tuple[str | None, Case, bool]]:
    """Every test with the operator it is about, and whether it is one of our own."""
    for case in all_cases():
        yield subject(case), case, False
    for op, case in cases_of():
        yield op, case, True


def can_be_read(case: Case) -> bool:
    """Whether a test is no refusal at its own opset already."""
    try:
        raise_to_ir(decode(case.model))
    except SerdeError:
        return False
    return True


class Opsets(Cell):
    """The sign of an operator at each opset, and the reasons of what is refused.

    A row with results that are wrong has them as well, under ``wrong``.
    """

    seconds = 1200

    @cached_property
    def tests(self) -> Mapping[str, list[tuple[Case, bool]]]:
        """The tests, by operator."""
        by_op: dict[str, list[tuple[Case, bool]]] = defaultdict(list)
        for op, case, own in subjects():
            if op is not None and schema.find(op) is not None:
                by_op[op].append((case, own))
        return by_op

    def cases(self) -> list[str]:
        return list(schema.names())

    def run(self, op: str) -> dict[str, Any]:
        tests = [(case, own) for case, own in self.tests.get(op, ()) if can_be_read(case)]
        if not tests:
            signs = (MARKS["native" if schema.find(op, v) else "refused"] for v in TARGETS)
            return {"tested": False, "signs": " ".join(signs), "refused": []}
        rows = {opset: Row() for opset in TARGETS}
        for case, own in tests:
            for opset, row in rows.items():
                row.own &= own
                try_case(op, case, opset, row)
        opsets: dict[str, list[int]] = defaultdict(list)
        for opset, row in rows.items():
            for reason in row.reasons:
                opsets[reason.replace(f"ONNX opset {opset} has", "the opset has")].append(opset)
        refused = [f"{span(v)}: {reason}" for reason, v in sorted(opsets.items())]
        signs = " ".join(row.mark for row in rows.values())
        tested = not rows[TARGETS[0]].own
        result: dict[str, Any] = {"tested": tested, "signs": signs, "refused": refused}
        wrong = [f"{opset}: {line}" for opset, row in rows.items() for line in row.wrong]
        return result | {"wrong": wrong} if wrong else result

    def outcomes(self, case: str, row: dict[str, Any]) -> dict[str, Outcome]:
        if why := row.get("failed") or "; ".join(row.get("wrong", ())):
            return {"": Outcome.of(WRONG, why)}
        signs = zip(map(str, TARGETS), row["signs"].split(), strict=True)
        return {v: Outcome(REFUSED if MARKS["refused"] in s else RIGHT) for v, s in signs}


HEADER = f"""# Operators by opset

Made by `python -m conformance operators/opsets` from ONNX's node tests, and our own for sequences.

● the operator itself, ○ other operators that compute the same, – some uses are refused
(beside a sign: the rest is as it says). * no test of onnx's is about the operator: the
signs are of our own tests, or say whether the opset has it.

| operator | {" | ".join(map(str, TARGETS))} |
|---{"|---" * len(TARGETS)}|"""


def page(rows: Mapping[str, Any]) -> Iterator[str]:
    """The lines of docs/results/opsets.md."""
    yield HEADER
    for op, row in rows.items():
        name = op if row["tested"] else f"{op} *"
        yield f"| {name} | {' | '.join(row['signs'].split())} |"
    yield f"\n## What is refused, and why\n\n{WHY}"
    yield from sorted(f"* {op} at {why}" for op, row in rows.items() for why in row["refused"])
    yield ""


def span(opsets: list[int]) -> str:
    """``7`` or ``7–12``."""
    return str(opsets[0]) if len(opsets) == 1 else f"{opsets[0]}–{opsets[-1]}"
