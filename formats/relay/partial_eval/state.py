"""The state of one partial evaluation, and the functions that emit to its graph.

An evaluator is a task (``ast_walk.run``): a generator that yields other tasks to get their results,
so that expressions may nest deeper than Python recurses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from serde.errors import ConversionError, require
from serde.ir.graph import Call, DType, Node, Source, Value

from .. import ast
from ..ast_walk import Task
from .constants import Scalar, fold_scalar
from .diagnostics import Budget, Diagnostics
from .recursion import Recursion
from .values import (
    FAILURE,
    Closure,
    Data,
    DependsOnFailure,
    Frame,
    GraphBuilder,
    Primitive,
    Symbolic,
    flatten,
)


@dataclass(eq=False)
class State:
    """What one evaluation of a module has emitted, cached and refused, and the call it is in."""

    module: ast.Module
    evaluators: Mapping[type[ast.Expr], Callable[[State, Any, Frame], Task[Any]]]
    builder: GraphBuilder  # of the graph that ``main`` becomes
    budget: Budget
    function: str  # that is being evaluated, for diagnostics
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    calls: tuple[Call, ...] = ()  # that are being evaluated and that nodes tell among their sources
    active: Counter[ast.Function] = field(default_factory=Counter)  # calls of each under evaluation
    recursion_depth: int = 0  # calls of functions within themselves under evaluation
    producers: dict[Value, Node] = field(default_factory=dict)
    constants: dict[ast.Constant, Value] = field(default_factory=dict)
    scalars: dict[Value, Scalar] = field(default_factory=dict)  # the cache of ``fold_scalar``
    node_counts: Counter[str] = field(default_factory=Counter)  # by name
    recursions: dict[ast.Function, Recursion | None] = field(default_factory=dict)


# Evaluation


def look_up(state: State, expr: ast.Expr, frame: Frame) -> Symbolic | None:
    """The value of an expression that is evaluated already, or has no operands; else None."""
    value = frame.get(expr)
    if value is not None:
        return value
    if isinstance(expr, ast.Constant):
        return _add_constant(state, expr)
    if isinstance(expr, ast.GlobalVar):
        function = state.module.functions.get(expr.name)
        require(function is not None, f"calls @{expr.name}, which the module does not define")
        assert function is not None
        return Closure(function, None, expr.name, expr.name)
    if isinstance(expr, ast.Op):
        return Primitive(expr)
    if isinstance(expr, ast.Constructor):
        return Primitive(expr) if expr.inputs else Data(expr.name, expr.of, ())
    if isinstance(expr, ast.Function):
        return Closure(expr, frame, frame.name)
    if isinstance(expr, ast.Var):
        raise ConversionError(f"%{expr.name} is not bound")
    return None


def _add_constant(state: State, expr: ast.Constant) -> Value:
    if expr not in state.constants:
        state.constants[expr] = state.builder.const(expr.tensor)
    return state.constants[expr]


def evaluate(state: State, expr: ast.Expr, frame: Frame) -> Task[Any]:
    """The value of ``expr``; a refusal is recorded, and the value is then ``FAILURE``."""
    try:
        value = look_up(state, expr, frame)
        if value is not None:
            return value
        state.budget.charge(state.function)
        value = yield state.evaluators[type(expr)](state, expr, frame)
    except ConversionError as error:
        if state.recursion_depth:  # going on could fail twice at every depth
            raise
        value = state.diagnostics.record(error, state.function, expr)
    frame.values[expr] = value
    return value


def evaluate_all(state: State, exprs: Sequence[ast.Expr], frame: Frame) -> Task[Any]:
    """The values of ``exprs``.

    Raises:
        DependsOnFailure: where one of them was refused.
    """
    values = []
    for expr in exprs:
        ready = look_up(state, expr, frame)
        values.append((yield evaluate(state, expr, frame)) if ready is None else ready)
    if any(v is FAILURE for v in values):
        raise DependsOnFailure
    return values


# The graph


def flatten_value(state: State, value: Symbolic, what: str) -> list[Value]:
    """``flatten``, charged to the budget."""
    return flatten(value, what, lambda steps: state.budget.charge(state.function, steps))


def fold_condition(state: State, cond: Value) -> bool | None:
    """A condition that is constant; None for one that depends on an input."""
    scalar = fold_scalar(cond, state.producers, state.scalars)
    return None if scalar is None else bool(scalar)


def emit_node(
    state: State, frame: Frame, op: str, inputs: Sequence[Value], attrs: Mapping[str, Any],
    count: int, layer: str = "",
) -> list[Value]:  # fmt: skip
    """Emit a node with ``count`` outputs; it is named after ``layer``, or its operator."""
    stem = f"{frame.name}/{layer or op}" if frame.name else layer or op
    number = state.node_counts[stem]
    state.node_counts[stem] += 1
    name = f"{stem}_{number}" if number or not layer else stem
    builder = frame.builder
    with builder.at(Source("relay", op, name, calls=state.calls)):
        result = builder.emit(op, inputs, attrs, count)
    outputs = [result] if count == 1 else list(result)
    state.producers.update(dict.fromkeys(outputs, builder.nodes[-1]))
    return outputs


def emit_scalar(state: State, frame: Frame, op: str, inputs: list[Value], dtype: DType) -> Value:
    """The output, a scalar, of a new node."""
    (output,) = emit_node(state, frame, op, inputs, {}, 1)
    output.dtype, output.shape = dtype, ()
    return output
