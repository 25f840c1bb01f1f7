"""Linear recursion as two loops.

``f(p) = if c(p) then step(p, f(next(p))) else base(p)``: the first loop runs ``next`` until
``base`` is reached, and stacks the arguments of every call; the second goes through them backwards
with ``step``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Tensor, Value

from .. import ast
from ..ast_walk import Task
from .expressions import require_tensor
from .recursion import LinearRecursion, find_calls
from .state import State, emit_node, emit_scalar, evaluate, evaluate_all
from .types import set_declared_type
from .values import Closure, Frame, GraphBuilder, Symbolic, flatten, require_count, unflatten

RESULT = "the result of the recursion"


@dataclass(frozen=True, eq=False)
class LoopPair:
    """A call of a linearly recursive function."""

    recursion: LinearRecursion
    closure: Closure


def evaluate_as_two_loops(
    state: State, recursion: LinearRecursion, closure: Closure, args: list[Symbolic], frame: Frame
) -> Task[Any]:
    """The result of the call; None where an argument is no tensor of static shape."""
    if not all(isinstance(a, Value) and a.is_static for a in args):
        return None
    require_count(recursion.call.args, args, "arguments")
    pair = LoopPair(recursion, closure)
    tensors: list[Value] = args  # type: ignore[assignment]
    start = yield evaluate_condition(state, pair, open_frame(pair, frame.builder, tensors))
    count, last, stacked = yield emit_forward_loop(state, pair, frame, tensors, start)
    outer = open_frame(pair, frame.builder, last)
    result = yield evaluate_behind_lets(state, pair, recursion.base, outer)
    return (yield emit_backward_loop(state, pair, frame, count, stacked, result))


def open_frame(pair: LoopPair, builder: GraphBuilder, args: list[Value]) -> Frame:
    """A call of the function."""
    frame = Frame(builder, pair.closure.frame, pair.closure.name)
    frame.values.update(zip(pair.closure.function.params, args, strict=True))
    return frame


def evaluate_behind_lets(state: State, pair: LoopPair, expr: ast.Expr, frame: Frame) -> Task[Any]:
    """``expr``, with the variables bound that the function binds before its choice."""
    yield bind_lets(state, pair, frame)
    return (yield evaluate(state, expr, frame))


def bind_lets(state: State, pair: LoopPair, frame: Frame) -> Task[None]:
    """Bind the variables that the function binds before its choice."""
    for let in pair.recursion.lets:
        frame.values[let.var] = yield evaluate(state, let.value, frame)


def evaluate_condition(state: State, pair: LoopPair, frame: Frame) -> Task[Any]:
    """Whether the function calls itself, as a tensor."""
    value = yield evaluate_behind_lets(state, pair, pair.recursion.choice.cond, frame)
    cond = require_tensor(value)
    if pair.recursion.step_if:
        return cond
    return emit_scalar(state, frame, "logical_not", [cond], DType.BOOL)


def make_int64(builder: GraphBuilder, number: int) -> Value:
    """A constant scalar."""
    return builder.const(Tensor.of(np.array(number, np.int64)))


def emit_forward_loop(
    state: State, pair: LoopPair, frame: Frame, args: list[Value], start: Value
) -> Task[Any]:
    """How often the function calls itself, its last arguments, and those of all calls before."""
    builder = frame.builder.open_body("forwards")
    number = builder.input("calls", DType.INT64, ())
    params = pair.closure.function.params
    carried = [builder.input(p.name, v.dtype, v.shape) for p, v in zip(params, args, strict=True)]
    inner = open_frame(pair, builder, carried)
    yield bind_lets(state, pair, inner)
    yield bind_lets_of_step(state, pair, inner)
    following = yield evaluate_all(state, pair.recursion.call.args, inner)
    require(all(isinstance(v, Value) for v in following), "recursion: an argument is not a tensor")
    cond = yield evaluate_condition(state, pair, open_frame(pair, builder, following))
    more = emit_scalar(state, inner, "add", [number, make_int64(builder, 1)], DType.INT64)
    scans = [emit_node(state, inner, "copy", [v], {}, 1)[0] for v in carried]
    for scan, value in zip(scans, carried, strict=True):
        scan.dtype, scan.shape = value.dtype, value.shape
    body = builder.build([cond, more, *following, *scans])
    inputs = [start, make_int64(frame.builder, 0), *args]
    outputs = emit_node(state, frame, "while", inputs, {"body": body}, 1 + 2 * len(args))
    count, last, stacked = outputs[0], outputs[1 : 1 + len(args)], outputs[1 + len(args) :]
    count.dtype, count.shape = DType.INT64, ()
    for final, stack, value in zip(last, stacked, args, strict=True):
        final.dtype = stack.dtype = value.dtype
        final.shape = value.shape
    return count, last, stacked


def bind_lets_of_step(state: State, pair: LoopPair, frame: Frame) -> Task[None]:
    """Bind the variables of the step that do not depend on the function's call of itself."""
    expr: ast.Expr = pair.recursion.step
    binding = pair.closure.binding
    assert binding is not None
    while isinstance(expr, ast.Let):
        if not find_calls(ast.Tuple((expr.value,)), binding):
            frame.values[expr.var] = yield evaluate(state, expr.value, frame)
        expr = expr.body


def emit_backward_loop(
    state: State, pair: LoopPair, frame: Frame, count: Value, stacked: list[Value], result: Symbolic
) -> Task[Any]:
    """The result of the first call, from that of the last one."""
    values = flatten(result, RESULT)
    builder = frame.builder.open_body("backwards")
    left = builder.input("left", DType.INT64, ())
    carried = [builder.input("result", v.dtype, v.shape) for v in values]
    outer = Frame(builder, None, pair.closure.name)
    at = emit_scalar(state, outer, "subtract", [left, make_int64(builder, 1)], DType.INT64)
    args = []
    for param, stack in zip(pair.closure.function.params, stacked, strict=True):
        attrs = {"axis": 0, "mode": "fast"}
        (value,) = emit_node(state, outer, "take", [stack, at], attrs, 1)
        set_declared_type(value, param.annotation or param.type)
        args.append(value)
    inner = open_frame(pair, builder, args)
    inner.values[pair.recursion.call] = unflatten(result, iter(carried))
    following = yield evaluate_behind_lets(state, pair, pair.recursion.step, inner)
    more = emit_scalar(state, outer, "greater", [at, make_int64(builder, 0)], DType.BOOL)
    body = builder.build([more, at, *flatten(following, RESULT)])
    zero = make_int64(frame.builder, 0)
    start = emit_scalar(state, frame, "greater", [count, zero], DType.BOOL)
    inputs = [start, count, *values]
    outputs = emit_node(state, frame, "while", inputs, {"body": body}, 1 + len(values))
    for output, value in zip(outputs[1:], values, strict=True):
        output.dtype, output.shape = value.dtype, value.shape
    return unflatten(result, iter(outputs[1:]))
