"""Which of many expressions a backend gets for the operators that it lacks.

Each expression names the operators that it is made of. A backend gets those whose operators it has,
or that are expressed by such in turn: no expression leads back to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from serde.legalize.forms.form import Call, by
from serde.legalize.target import legalization_table
from serde.rewrite.rules import Rule, RuleTable


class Expression(NamedTuple):
    """A way to write ``op`` by operators of ``needs``.

    One that ``is_partial`` writes some forms only: ``rule`` gives None for others.
    """

    op: str
    needs: frozenset[str]
    rule: Callable[..., Any]
    is_partial: bool = False


def express_lacking(supported: Collection[str], expressions: Sequence[Expression]) -> RuleTable:
    """Rules for the operators that a backend lacks and that others express, in turn too.

    They are tried in their order, but first those whose operators are there in all forms.
    """
    available, remaining = set(supported), [e for e in expressions if e.op not in supported]
    ways: dict[str, list[Expression]] = {}
    while new := [e for e in remaining if e.needs <= available]:
        for expression in new:
            if expression.op not in _list_made_of(expression, ways):
                ways.setdefault(expression.op, []).append(expression)
        remaining = [e for e in remaining if e not in new]
        available |= ways.keys()
    complete = _list_complete(supported, ways)
    rules = {
        op: Rule.of(partial(_take_first, op, [
            by(e.rule) for e in sorted(entered, key=lambda e: not e.needs <= complete)
        ]))
        for op, entered in ways.items()
    }  # fmt: skip
    return legalization_table("ir → backend").merge(rules)


def _list_made_of(expression: Expression, ways: Mapping[str, Sequence[Expression]]) -> set[str]:
    """The operators that an expression is made of in the end, and on the way there."""
    operators = {*expression.needs}
    while more := {n for op in operators for e in ways.get(op, ()) for n in e.needs} - operators:
        operators |= more
    return operators


def _list_complete(
    supported: Collection[str], ways: Mapping[str, Sequence[Expression]]
) -> set[str]:
    """The operators that a backend has, or that others of these express in all forms."""
    complete = {*supported}
    while more := {
        op for op, entered in ways.items()
        if any(e.needs <= complete and not e.is_partial for e in entered)
    } - complete:  # fmt: skip
        complete |= more
    return complete


def _take_first(op: str, ways: Any, g: Any, *inputs: Any, outputs: int = 1, **attrs: Any) -> Any:
    """What the first way that applies makes of an operator."""
    call = Call(op, inputs, attrs, outputs, (), g)
    results = (way(g, call) for way in ways)
    return next((result for result in results if result is not None), None)
