"""Evaluates calls: of operators as nodes, of functions inline or as loops."""

from __future__ import annotations

from typing import Any

from serde.errors import require

from .. import ast
from ..ast_walk import Task
from .functions import function_name, make_source_calls
from .loops import evaluate_as_loop
from .operators import TRANSPARENT, node_attributes, result_count
from .paired_loops import evaluate_as_two_loops
from .recursion import LinearRecursion, Recursion, TailRecursion, find_recursion
from .state import State, emit_node, evaluate, evaluate_all, flatten_value
from .types import set_declared_type
from .values import Closure, Data, Frame, Primitive, Symbolic, describe, require_count

DEEPEST_CALL = 2000  # calls of functions inside themselves
NODE_STEPS = 4  # that a node counts as: it is rewritten several times
DEEPEST_SOURCE = 16  # calls inside each other that nodes tell among their sources


def evaluate_call(state: State, expr: ast.Call, frame: Frame) -> Task[Any]:
    """The result of calling an operator, a constructor or a function."""
    target = yield evaluate(state, expr.op, frame)
    args = yield evaluate_all(state, expr.args, frame)
    if isinstance(target, Closure):
        return (yield call_function(state, target, args, frame))
    if isinstance(target, Data) and not args:  # a constructor without fields
        return target
    require(isinstance(target, Primitive), f"calls {describe(target)}")
    if isinstance(target.target, ast.Constructor):
        return Data(target.target.name, target.target.of, tuple(args))
    return emit_operator(state, target.target.name, args, expr, frame)


def emit_operator(
    state: State, op: str, args: list[Symbolic], expr: ast.Call, frame: Frame
) -> Symbolic:
    """The outputs of the node that calls an operator."""
    if op in TRANSPARENT and args:
        return args[0]
    inputs = [v for arg in args for v in flatten_value(state, arg, f"an operand of {op}")]
    attrs = node_attributes(expr.attrs)
    count = result_count(op, attrs, inputs, expr.type)
    state.budget.charge(state.function, NODE_STEPS + (count or 0))
    layer = expr.span.source if expr.span is not None and expr.span.line == 0 else ""
    outputs = emit_node(state, frame, op, inputs, attrs, 1 if count is None else count, layer)
    if count is None:
        set_declared_type(outputs[0], expr.type)
        return outputs[0]
    if isinstance(expr.type, ast.TupleType) and len(expr.type.fields) == count:
        for value, type_ in zip(outputs, expr.type.fields, strict=True):
            set_declared_type(value, type_)
    return tuple(outputs)


def call_function(state: State, closure: Closure, args: list[Symbolic], frame: Frame) -> Task[Any]:
    """The result of calling a function; ``state`` tells that it is active until then."""
    require_count(args, closure.function.params, "arguments")
    outer = state.function, state.calls
    state.function = closure.name or frame.name
    state.active[closure.function] += 1
    is_recursive = state.active[closure.function] > 1
    state.recursion_depth += is_recursive
    try:
        return (yield _expand_function(state, closure, args, frame))
    finally:
        state.recursion_depth -= is_recursive
        state.active[closure.function] -= 1
        state.function, state.calls = outer


def _expand_function(
    state: State, closure: Closure, args: list[Symbolic], frame: Frame
) -> Task[Any]:
    """The outputs of a loop where the function's recursion is one; otherwise its body, inline."""
    function, recursion = closure.function, look_up_recursion(state, closure)
    result = None
    if isinstance(recursion, TailRecursion):
        result = yield evaluate_as_loop(state, recursion, closure, args, frame)
    elif isinstance(recursion, LinearRecursion):
        result = yield evaluate_as_two_loops(state, recursion, closure, args, frame)
    if result is not None:
        return result
    is_deep = state.recursion_depth > DEEPEST_CALL
    require(
        not is_deep,
        f"@{closure.name} calls itself more than {DEEPEST_CALL} deep, or to a dynamic depth",
    )
    if len(state.calls) < DEEPEST_SOURCE and state.active[function] == 1:
        state.calls += make_source_calls(closure, args)
    inner = Frame(frame.builder, closure.frame, function_name(closure))
    inner.values.update(zip(function.params, args, strict=True))
    return (yield evaluate(state, function.body, inner))


def look_up_recursion(state: State, closure: Closure) -> Recursion | None:
    """How a function calls itself, where that is a loop."""
    function, binding = closure.function, closure.binding
    if binding is None:
        return None
    if function not in state.recursions:
        state.recursions[function] = find_recursion(function, binding)
    return state.recursions[function]
