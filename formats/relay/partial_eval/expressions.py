"""Evaluates tuples, bindings, choices and references; ``calls.py`` evaluates calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from serde.errors import ConversionError, require
from serde.ir.graph import Value

from .. import ast
from ..ast_walk import Task
from .state import State, emit_node, evaluate, evaluate_all, flatten_value, fold_condition
from .types import merge_shapes
from .values import (
    Cell,
    Closure,
    Frame,
    GraphBuilder,
    Symbolic,
    describe,
    has_same_structure,
    match_pattern,
    unflatten,
)

DEEPEST_IF = 28  # protobuf reads messages 100 deep; a subgraph takes three levels


# Tuples


def evaluate_tuple(state: State, expr: ast.Tuple, frame: Frame) -> Task[Any]:
    """A tuple of the fields' values."""
    return tuple((yield evaluate_all(state, expr.fields, frame)))


def evaluate_projection(state: State, expr: ast.TupleGetItem, frame: Frame) -> Task[Any]:
    """A field of a tuple."""
    fields = yield evaluate(state, expr.tuple, frame)
    require(
        isinstance(fields, tuple), f"takes field {expr.index} of {describe(fields)}, not of a tuple"
    )
    require(expr.index < len(fields), f"takes field {expr.index} of a tuple of {len(fields)}")
    return fields[expr.index]


# Bindings


def bind_lets(state: State, expr: ast.Expr, frame: Frame) -> Task[Any]:
    """Bind the variables of a chain of ``let``; return the expression behind it."""
    while isinstance(expr, ast.Let):
        if isinstance(expr.value, ast.Function):
            value: Symbolic = Closure(expr.value, frame, expr.var.name, expr.var)
        else:
            value = yield evaluate(state, expr.value, frame)
        frame.values[expr.var] = value
        expr = expr.body
    return expr


def evaluate_let(state: State, expr: ast.Let, frame: Frame) -> Task[Any]:
    """The value behind a chain of ``let``."""
    body = yield bind_lets(state, expr, frame)
    return (yield evaluate(state, body, frame))


def select_clause(state: State, expr: ast.Match, frame: Frame) -> Task[Any]:
    """Bind the variables of the first pattern that matches; return the body of its clause."""
    data = yield evaluate(state, expr.data, frame)
    for clause in expr.clauses:
        if match_pattern(clause.pattern, data, frame):
            return clause.body
    raise ConversionError("match: no clause matches the value")


def evaluate_match(state: State, expr: ast.Match, frame: Frame) -> Task[Any]:
    """The value of the clause that matches."""
    body = yield select_clause(state, expr, frame)
    return (yield evaluate(state, body, frame))


# Choices


def evaluate_if(state: State, expr: ast.If, frame: Frame) -> Task[Any]:
    """The value of a branch, or the outputs of a node that chooses one."""
    cond = yield evaluate(state, expr.cond, frame)
    branches = (expr.then, expr.otherwise)
    return (yield choose_branch(state, cond, frame, branches, partial(evaluate, state)))


def require_tensor(cond: Symbolic) -> Value:
    """``cond``, refused unless it is a tensor."""
    require(isinstance(cond, Value), f"if: the condition is {describe(cond)}, not a tensor")
    return cond  # type: ignore[return-value]


def choose_branch(
    state: State, cond: Symbolic, frame: Frame, branches: tuple[ast.Expr, ast.Expr],
    evaluate_branch: Callable[[ast.Expr, Frame], Task[Any]],
) -> Task[Any]:  # fmt: skip
    """What ``evaluate_branch`` makes of one of two branches; of a dynamic ``cond``, in a node."""
    cond = require_tensor(cond)
    is_true = fold_condition(state, cond)
    if is_true is not None:
        return (yield evaluate_branch(branches[0] if is_true else branches[1], frame))
    cause = f": @{state.function} calls itself in a way that no loop can express"
    why = cause if state.recursion_depth else ""
    require(frame.builder.depth < DEEPEST_IF, f"if: nests more than {DEEPEST_IF} deep{why}")
    results = []
    for name, branch in zip(("then", "else"), branches, strict=True):
        builder: GraphBuilder = frame.builder.child(name)  # type: ignore[assignment]
        result = yield evaluate_branch(branch, Frame(builder, frame, frame.name))
        outputs = flatten_value(state, result, "the result of a branch of an if")
        results.append((builder, result, outputs))
    (then, a, then_outputs), (otherwise, b, else_outputs) = results
    both = f"{describe(a)} and {describe(b)} of different structure"
    require(has_same_structure(a, b), f"if: its branches return {both}")
    graphs = {"then": then.build(then_outputs), "otherwise": otherwise.build(else_outputs)}
    outputs = emit_node(state, frame, "if", [cond], graphs, len(then_outputs))
    for value, x, y in zip(outputs, then_outputs, else_outputs, strict=True):
        value.dtype, value.shape = x.dtype or y.dtype, merge_shapes(x.shape, y.shape)
    return unflatten(a, iter(outputs))


# References


def create_reference(state: State, expr: ast.RefCreate, frame: Frame) -> Task[Any]:
    """A new cell."""
    return Cell((yield evaluate(state, expr.value, frame)), frame.builder)


def read_reference(state: State, expr: ast.RefRead, frame: Frame) -> Task[Any]:
    """The content of a cell."""
    cell = yield evaluate(state, expr.ref, frame)
    require(isinstance(cell, Cell), f"ref_read: the operand is {describe(cell)}, not a reference")
    return cell.content


def write_reference(state: State, expr: ast.RefWrite, frame: Frame) -> Task[Any]:
    """Set the content of a cell of the same graph."""
    cell = yield evaluate(state, expr.ref, frame)
    require(isinstance(cell, Cell), f"ref_write: the operand is {describe(cell)}, not a reference")
    is_here = cell.builder is frame.builder
    require(is_here, "ref_write: a reference created outside an if or a loop is written inside")
    cell.content = yield evaluate(state, expr.value, frame)
    return ()
