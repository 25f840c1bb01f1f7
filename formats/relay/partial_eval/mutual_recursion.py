"""Mutual recursion in tail position, turned into functions that call themselves.

``f`` calls ``g`` and ``g`` calls ``f``: with a copy of ``g``'s body in place of the call, ``f``
calls itself, which ``loops.py`` makes a loop of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import ast
from ..ast_walk import Task, operands, post_order, run
from .recursion import order_tails

MOST_COPIES = 64  # of bodies in one function
MOST_IN_GROUP = 16


def inline_mutual_recursion(module: ast.Module) -> ast.Module:
    """``module`` with the bodies of each other in place of calls, where that leaves a loop."""
    if len(module.functions) < 2:
        return module
    callees = {n: _find_globals(f.body) & module.functions.keys()
               for n, f in module.functions.items()}  # fmt: skip
    functions = dict(module.functions)
    for group in _find_cycles(callees):
        if all(_has_only_tail_calls(module.functions[n], group) for n in group):
            for name in group:
                inlining = _Inlining(module.functions, group - {name})
                body = run(_inline_tails(inlining, functions[name].body, frozenset()))
                if inlining.is_possible:
                    functions[name] = replace(functions[name], body=body)
    return replace(module, functions=functions)


def _find_globals(body: ast.Expr) -> set[str]:
    return {e.name for e in post_order(body) if isinstance(e, ast.GlobalVar)}


def _find_cycles(callees: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Small groups of functions that reach each other (strongly connected components)."""
    callers: dict[str, set[str]] = {name: set() for name in callees}
    for name, others in callees.items():
        for other in others:
            callers[other].add(name)
    finished = [n for tree in _search_depth_first(callees, callees, set()) for n in tree]
    for group in _search_depth_first(reversed(finished), callers, set()):
        if 1 < len(group) <= MOST_IN_GROUP:
            yield set(group)


def _search_depth_first(
    roots: Iterable[str], edges: Mapping[str, set[str]], seen: set[str]
) -> Iterator[list[str]]:
    """What is first reached from each root, children before parents."""
    for root in roots:
        tree: list[str] = []
        stack = [(root, False)]
        while stack:
            name, is_finished = stack.pop()
            if is_finished:
                tree.append(name)
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack += [(n, False) for n in sorted(edges[name]) if n not in seen]
        if tree:
            yield tree


def _has_only_tail_calls(function: ast.Function, names: set[str]) -> bool:
    """Whether every mention of the functions ``names`` is a call in tail position."""
    mentions = sum(
        isinstance(e, ast.GlobalVar) and e.name in names
        for expr in post_order(function.body)
        for e in operands(expr)
    )
    tail_calls = [e for e in order_tails(function.body) if _callee(e) in names]
    return mentions == len(tail_calls) and isinstance(function.body, (ast.Let, ast.If, ast.Match))


def _callee(expr: ast.Expr) -> str:
    """The function of the module that ``expr`` calls, empty where it is no such call."""
    is_call = isinstance(expr, ast.Call) and isinstance(expr.op, ast.GlobalVar)
    return expr.op.name if is_call else ""  # type: ignore[attr-defined]


@dataclass
class _Inlining:
    """The inlining of the functions of ``group`` into one function."""

    functions: Mapping[str, ast.Function]
    group: set[str]
    copies: int = 0
    is_possible: bool = True


def _inline_tails(inlining: _Inlining, expr: ast.Expr, active: frozenset[str]) -> Task[ast.Expr]:
    """``expr`` with bodies in place of its tail calls; ``active`` are being inlined already."""
    lets = []
    while isinstance(expr, ast.Let):
        lets.append(expr)
        expr = expr.body
    if isinstance(expr, ast.If):
        then = yield _inline_tails(inlining, expr.then, active)
        otherwise = yield _inline_tails(inlining, expr.otherwise, active)
        expr = replace(expr, then=then, otherwise=otherwise)
    elif isinstance(expr, ast.Match):
        clauses = []
        for clause in expr.clauses:
            body = yield _inline_tails(inlining, clause.body, active)
            clauses.append(replace(clause, body=body))
        expr = replace(expr, clauses=tuple(clauses))
    elif _callee(expr) in inlining.group:
        expr = yield _inline_call(inlining, expr, active)  # type: ignore[arg-type]
    for let in reversed(lets):
        expr = replace(let, body=expr)
    return expr


def _inline_call(inlining: _Inlining, call: ast.Call, active: frozenset[str]) -> Task[ast.Expr]:
    name = _callee(call)
    inlining.copies += 1
    has_all_args = len(inlining.functions[name].params) == len(call.args)
    if name in active or not has_all_args or inlining.copies > MOST_COPIES:
        inlining.is_possible = False
        return call
    function = copy_function(inlining.functions[name])
    result = yield _inline_tails(inlining, function.body, active | {name})
    for param, arg in reversed(list(zip(function.params, call.args, strict=True))):
        result = ast.Let(param, arg, result)
    return result  # type: ignore[no-any-return]


def copy_function(function: ast.Function) -> ast.Function:
    """A function like ``function`` that shares no variable and no computed value with it."""
    copies: dict[ast.Expr, Any] = {}
    for expr in post_order(function):
        copy = _COPY.get(type(expr))
        copies[expr] = expr if copy is None else copy(expr, copies)
    return copies[function]  # type: ignore[no-any-return]


def _copy_clauses(match: ast.Match, copies: dict[ast.Expr, Any]) -> tuple[ast.Clause, ...]:
    return tuple(ast.Clause(_copy_pattern(c.pattern, copies), copies[c.body])
                 for c in match.clauses)  # fmt: skip


def _copy_pattern(pattern: ast.Pattern, copies: dict[ast.Expr, Any]) -> ast.Pattern:
    if isinstance(pattern, ast.PatternVar):
        return ast.PatternVar(copies.get(pattern.var, pattern.var))
    if isinstance(pattern, (ast.PatternConstructor, ast.PatternTuple)):
        return replace(pattern, patterns=tuple(_copy_pattern(p, copies) for p in pattern.patterns))
    return pattern


_COPY: dict[type[ast.Expr], Callable[[Any, dict[ast.Expr, Any]], ast.Expr]] = {
    ast.Var: lambda e, c: replace(e),
    ast.Tuple: lambda e, c: replace(e, fields=tuple(c[f] for f in e.fields)),
    ast.TupleGetItem: lambda e, c: replace(e, tuple=c[e.tuple]),
    ast.Call: lambda e, c: replace(e, op=c[e.op], args=tuple(c[a] for a in e.args)),
    ast.Function: lambda e, c: replace(e, params=tuple(c[p] for p in e.params), body=c[e.body]),
    ast.Let: lambda e, c: replace(e, var=c[e.var], value=c[e.value], body=c[e.body]),
    ast.If: lambda e, c: replace(e, cond=c[e.cond], then=c[e.then], otherwise=c[e.otherwise]),
    ast.RefCreate: lambda e, c: replace(e, value=c[e.value]),
    ast.RefRead: lambda e, c: replace(e, ref=c[e.ref]),
    ast.RefWrite: lambda e, c: replace(e, ref=c[e.ref], value=c[e.value]),
    ast.Match: lambda e, c: replace(e, data=c[e.data], clauses=_copy_clauses(e, c)),
}
