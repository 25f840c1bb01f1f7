"""Every rule of the opset tables, on onnx's node tests: lowered past it, run, and raised again.

``python -m conformance operators/opsets`` does this for all tests at all opsets; here each rule
gets a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, wraps
from typing import Any

import numpy as np
import pytest

from conformance.opsets import lower, subject
from serde.errors import Unconvertible
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import Graph
from serde.legalize.convert import lower_to, raise_to_ir
from serde.legalize.target import IR, LOWEST_WRITTEN, opset_target
from serde.rewrite.rules import RuleTable
from serde.spec import schema
from serde.version_converter.adapters import downgrades, upgrades
from testing.node_cases import Case, all_cases, freeze, verdict
from testing.onnx_live import ir_of, run_model

ELSEWHERE = {(15, "CastLike"), (15, "Shape")}  # rules with a test of their own below
FEW = 3  # tests a rule, spread over those of its operator
# Operators that only rules make, and the ones they are made of.
MADE_OF = {"Scatter": "ScatterElements", "Upsample": "Resize"}
SETTLED = 21  # where a graph that was raised again is run


@cache
def cases_of(op: str) -> tuple[Case, ...]:
    """Node tests about ``op``."""
    base_op = MADE_OF.get(op, op)
    return tuple(c for c in all_cases() if subject(c) == base_op)


def rules() -> list[tuple[int, str]]:
    """The rules that lowering to a supported opset can reach, with their versions."""
    return [
        (version, op) for version in downgrades for op in sorted(downgrades[version].rules)
        if version > LOWEST_WRITTEN and (version, op) not in ELSEWHERE
    ]  # fmt: skip


@contextmanager
def count_calls(table: RuleTable, op: str) -> Iterator[list[int]]:
    """Count the calls of one rule while the block runs."""
    rule, calls = table.rules[op], []

    @wraps(rule.function)
    def counting(*inputs: Any, **attrs: Any) -> Any:
        calls.append(1)
        return rule.function(*inputs, **attrs)

    table._rules[op] = replace(rule, function=counting)
    forget_steps()
    try:
        yield calls
    finally:
        table._rules[op] = rule
        forget_steps()


def forget_steps() -> None:
    """Let targets look up their rules anew."""
    opset_target.cache_clear()
    IR.memo.clear()


def spread(cases: tuple[Case, ...], fits: Callable[[Case], bool]) -> Iterator[Case]:
    """Cases from the whole of the list, those in the middle first."""
    kept = [c for c in cases if fits(c)]
    step = max(1, len(kept) // FEW)
    yield from kept[step // 2 :: step]
    yield from kept


@pytest.mark.parametrize(("version", "op"), rules())
def test_rule(version: int, op: str) -> None:
    """A test's numbers hold below the change, and again once what was written is raised."""
    done = 0
    for case in spread(cases_of(op), lambda c: runnable(c)):
        forms = filter(None, (case, freeze(case)))
        done += any(survives(version, op, form) for form in forms)
        if done == FEW:
            break
    assert done, f"no node test goes through {op} at {version}"


def survives(version: int, op: str, case: Case) -> bool:
    """Whether a test goes through a rule; its numbers have to hold if it does."""
    with count_calls(downgrades[version], op) as calls:
        try:
            new_case, graph = lower(case, version - 1)
        except Unconvertible:
            return False
    if not calls:
        return False
    assert verdict(new_case, to_proto(graph)) == "right", case.name
    assert verdict(new_case, again(graph)) == "right", case.name
    return True


def runnable(case: Case) -> bool:
    """Whether a runtime here gives what the test expects of its own model."""
    return "image_decoder" not in case.name


def again(graph: Graph) -> Any:
    """The graph raised, and lowered to an opset that runs."""
    return to_proto(lower_to(raise_to_ir(graph), max(SETTLED, graph.opset)))


def test_cast_like_of_bodies() -> None:
    """In the IR CastLike is Cast; what asks for it is the body of a newer operator."""
    case = cases_of("Swish")[0]
    with count_calls(downgrades[15], "CastLike") as calls:
        new_case, graph = lower(case, 14)
    assert calls and verdict(new_case, to_proto(graph)) == "right"


@pytest.mark.parametrize("start, end", [(0, 1), (1, None), (-2, -1), (-1, None), (1, 3)])
def test_shape_of_named_sizes(start: int, end: int | None) -> None:
    """Node tests have sizes that are known, and their Shape is a constant."""
    cut = f"start = {start}" + ("" if end is None else f", end = {end}")
    text = f"g (float[A,B,C] x) => (int64[n] y) {{ y = Shape<{cut}>(x) }}"
    with count_calls(downgrades[15], "Shape") as calls:
        graph = lower_to(ir_of(text, 15), 14)
    x = np.zeros((2, 3, 4), np.float32)
    expected = list(x.shape)[slice(start, end)]
    for variant in (graph, lower_to(raise_to_ir(graph), SETTLED)):
        assert calls and run_model(to_proto(variant), {"x": x})[0].tolist() == expected


def test_every_rule_upward_is_reached() -> None:
    """Rules upward belong to operators that existed, or were renamed, one version down."""
    for version, table in upgrades.items():
        for op in table.rules:
            assert schema.find(op, version - 1), f"{op} is not of opset {version - 1}"
