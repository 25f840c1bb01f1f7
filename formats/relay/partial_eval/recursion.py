"""Recursion that goes on with the result of its one call, as two loops.

``f(p) = if c(p) then base(p) else rest(p, f(next(p)))``: the first loop runs ``next`` until
``base`` is reached, and keeps the arguments of every call; the second goes through them backwards
with ``rest``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Tensor, Value

from .. import ast
from ..ast_walk import Task, operands
from .values import (
    Closure,
    Frame,
    GraphBuilder,
    Symbolic,
    declare,
    named,
    rebuilt,
    require_count,
    tensors,
)

if TYPE_CHECKING:
    from .evaluator import Elaborator

HERE = (ast.Call, ast.Tuple, ast.TupleGetItem, ast.Let)  # what is evaluated whenever it is met


@dataclass(frozen=True)
class Linear:
    """A choice between a result and a branch that makes one call of the function."""

    choice: ast.If
    lets: tuple[ast.Let, ...]  # before the choice
    again: ast.Expr
    base: ast.Expr
    when: bool  # the condition's value on the way to the call
    call: ast.Call


def linear(function: ast.Function, itself: ast.Var | str) -> Linear | None:
    """How ``function`` calls itself once, behind its choice; None where it does otherwise."""
    lets, body = [], function.body
    while isinstance(body, ast.Let):
        lets.append(body)
        body = body.body
    if not isinstance(body, ast.If):
        return None
    calls = [_calls(e, itself) for e in (body.then, body.otherwise)]
    outside = [c for e in (body.cond, *(v.value for v in lets)) for c in _calls(e, itself)]
    if outside or sorted(map(len, calls)) != [0, 1]:
        return None
    when = bool(calls[0])
    ends = (body.then, body.otherwise) if when else (body.otherwise, body.then)
    (call,) = calls[0] or calls[1]
    plain = call is not None
    return Linear(body, tuple(lets), *ends, when, call) if plain and call else None


def _calls(expr: ast.Expr, itself: ast.Var | str) -> list[ast.Call | None]:
    """The calls of a function inside ``expr``; None for a mention that may not be evaluated."""
    found: list[ast.Call | None] = []
    seen: set[ast.Expr] = set()
    stack: list[tuple[ast.Expr, bool]] = [(expr, True)]
    while stack:
        top, certain = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        inner = certain and isinstance(top, HERE)
        for inside in operands(top):
            if _is(inside, itself):
                called = isinstance(top, ast.Call) and inside is top.op and certain
                found.append(top if called else None)  # type: ignore[arg-type]
            else:
                stack.append((inside, inner))
    return found


def _is(expr: ast.Expr, itself: ast.Var | str) -> bool:
    if isinstance(itself, str):
        return isinstance(expr, ast.GlobalVar) and expr.name == itself
    return expr is itself


def as_loops(
    run: Elaborator, found: Linear, closure: Closure, args: list[Symbolic], frame: Frame
) -> Task[Any]:
    """The call as two loops; None where an argument is no tensor, or may change its size."""
    if not all(isinstance(a, Value) and a.is_static for a in args):
        return None
    require_count(found.call.args, args, "arguments")
    one = _Loops(run, found, closure)
    params: list[Value] = args  # type: ignore[assignment]
    start = yield one.goes_on(one.frame(frame.graph, params))
    count, last, kept = yield one.forwards(frame, params, start)
    outer = one.frame(frame.graph, last)
    result = yield one.evaluate(found.base, outer)
    return (yield one.backwards(frame, count, kept, result))


class _Loops:
    def __init__(self, run: Elaborator, found: Linear, closure: Closure) -> None:
        self.run, self.found, self.closure = run, found, closure

    def frame(self, graph: GraphBuilder, args: list[Value]) -> Frame:
        made = Frame(graph, self.closure.frame, self.closure.name)
        made.values.update(zip(self.closure.function.params, args, strict=True))
        return made

    def evaluate(self, expr: ast.Expr, frame: Frame) -> Task[Any]:
        for let in self.found.lets:
            frame.values[let.var] = yield self.run.value(let.value, frame)
        return (yield self.run.value(expr, frame))

    def goes_on(self, frame: Frame) -> Task[Any]:
        cond = yield self.evaluate(self.found.choice.cond, frame)
        require(isinstance(cond, Value), f"chooses by {named(cond)}")
        return cond if self.found.when else self.node("logical_not", [cond], frame, DType.BOOL)

    def node(self, op: str, inputs: list[Value], frame: Frame, dtype: DType, **attrs: Any) -> Value:
        (made,) = self.run.node(op, inputs, attrs, 1, frame)
        made.dtype, made.shape = dtype, () if op != "take" else None
        return made

    def whole(self, graph: GraphBuilder, number: int) -> Value:
        return graph.const(Tensor.of(np.array(number, np.int64)))

    def forwards(self, frame: Frame, args: list[Value], start: Value) -> Task[Any]:
        """How often the function calls itself, its last arguments, and those of all other calls."""
        child: GraphBuilder = frame.graph.child("forwards")  # type: ignore[assignment]
        child.input("iteration", DType.INT64, ())
        child.input("condition", DType.BOOL, ())
        number = child.input("calls", DType.INT64, ())
        state = [child.input(p.name, v.dtype, v.shape)
                 for p, v in zip(self.closure.function.params, args, strict=True)]  # fmt: skip
        inner = self.frame(child, state)
        for let in self.found.lets:
            inner.values[let.var] = yield self.run.value(let.value, inner)
        step: ast.Expr = self.found.again
        while isinstance(step, ast.Let):
            if (
                not _calls(ast.Tuple((step.value,)), self.closure.itself or "")
                and step.value is not self.found.call
            ):
                inner.values[step.var] = yield self.run.value(step.value, inner)
            step = step.body
        following = yield self.run.values(self.found.call.args, inner)
        require(all(isinstance(v, Value) for v in following), "an argument that is no tensor")
        cond = yield self.goes_on(self.frame(child, following))
        more = self.node("add", [number, self.whole(child, 1)], inner, DType.INT64)
        scans = [self.run.node("copy", [v], {}, 1, inner)[0] for v in state]
        for scan, value in zip(scans, state, strict=True):
            scan.dtype, scan.shape = value.dtype, value.shape
        body = child.build([cond, more, *following, *scans])
        operands_ = [start, self.whole(frame.graph, 0), *args]
        total = 1 + 2 * len(args)
        made = self.run.node("while", operands_, {"body": body}, total, frame)
        made[0].dtype, made[0].shape = DType.INT64, ()
        for out, value in zip(made[1:], [*args, *args], strict=True):
            out.dtype = value.dtype
        for out, value in zip(made[1 : 1 + len(args)], args, strict=True):
            out.shape = value.shape
        return made[0], made[1 : 1 + len(args)], made[1 + len(args) :]

    def backwards(
        self, frame: Frame, count: Value, kept: list[Value], result: Symbolic
    ) -> Task[Any]:
        values = tensors(result, "what the recursion returns")
        child: GraphBuilder = frame.graph.child("backwards")  # type: ignore[assignment]
        child.input("iteration", DType.INT64, ())
        child.input("condition", DType.BOOL, ())
        left = child.input("left", DType.INT64, ())
        state = [child.input("result", v.dtype, v.shape) for v in values]
        outer = Frame(child, None, self.closure.name)
        at = self.node("subtract", [left, self.whole(child, 1)], outer, DType.INT64)
        args = []
        for stack in kept:
            (value,) = self.run.node("take", [stack, at], {"axis": 0, "mode": "fast"}, 1, outer)
            args.append(value)
        for value, param in zip(args, self.closure.function.params, strict=True):
            declare(value, param.annotation or param.type)
        inner = self.frame(child, args)
        inner.values[self.found.call] = rebuilt(result, iter(state))
        new = yield self.evaluate(self.found.again, inner)
        more = self.node("greater", [at, self.whole(child, 0)], outer, DType.BOOL)
        body = child.build([more, at, *tensors(new, "what the recursion returns")])
        start = self.node("greater", [count, self.whole(frame.graph, 0)], frame, DType.BOOL)
        made = self.run.node(
            "while", [start, count, *values], {"body": body}, 1 + len(values), frame
        )
        for out, value in zip(made[1:], values, strict=True):
            out.dtype, out.shape = value.dtype, value.shape
        return rebuilt(result, iter(made[1:]))
