"""Tail recursion as a loop.

A function whose body chooses between a result and a call of itself runs until it chooses a result.
Its body is evaluated three times: for whether it calls itself again, for the arguments of that call
(inside the loop), and for the result (behind the loop). Nodes that one of these emits and nothing
reads are removed with the dead code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from serde.errors import ConversionError, require
from serde.ir.graph import DType, Value

from .. import ast
from ..ast_walk import Task
from .expressions import bind_lets, choose_branch, require_tensor, select_clause
from .recursion import PathEnd, TailRecursion
from .state import State, emit_node, emit_scalar, evaluate, evaluate_all, fold_condition
from .types import dtype_of, flatten_type, static_shape_of
from .values import (
    Closure,
    Frame,
    GraphBuilder,
    Symbolic,
    flatten,
    has_only_tensors,
    has_same_structure,
    require_count,
    unflatten,
)


@dataclass(frozen=True, eq=False)
class Loop:
    """A call of a tail-recursive function; ``carried`` are the arguments that its calls change."""

    recursion: TailRecursion
    closure: Closure
    args: list[Symbolic]
    carried: tuple[int, ...]

    @property
    def body(self) -> ast.Expr:
        """The function's body."""
        return self.closure.function.body


def evaluate_as_loop(
    state: State, recursion: TailRecursion, closure: Closure, args: list[Symbolic], frame: Frame
) -> Task[Any]:
    """The result of a tail-recursive call; None where its arguments are no loop's values."""
    params = closure.function.params
    for call in recursion.calls:
        require_count(call.args, params, "arguments")
    carried = tuple(
        i for i, p in enumerate(params) if any(c.args[i] is not p for c in recursion.calls)
    )
    loop = Loop(recursion, closure, args, carried)
    carried_args = [args[i] for i in carried]
    if not has_only_tensors(carried_args):
        return None
    start = yield evaluate_condition(
        state, loop, loop.body, open_frame(loop, frame.builder, carried_args)
    )
    if isinstance(start, Value):
        is_true = fold_condition(state, start)
        start = start if is_true is None else is_true
    if start is not False:
        start = _to_value(start, frame.builder)
        carried_args = yield emit_loop(state, loop, frame, carried_args, start)
    return (
        yield evaluate_result(state, loop, loop.body, open_frame(loop, frame.builder, carried_args))
    )


def open_frame(loop: Loop, builder: GraphBuilder, carried: Sequence[Symbolic]) -> Frame:
    """A call of the function with ``carried`` for the arguments that change."""
    frame = Frame(builder, loop.closure.frame, loop.closure.name)
    params = loop.closure.function.params
    frame.values.update(zip(params, loop.args, strict=True))
    frame.values.update(zip((params[i] for i in loop.carried), carried, strict=True))
    return frame


def emit_loop(
    state: State, loop: Loop, frame: Frame, carried: list[Symbolic], start: Value
) -> Task[Any]:
    """Emit the ``while`` node; return the carried arguments of the last call."""
    name = loop.closure.name or "a function"
    argument = f"an argument of {name}"
    builder = frame.builder.open_body("body")
    params = [loop.closure.function.params[i] for i in loop.carried]
    inner = [_add_inputs(builder, p, v) for p, v in zip(params, carried, strict=True)]
    following = yield evaluate_step(state, loop, loop.body, open_frame(loop, builder, inner))
    if not has_same_structure(tuple(carried), tuple(following)):
        raise ConversionError(f"recursion: the arguments of {name} change their structure")
    cond = yield evaluate_condition(state, loop, loop.body, open_frame(loop, builder, following))
    results = [v for value in following for v in flatten(value, argument)]
    attrs = {"body": builder.build([_to_value(cond, builder), *results])}
    operands = [v for value in carried for v in flatten(value, argument)]
    outputs = emit_node(state, frame, "while", [start, *operands], attrs, len(operands))
    for output, value in zip(outputs, builder.inputs[2:], strict=True):
        output.dtype, output.shape = value.dtype, value.shape
    tensors = iter(outputs)
    return [unflatten(v, tensors) for v in carried]


def _add_inputs(builder: GraphBuilder, param: ast.Var, arg: Symbolic) -> Symbolic:
    """Inputs of the body for one argument; the type is the parameter's, or else the argument's."""
    values = flatten(arg, "an argument")
    types = flatten_type(param.annotation or param.type)
    is_typed = types is not None and len(types) == len(values)
    inputs = []
    for at, value in enumerate(values):
        dtype, shape = value.dtype, value.shape
        if is_typed:
            assert types is not None
            dtype, shape = dtype_of(types[at].dtype), static_shape_of(types[at].shape)
        inputs.append(builder.input(param.name, dtype, shape))
    return unflatten(arg, iter(inputs))


def _to_value(cond: Value | bool, builder: GraphBuilder) -> Value:
    return cond if isinstance(cond, Value) else builder.const(cond, DType.BOOL)


def evaluate_condition(state: State, loop: Loop, expr: ast.Expr, frame: Frame) -> Task[Any]:
    """Whether the function calls itself: a boolean, or a tensor of one."""
    expr = yield _skip_bindings(state, loop, expr, frame)
    ends = loop.recursion.ends
    if ends[expr] != "either":
        return ends[expr] == "call"
    assert isinstance(expr, ast.If)
    cond = require_tensor((yield evaluate(state, expr.cond, frame)))
    match ends[expr.then], ends[expr.otherwise]:
        case "call", "result":
            return cond
        case "result", "call":
            return emit_scalar(state, frame, "logical_not", [cond], DType.BOOL)

    def evaluate_branch(branch: ast.Expr, inner: Frame) -> Task[Any]:
        return _to_value((yield evaluate_condition(state, loop, branch, inner)), inner.builder)

    return (yield choose_branch(state, cond, frame, (expr.then, expr.otherwise), evaluate_branch))


def evaluate_step(state: State, loop: Loop, expr: ast.Expr, frame: Frame) -> Task[Any]:
    """The carried arguments of the next call, on a path that makes one."""
    expr = yield _skip_bindings(state, loop, expr, frame)
    if isinstance(expr, ast.Call) and loop.recursion.ends[expr] == "call":
        args = yield evaluate_all(state, expr.args, frame)
        return tuple(args[i] for i in loop.carried)
    step = partial(evaluate_step, state, loop)
    return (yield _evaluate_branches(state, loop, expr, frame, "result", step))


def evaluate_result(state: State, loop: Loop, expr: ast.Expr, frame: Frame) -> Task[Any]:
    """The result, on a path that ends in one."""
    if loop.recursion.ends.get(expr) != "result":
        expr = yield _skip_bindings(state, loop, expr, frame)
    if loop.recursion.ends[expr] == "result":
        return (yield evaluate(state, expr, frame))
    result = partial(evaluate_result, state, loop)
    return (yield _evaluate_branches(state, loop, expr, frame, "call", result))


def _evaluate_branches(
    state: State, loop: Loop, expr: ast.Expr, frame: Frame, never: PathEnd,
    evaluate_branch: Callable[[ast.Expr, Frame], Task[Any]],
) -> Task[Any]:  # fmt: skip
    """What ``evaluate_branch`` makes of the branches whose paths do not all end in ``never``."""
    require(isinstance(expr, ast.If), "recursion: no path of the function returns")
    assert isinstance(expr, ast.If)
    branches = (expr.then, expr.otherwise)
    possible = [e for e in branches if loop.recursion.ends[e] != never]
    if len(possible) == 1:
        return (yield evaluate_branch(possible[0], frame))
    cond = yield evaluate(state, expr.cond, frame)
    return (yield choose_branch(state, cond, frame, branches, evaluate_branch))


def _skip_bindings(state: State, loop: Loop, expr: ast.Expr, frame: Frame) -> Task[Any]:
    """Bind the variables of ``let`` and ``match``; return the choice or call behind them."""
    while isinstance(expr, (ast.Let, ast.Match)) and loop.recursion.ends[expr] != "result":
        if isinstance(expr, ast.Let):
            expr = yield bind_lets(state, expr, frame)
        else:
            expr = yield select_clause(state, expr, frame)
    return expr
