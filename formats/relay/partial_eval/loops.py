"""Recursion in tail position as a loop.

A function whose body chooses between a result and a call of itself runs until it chooses a result.
Its body is evaluated three times over: for whether to go on, for the arguments of the next call
(inside the loop), and for the result (behind it). What is computed twice that way and not needed is
dropped with the dead nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from serde.errors import ConversionError, require
from serde.ir.graph import DType, Shape, Value

from .. import ast
from ..ast_walk import Task, operands, post_order
from .constants import known
from .values import (
    Closure,
    Frame,
    GraphBuilder,
    Symbolic,
    alike,
    dtype_of,
    named,
    rebuilt,
    require_count,
    same_kind,
    tensors,
)

if TYPE_CHECKING:
    from .evaluator import Elaborator

AGAIN, RESULT, MIXED = "again", "result", "mixed"  # what the paths of an expression end in


class Recursion:
    """The calls a function makes of itself, each the last thing a path of its body does."""

    def __init__(self, function: ast.Function, itself: ast.Var | str) -> None:
        self.function, self.itself = function, itself
        self.kinds: dict[ast.Expr, str] = {}
        self.calls: list[ast.Call] = []
        self._classify()

    def is_itself(self, expr: ast.Expr) -> bool:
        """Whether ``expr`` names the function."""
        if isinstance(self.itself, str):
            return isinstance(expr, ast.GlobalVar) and expr.name == self.itself
        return expr is self.itself

    def _classify(self) -> None:
        order = list(_tail_order(self.function.body))
        for expr in order:
            if isinstance(expr, ast.Call) and self.is_itself(expr.op):
                self.kinds[expr] = AGAIN
                self.calls.append(expr)
            else:
                inside = {self.kinds[e] for e in _tails(expr)}
                self.kinds[expr] = inside.pop() if len(inside) == 1 else MIXED if inside else RESULT

    @property
    def in_tail_position_only(self) -> bool:
        """Whether nothing else in the body names the function."""
        return self.mentions == len(self.calls)

    @property
    def mentions(self) -> int:
        """How many places of the body name the function."""
        return sum(
            self.is_itself(inside)
            for expr in post_order(self.function.body)
            for inside in operands(expr)
        )


def _tails(expr: ast.Expr) -> tuple[ast.Expr, ...]:
    """The expressions one of which ``expr`` ends with."""
    if isinstance(expr, ast.Let):
        return (expr.body,)
    if isinstance(expr, ast.If):
        return (expr.then, expr.otherwise)
    if isinstance(expr, ast.Match):
        return tuple(c.body for c in expr.clauses)
    return ()


def _tail_order(body: ast.Expr) -> Sequence[ast.Expr]:
    """The expressions in tail position, inner ones first."""
    found: dict[ast.Expr, None] = {}
    stack = [body]
    while stack:
        expr = stack.pop()
        found.pop(expr, None)
        found[expr] = None
        stack.extend(_tails(expr))
    return list(reversed(found))


def recursion(function: ast.Function, itself: ast.Var | str) -> Recursion | None:
    """How the function calls itself under an ``if``; None where it does not."""
    found = Recursion(function, itself)
    mixed = [e for e, kind in found.kinds.items() if kind == MIXED and isinstance(e, ast.If)]
    return found if mixed and found.in_tail_position_only else None


def as_loop(run: Elaborator, closure: Closure, args: list[Symbolic], frame: Frame) -> Task[Any]:
    """The call of a recursive function as a loop; None where its arguments cannot be carried."""
    found = run.recursion(closure)
    assert found is not None
    params = closure.function.params
    for call in found.calls:
        require_count(call.args, params, "arguments")
    carried = [
        i for i in range(len(params)) if any(c.args[i] is not params[i] for c in found.calls)
    ]
    initial = [args[i] for i in carried]
    if not same_kind(initial):
        return None
    loop = _Loop(run, found, closure, carried, args)
    start = yield loop.goes_on(closure.function.body, loop.frame(frame.graph, initial))
    if isinstance(start, Value):
        truth = known(start, run.makers, run.numbers)
        start = start if truth is None else bool(truth)
    if start is False:
        final: list[Symbolic] = initial
    else:
        final = yield loop.emit(frame, initial, _as_value(start, frame.graph))
    result = yield loop.result(closure.function.body, loop.frame(frame.graph, final))
    return result


def _as_value(truth: Any, graph: GraphBuilder) -> Value:
    return truth if isinstance(truth, Value) else graph.const(truth, DType.BOOL)


class _Loop:
    """One loop being made."""

    def __init__(
        self, run: Elaborator, found: Recursion, closure: Closure, carried: list[int],
        args: list[Symbolic],
    ) -> None:  # fmt: skip
        self.run, self.found, self.closure = run, found, closure
        self.carried, self.args = carried, args

    def frame(self, graph: GraphBuilder, state: Sequence[Symbolic]) -> Frame:
        """A call of the function with ``state`` for the arguments that change."""
        made = Frame(graph, self.closure.frame, self.closure.name)
        made.values.update(zip(self.closure.function.params, self.args, strict=True))
        params = [self.closure.function.params[i] for i in self.carried]
        made.values.update(zip(params, state, strict=True))
        return made

    def emit(self, frame: Frame, initial: list[Symbolic], start: Value) -> Task[Any]:
        """The loop; the state it ends with."""
        body = self.closure.function.body
        child: GraphBuilder = frame.graph.child("body")  # type: ignore[assignment]
        child.input("iteration", DType.INT64, ())
        child.input("condition", DType.BOOL, ())
        state = [self.inputs(child, i, v) for i, v in zip(self.carried, initial, strict=True)]
        following = yield self.step(body, self.frame(child, state))
        name = self.closure.name or "a function"
        if not alike(tuple(initial), tuple(following)):
            raise ConversionError(f"the recursion of {name} changes the form of its arguments")
        cond = yield self.goes_on(body, self.frame(child, following))
        results = [v for part in following for v in tensors(part, f"an argument of {name}")]
        attrs = {"body": child.build([_as_value(cond, child), *results])}
        operands = [v for part in initial for v in tensors(part, f"an argument of {name}")]
        outputs = self.run.node("while", [start, *operands], attrs, len(operands), frame)
        inner = child.inputs[2:]
        for made, inside in zip(outputs, inner, strict=True):
            made.dtype, made.shape = inside.dtype, inside.shape
        parts = iter(outputs)
        return [rebuilt(v, parts) for v in initial]

    def inputs(self, graph: GraphBuilder, index: int, initial: Symbolic) -> Symbolic:
        """Inputs of the body for one argument, typed as the parameter is, or else the argument."""
        param = self.closure.function.params[index]
        annotation = param.annotation or param.type
        values = tensors(initial, "an argument")
        types = _tensor_types(annotation)
        made = []
        for at, value in enumerate(values):
            known_type = types[at] if types is not None and len(types) == len(values) else None
            dtype, shape = value.dtype, value.shape
            if known_type is not None:
                dtype = dtype_of(known_type.dtype)
                shape = _fixed(known_type.shape)
            made.append(graph.input(param.name, dtype, shape))
        return rebuilt(initial, iter(made))

    def goes_on(self, expr: ast.Expr, frame: Frame) -> Task[Any]:
        """Whether the function calls itself: a boolean, or a tensor of one."""
        expr = yield self.behind(expr, frame)
        kind = self.found.kinds[expr]
        if kind != MIXED:
            return kind == AGAIN
        assert isinstance(expr, ast.If)
        cond = yield self.run.value(expr.cond, frame)
        require(isinstance(cond, Value), f"chooses by {named(cond)}")
        ends = tuple(self.found.kinds[e] for e in (expr.then, expr.otherwise))
        if ends == (AGAIN, RESULT):
            return cond
        if ends == (RESULT, AGAIN):
            (negated,) = self.run.node("logical_not", [cond], {}, 1, frame)
            negated.dtype, negated.shape = DType.BOOL, ()
            return negated
        return (yield self.run.choose(cond, frame, (expr.then, expr.otherwise), self._truth))

    def _truth(self, expr: ast.Expr, frame: Frame) -> Task[Any]:
        return _as_value((yield self.goes_on(expr, frame)), frame.graph)

    def step(self, expr: ast.Expr, frame: Frame) -> Task[Any]:
        """The arguments of the next call, on a path that makes one."""
        expr = yield self.behind(expr, frame)
        if isinstance(expr, ast.Call) and self.found.kinds[expr] == AGAIN:
            args = yield self.run.values(expr.args, frame)
            return tuple(args[i] for i in self.carried)
        return (yield self._follow(expr, frame, RESULT, self.step))

    def result(self, expr: ast.Expr, frame: Frame) -> Task[Any]:
        """The result, on a path that ends in one."""
        if self.found.kinds.get(expr) == RESULT:
            return (yield self.run.value(expr, frame))
        expr = yield self.behind(expr, frame)
        if self.found.kinds[expr] == RESULT:
            return (yield self.run.value(expr, frame))
        return (yield self._follow(expr, frame, AGAIN, self.result))

    def _follow(self, expr: ast.Expr, frame: Frame, never: str, task: Any) -> Task[Any]:
        """``task`` of the branches that do not end in what is known not to happen."""
        require(isinstance(expr, ast.If), "a recursion has no path that ends it")
        assert isinstance(expr, ast.If)
        ends = [e for e in (expr.then, expr.otherwise) if self.found.kinds[e] != never]
        if len(ends) == 1:
            return (yield task(ends[0], frame))
        cond = yield self.run.value(expr.cond, frame)
        return (yield self.run.choose(cond, frame, (expr.then, expr.otherwise), task))

    def behind(self, expr: ast.Expr, frame: Frame) -> Task[Any]:
        """The expression behind variables and matches."""
        while isinstance(expr, (ast.Let, ast.Match)) and self.found.kinds[expr] != RESULT:
            if isinstance(expr, ast.Let):
                expr = yield self.run.lets(expr, frame)
            else:
                expr = yield self.run.clause(expr, frame)
        return expr


def _tensor_types(type_: ast.Type | None) -> list[ast.TensorType] | None:
    found: list[ast.TensorType] = []
    stack: list[ast.Type | None] = [type_]
    while stack:
        top = stack.pop()
        if isinstance(top, ast.TensorType):
            found.append(top)
        elif isinstance(top, ast.TupleType):
            stack.extend(reversed(top.fields))
        else:
            return None
    return found


def _fixed(shape: Sequence[ast.Dim]) -> Shape:
    return tuple(d if isinstance(d, int) else None for d in shape)
