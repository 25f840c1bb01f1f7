"""What becomes of operators that draw random numbers: ``refuse``, ``onnx`` or ``input``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from serde.errors import UsageError, require
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Rule, RuleTable
from serde.spec.expressions import Size
from serde.spec.schema import ELEMENT_CODES

FLOAT = ELEMENT_CODES[DType.FLOAT32]
OPERATORS = {"uniform": "RandomUniform", "normal": "RandomNormal"}


def draw_at_runtime(g: Any, kind: str, sizes: Sequence[Size]) -> Value:
    """Noise that the runtime draws anew each time."""
    op = OPERATORS[kind]
    if not sizes:
        return g.Squeeze(g[op](shape=(1,), dtype=FLOAT), [0])  # type: ignore[no-any-return]
    if all(isinstance(s, int) for s in sizes):
        return g[op](shape=sizes, dtype=FLOAT)  # type: ignore[no-any-return]
    like = g.ConstantOfShape(g.shape_from(sizes))
    return g[f"{op}Like"](like, dtype=FLOAT)  # type: ignore[no-any-return]


def draw_from_input(g: Any, kind: str, sizes: Sequence[Size]) -> Value:
    """Noise that is a further input of the model, called ``layer/uniform`` or ``layer/normal``."""
    require(not g.is_inner, "draws random numbers in a loop or branch, which an input cannot be")
    known = tuple(sizes)
    if not all(isinstance(s, int) for s in sizes):
        known = g.ConstantOfShape(g.shape_from(sizes)).shape
    return g.input(g.stem(kind), DType.FLOAT32, known)  # type: ignore[no-any-return]


REASON = (
    "draws random numbers: with --random onnx the runtime draws them, with --random input the "
    "model gets inputs of noise to make them of"
)
WAYS = {"onnx": draw_at_runtime, "input": draw_from_input}


def with_random(table: RuleTable, draws: RuleTable, way: str) -> RuleTable:
    """``table`` with the rules of ``draws``, whose operators draw numbers, unless they are refused.

    These rules take first what gives them noise: ``draw_at_runtime`` or ``draw_from_input``.
    """
    if way == "refuse":
        return table.merge({}, dict.fromkeys(draws.rules, REASON))
    if way not in WAYS:
        raise UsageError(f"--random={way!r}: it is refuse, {' or '.join(WAYS)}")
    bound = {
        op: Rule.of(partial(rule.function, WAYS[way]), rule.ignore, rule.only)
        for op, rule in draws.rules.items()
        if op not in table.rules
    }
    return table.merge(bound)
