"""Functions that call each other in tail position, each made one that calls itself.

``f`` calls ``g`` and ``g`` calls ``f``: with a copy of ``g``'s body in place of the call, ``f``
calls itself, which ``partial_eval/loops.py`` makes a loop of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .. import ast
from ..ast_walk import Task, operands, post_order, run

MOST_COPIES = 64  # of bodies in one function
MOST_IN_GROUP = 16


def joined(module: ast.Module) -> ast.Module:
    """``module`` with the bodies of each other in place of calls, where that leaves a loop."""
    if len(module.functions) < 2:
        return module
    called = {n: _named(f.body) & module.functions.keys() for n, f in module.functions.items()}
    made = dict(module.functions)
    for group in _cycles(called):
        if all(_calls_last(module.functions[n], group) for n in group):
            for name in group:
                joining = _Joining(module.functions, group - {name})
                body = run(joining.tail(made[name].body, frozenset()))
                if joining.possible:
                    made[name] = replace(made[name], body=body)
    return replace(module, functions=made)


def _named(body: ast.Expr) -> set[str]:
    return {e.name for e in post_order(body) if isinstance(e, ast.GlobalVar)}


def _cycles(called: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Small groups of functions that reach each other: what can be reached both ways."""
    callers: dict[str, set[str]] = {name: set() for name in called}
    for name, others in called.items():
        for other in others:
            callers[other].add(name)
    finished = [n for tree in _trees(called, called, set()) for n in tree]
    for group in _trees(reversed(finished), callers, set()):
        if 1 < len(group) <= MOST_IN_GROUP:
            yield set(group)


def _trees(
    roots: Iterable[str], edges: Mapping[str, set[str]], seen: set[str]
) -> Iterator[list[str]]:
    """What is first reached from each root, children before parents."""
    for root in roots:
        tree: list[str] = []
        stack = [(root, False)]
        while stack:
            name, ready = stack.pop()
            if ready:
                tree.append(name)
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack += [(n, False) for n in sorted(edges[name]) if n not in seen]
        if tree:
            yield tree


def _calls_last(function: ast.Function, names: set[str]) -> bool:
    """Whether every mention of ``names`` is a call that is the last thing a path does."""
    mentions = sum(
        isinstance(e, ast.GlobalVar) and e.name in names
        for expr in post_order(function.body)
        for e in operands(expr)
    )
    last = {e for e in _last(function.body) if _target(e) in names}
    return mentions == len(last) and isinstance(function.body, (ast.Let, ast.If, ast.Match))


def _last(body: ast.Expr) -> Iterator[ast.Expr]:
    stack = [body]
    while stack:
        expr = stack.pop()
        if isinstance(expr, ast.Let):
            stack.append(expr.body)
        elif isinstance(expr, ast.If):
            stack += [expr.then, expr.otherwise]
        elif isinstance(expr, ast.Match):
            stack += [c.body for c in expr.clauses]
        else:
            yield expr


def _target(expr: ast.Expr) -> str:
    """The function of the module that ``expr`` calls, empty where it is no such call."""
    called = isinstance(expr, ast.Call) and isinstance(expr.op, ast.GlobalVar)
    return expr.op.name if called else ""  # type: ignore[attr-defined]


class _Joining:
    def __init__(self, functions: Mapping[str, ast.Function], group: set[str]) -> None:
        self.functions, self.group = functions, group
        self.copies, self.possible = 0, True

    def tail(self, expr: ast.Expr, inside: frozenset[str]) -> Task[ast.Expr]:
        """``expr`` with bodies in place of the calls it ends with, none ``inside`` itself."""
        lets = []
        while isinstance(expr, ast.Let):
            lets.append(expr)
            expr = expr.body
        if isinstance(expr, ast.If):
            then = yield self.tail(expr.then, inside)
            otherwise = yield self.tail(expr.otherwise, inside)
            expr = replace(expr, then=then, otherwise=otherwise)
        elif isinstance(expr, ast.Match):
            clauses = []
            for clause in expr.clauses:
                clauses.append(replace(clause, body=(yield self.tail(clause.body, inside))))
            expr = replace(expr, clauses=tuple(clauses))
        elif _target(expr) in self.group:
            expr = yield self.body(expr, inside)  # type: ignore[arg-type]
        for let in reversed(lets):
            expr = replace(let, body=expr)
        return expr

    def body(self, call: ast.Call, inside: frozenset[str]) -> Task[ast.Expr]:
        name = _target(call)
        self.copies += 1
        fits = len(self.functions[name].params) == len(call.args) and self.copies <= MOST_COPIES
        if name in inside or not fits:
            self.possible = False
            return call
        function = copied(self.functions[name])
        result = yield self.tail(function.body, inside | {name})
        for param, arg in reversed(list(zip(function.params, call.args, strict=True))):
            result = ast.Let(param, arg, result)
        return result  # type: ignore[no-any-return]


def copied(function: ast.Function) -> ast.Function:
    """A function like ``function`` that shares no variable and no computed value with it."""
    made: dict[ast.Expr, Any] = {}
    for expr in post_order(function):
        copy = _COPY.get(type(expr))
        made[expr] = expr if copy is None else copy(expr, made)
    return made[function]  # type: ignore[no-any-return]


def _clauses(match: ast.Match, made: dict[ast.Expr, Any]) -> tuple[ast.Clause, ...]:
    return tuple(ast.Clause(_pattern(c.pattern, made), made[c.body]) for c in match.clauses)


def _pattern(pattern: ast.Pattern, made: dict[ast.Expr, Any]) -> ast.Pattern:
    if isinstance(pattern, ast.PatternVar):
        return ast.PatternVar(made.get(pattern.var, pattern.var))
    if isinstance(pattern, (ast.PatternConstructor, ast.PatternTuple)):
        return replace(pattern, patterns=tuple(_pattern(p, made) for p in pattern.patterns))
    return pattern


_COPY: dict[type[ast.Expr], Callable[[Any, dict[ast.Expr, Any]], ast.Expr]] = {
    ast.Var: lambda e, m: replace(e),
    ast.Tuple: lambda e, m: replace(e, fields=tuple(m[f] for f in e.fields)),
    ast.TupleGetItem: lambda e, m: replace(e, tuple=m[e.tuple]),
    ast.Call: lambda e, m: replace(e, op=m[e.op], args=tuple(m[a] for a in e.args)),
    ast.Function: lambda e, m: replace(e, params=tuple(m[p] for p in e.params), body=m[e.body]),
    ast.Let: lambda e, m: replace(e, var=m[e.var], value=m[e.value], body=m[e.body]),
    ast.If: lambda e, m: replace(e, cond=m[e.cond], then=m[e.then], otherwise=m[e.otherwise]),
    ast.RefCreate: lambda e, m: replace(e, value=m[e.value]),
    ast.RefRead: lambda e, m: replace(e, ref=m[e.ref]),
    ast.RefWrite: lambda e, m: replace(e, ref=m[e.ref], value=m[e.value]),
    ast.Match: lambda e, m: replace(e, data=m[e.data], clauses=_clauses(e, m)),
}
