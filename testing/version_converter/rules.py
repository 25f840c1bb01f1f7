"""Each rule of the opset tables, on onnx's node tests: lowered past it, run, and raised again.

``python -m conformance operators/opsets`` does this for all tests at all opsets; here each rule
gets a few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, wraps
from types import ModuleType
from typing import Any

from serde.errors import Unconvertible
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import Graph
from serde.legalize.convert import lower_to, raise_to_ir
from serde.legalize.target import IR, LOWEST_WRITTEN, opset_target
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters import downgrades
from testing.node_cases import Case, all_cases, freeze, subject, verdict

FEW = 3  # tests a rule, spread over those of its operator
# Operators that only rules make, and the ones they are made of.
MADE_OF = {"Scatter": "ScatterElements", "Upsample": "Resize"}
SETTLED = 21  # where a graph that was raised again is run
# Rules that no node test goes through: CastLike is Cast in the IR, the sizes of node tests are known.
UNREACHED = {(15, "CastLike"), (15, "Shape")}


def module_of(function: Callable[..., Any]) -> str:
    """The module that a rule is written in, whatever it is wrapped in."""
    while (inner := getattr(function, "__wrapped__", getattr(function, "func", None))) is not None:
        function = inner
    return function.__module__


def rules_of(module: ModuleType) -> list[tuple[int, str]]:
    """The rules of a module that lowering to a supported opset can reach: versions, operators."""
    return [
        (version, op)
        for version, table in downgrades.items()
        for op, rule in sorted(table.rules.items())
        if version > LOWEST_WRITTEN
        and (version, op) not in UNREACHED
        and module_of(rule.function) == module.__name__
    ]


def check_rule(version: int, op: str) -> None:
    """Assert that tests' numbers hold below the change, and again once what was written is raised."""
    done = 0
    for case in spread(cases_of(op)):
        forms = filter(None, (case, freeze(case)))
        done += any(survives(version, op, form) for form in forms)
        if done == FEW:
            break
    assert done, f"no node test goes through {op} at {version}"


@cache
def cases_of(op: str) -> tuple[Case, ...]:
    """Node tests about ``op`` whose own models run here."""
    base_op = MADE_OF.get(op, op)
    cases = (c for c in all_cases() if "image_decoder" not in c.name)
    return tuple(c for c in cases if subject(c) == base_op)


def spread(cases: tuple[Case, ...]) -> Iterator[Case]:
    """Cases from the whole of the list, those in the middle first."""
    step = max(1, len(cases) // FEW)
    yield from cases[step // 2 :: step]
    yield from cases


def survives(version: int, op: str, case: Case) -> bool:
    """Whether a test goes through a rule; its numbers have to hold if it does."""
    with count_calls(downgrades[version], op) as calls:
        try:
            graph = lower_to(raise_to_ir(decode(case.model)), version - 1)
        except Unconvertible:
            return False
    if not calls:
        return False
    assert verdict(case, to_proto(graph)) == "right", case.name
    assert verdict(case, again(graph)) == "right", case.name
    return True


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


def again(graph: Graph) -> Any:
    """The graph raised, and lowered to an opset that runs."""
    return to_proto(lower_to(raise_to_ir(graph), max(SETTLED, graph.opset)))
