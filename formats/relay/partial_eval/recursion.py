"""How a function calls itself: only in tail position, or once with a continuation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .. import ast
from ..ast_walk import operands, post_order

# What the paths of an expression end in: a call of the function itself, a result, or either
PathEnd = Literal["call", "result", "either"]
# Expressions whose operands are evaluated wherever the expression is
STRICT = (ast.Call, ast.Tuple, ast.TupleGetItem, ast.Let)


def refers_to(expr: ast.Expr, binding: ast.Var | str) -> bool:
    """Whether ``expr`` is the variable, or the global of that name."""
    if isinstance(binding, str):
        return isinstance(expr, ast.GlobalVar) and expr.name == binding
    return expr is binding


@dataclass(frozen=True)
class TailRecursion:
    """A function that calls itself in tail position only, and chooses by an ``if`` when.

    ``ends`` tells of every expression in tail position what its paths end in.
    """

    ends: dict[ast.Expr, PathEnd]
    calls: tuple[ast.Call, ...]


def find_tail_recursion(function: ast.Function, binding: ast.Var | str) -> TailRecursion | None:
    """The tail recursion of a function that its body calls ``binding``; None for any other."""
    ends: dict[ast.Expr, PathEnd] = {}
    calls: list[ast.Call] = []
    for expr in order_tails(function.body):
        if isinstance(expr, ast.Call) and refers_to(expr.op, binding):
            ends[expr] = "call"
            calls.append(expr)
        else:
            inside = {ends[e] for e in _list_tails(expr)}
            ends[expr] = inside.pop() if len(inside) == 1 else "either" if inside else "result"
    if not any(end == "either" and isinstance(e, ast.If) for e, end in ends.items()):
        return None
    mentions = sum(
        refers_to(operand, binding)
        for expr in post_order(function.body)
        for operand in operands(expr)
    )
    return TailRecursion(ends, tuple(calls)) if mentions == len(calls) else None


def _list_tails(expr: ast.Expr) -> tuple[ast.Expr, ...]:
    """The expressions inside ``expr`` one of which gives its value."""
    if isinstance(expr, ast.Let):
        return (expr.body,)
    if isinstance(expr, ast.If):
        return (expr.then, expr.otherwise)
    if isinstance(expr, ast.Match):
        return tuple(c.body for c in expr.clauses)
    return ()


def order_tails(body: ast.Expr) -> Sequence[ast.Expr]:
    """The expressions in tail position, inner ones first."""
    tails: dict[ast.Expr, None] = {}
    stack = [body]
    while stack:
        expr = stack.pop()
        tails.pop(expr, None)
        tails[expr] = None
        stack.extend(_list_tails(expr))
    return list(reversed(tails))


@dataclass(frozen=True)
class LinearRecursion:
    """A function whose body is ``lets; if (…) { step } else { base }``, either way round.

    ``step`` makes the one call of the function, and may go on with its result.
    """

    choice: ast.If
    lets: tuple[ast.Let, ...]
    step: ast.Expr
    base: ast.Expr
    step_if: bool  # the condition's value for which ``step`` is evaluated
    call: ast.Call


def find_linear_recursion(function: ast.Function, binding: ast.Var | str) -> LinearRecursion | None:
    """The linear recursion of a function that its body calls ``binding``; None for any other."""
    lets, body = [], function.body
    while isinstance(body, ast.Let):
        lets.append(body)
        body = body.body
    if not isinstance(body, ast.If):
        return None
    calls = [find_calls(e, binding) for e in (body.then, body.otherwise)]
    outside = [c for e in (body.cond, *(v.value for v in lets)) for c in find_calls(e, binding)]
    if outside or sorted(map(len, calls)) != [0, 1]:
        return None
    step_if = bool(calls[0])
    step, base = (body.then, body.otherwise) if step_if else (body.otherwise, body.then)
    (call,) = calls[0] or calls[1]
    return LinearRecursion(body, tuple(lets), step, base, step_if, call) if call else None


def find_calls(expr: ast.Expr, binding: ast.Var | str) -> list[ast.Call | None]:
    """The calls of a function inside ``expr``; None for a mention that may not be evaluated."""
    calls: list[ast.Call | None] = []
    seen: set[ast.Expr] = set()
    stack: list[tuple[ast.Expr, bool]] = [(expr, True)]
    while stack:
        top, is_certain = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        is_inside_certain = is_certain and isinstance(top, STRICT)
        for operand in operands(top):
            if not refers_to(operand, binding):
                stack.append((operand, is_inside_certain))
            elif isinstance(top, ast.Call) and operand is top.op and is_certain:
                calls.append(top)
            else:
                calls.append(None)
    return calls


Recursion = TailRecursion | LinearRecursion


def find_recursion(function: ast.Function, binding: ast.Var | str) -> Recursion | None:
    """How a function that its body calls ``binding`` calls itself, where that is a loop."""
    return find_tail_recursion(function, binding) or find_linear_recursion(function, binding)
