"""Walking expressions without recursion: Python's stack ends before a chain of ``let`` does."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar, cast

from . import ast
from .ast import Expr

Result = TypeVar("Result")
Task = Generator[Any, Any, Result]


def run(task: Task[Result]) -> Result:
    """Run ``task`` to its result. A task yields another task to get that one's result, or what
    that one raises.
    """
    stack: list[Task[Any]] = [task]
    value: Any = None
    raised: Exception | None = None
    while True:
        try:
            top = stack[-1]
            child = top.send(value) if raised is None else top.throw(raised)
        except StopIteration as done:
            stack.pop()
            if not stack:
                return cast(Result, done.value)
            value, raised = done.value, None
        except Exception as error:
            stack.pop()
            if not stack:
                raise
            raised = error
        else:
            stack.append(child)
            value = raised = None


_OPERANDS: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    ast.Tuple: lambda e: e.fields,
    ast.TupleGetItem: lambda e: (e.tuple,),
    ast.Call: lambda e: (e.op, *e.args),
    ast.Function: lambda e: (*e.params, e.body),
    ast.Let: lambda e: (e.var, e.value, e.body),
    ast.If: lambda e: (e.cond, e.then, e.otherwise),
    ast.RefCreate: lambda e: (e.value,),
    ast.RefRead: lambda e: (e.ref,),
    ast.RefWrite: lambda e: (e.ref, e.value),
    ast.Match: lambda e: (e.data, *(c.body for c in e.clauses)),
}


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside ``expr``, in the order TVM visits them."""
    get = _OPERANDS.get(type(expr))
    return () if get is None else get(expr)


def post_order(*roots: Expr) -> Iterator[Expr]:
    """Every expression reachable from ``roots``, once, after those inside it."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        expr, ready = stack.pop()
        if ready:
            yield expr
        elif expr not in seen:
            seen.add(expr)
            stack.append((expr, True))
            stack.extend((e, False) for e in reversed(operands(expr)) if e not in seen)


def uses(*roots: Expr) -> dict[Expr, int]:
    """How many places of the expressions under ``roots`` read each of them."""
    count: dict[Expr, int] = {}
    seen, stack = set(roots), [*roots]
    while stack:
        for operand in operands(stack.pop()):
            count[operand] = count.get(operand, 0) + 1
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return count


def pattern_vars(pattern: ast.Pattern) -> Iterator[ast.Var]:
    """The variables ``pattern`` binds, left to right."""
    stack: list[ast.Pattern] = [pattern]
    while stack:
        top = stack.pop()
        if isinstance(top, ast.PatternVar):
            yield top.var
        elif isinstance(top, (ast.PatternConstructor, ast.PatternTuple)):
            stack.extend(reversed(top.patterns))


def to_function(expr: ast.Expr) -> ast.Function:
    """``expr`` as a function of its free variables."""
    if isinstance(expr, ast.Function):
        return expr
    bound: set[ast.Expr] = set()
    free: list[ast.Var] = []
    for inner in post_order(expr):
        if isinstance(inner, ast.Function):
            bound.update(inner.params)
        elif isinstance(inner, ast.Let):
            bound.add(inner.var)
        elif isinstance(inner, ast.Match):
            bound.update(v for c in inner.clauses for v in pattern_vars(c.pattern))
        elif isinstance(inner, ast.Var):
            free.append(inner)
    return ast.Function(tuple(v for v in free if v not in bound), expr)
