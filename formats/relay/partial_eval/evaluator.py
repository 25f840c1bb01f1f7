"""Partial evaluation: from a module to a graph of operators, by evaluating ``main`` on symbols.

Functions, closures, tuples, data of algebraic types and references are resolved on the way: a call
is the callee's body, a match the clause that matches, a projection the field. What depends on an
input stays: operators become nodes, ``if`` a node with two subgraphs, and recursion a loop.

From top to bottom: this file; ``calls``; ``loops`` and ``paired_loops``; ``expressions``;
``state``, which every function is given; ``values``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from serde.errors import ConversionError, Unconvertible, require
from serde.ir.graph import Graph, Tensor, Value

from .. import ast
from ..ast_walk import Task, operands, post_order, run
from .calls import evaluate_call
from .diagnostics import STAGE, Budget, Refusal
from .expressions import (
    create_reference,
    evaluate_if,
    evaluate_let,
    evaluate_match,
    evaluate_projection,
    evaluate_tuple,
    read_reference,
    write_reference,
)
from .mutual_recursion import inline_mutual_recursion
from .signature import make_output_names, read_output_names, refuse_parameter
from .state import State, emit_node, evaluate, flatten_value
from .types import dtype_of, shape_of
from .values import Frame, GraphBuilder, Symbolic

EVALUATORS: Mapping[type[ast.Expr], Callable[[State, Any, Frame], Task[Any]]] = {
    ast.Call: evaluate_call,
    ast.If: evaluate_if,
    ast.Let: evaluate_let,
    ast.Match: evaluate_match,
    ast.RefCreate: create_reference,
    ast.RefRead: read_reference,
    ast.RefWrite: write_reference,
    ast.Tuple: evaluate_tuple,
    ast.TupleGetItem: evaluate_projection,
}


def partially_evaluate(
    module: ast.Module,
    params: Mapping[str, Tensor] | None = None,
    entry: str = "main",
    name: str = "main",
    refusal: Refusal = lambda node: None,
) -> Graph:
    """The graph ``entry`` computes; its parameters among ``params`` become constants.

    Raises:
        Unconvertible: naming the constructs that no graph can express, and what ``refusal`` says
            of the nodes.
    """
    module = inline_mutual_recursion(module)
    expressions = partial(post_order, *module.functions.values())
    budget = Budget(lambda: sum(1 + len(list(operands(e))) for e in expressions()))
    state = State(module, EVALUATORS, GraphBuilder(name), budget, entry)
    try:
        graph: Graph = run(evaluate_main(state, entry, params or {}))
    except ConversionError as error:
        state.diagnostics.record(error, entry)
    if state.diagnostics.recorded:
        problems = state.diagnostics.problems(state.producers.values(), refusal)
        raise Unconvertible(STAGE, problems)
    return graph


def evaluate_main(state: State, entry: str, params: Mapping[str, Tensor]) -> Task[Graph]:
    """The graph of the function ``entry``."""
    function = state.module.functions[entry]
    frame = Frame(state.builder)
    for param in function.params:
        try:
            frame.values[param] = add_parameter(state, param, params.get(param.name))
        except ConversionError as error:
            frame.values[param] = state.diagnostics.record(error, entry)
    result = yield evaluate(state, function.body, frame)
    outputs = flatten_value(state, result, f"the result of @{entry}")
    state.budget.charge(entry, len(outputs))
    require(outputs, f"@{entry} returns no tensor; a model has at least one output")
    names = read_output_names(function, outputs) or make_output_names(result)
    named = name_outputs(state, outputs, names)
    return state.builder.build(named, metadata={"relay.tvm": state.module.tvm})


def add_parameter(state: State, param: ast.Var, tensor: Tensor | None) -> Symbolic:
    """A constant where there is a tensor for the parameter, otherwise an input."""
    if tensor is None:
        return add_input(state, param.name, param.annotation or param.type)
    name = state.builder.names.claim(param.name)
    return Value(name, tensor.dtype, tensor.shape, tensor, name_is_original=True)


def add_input(state: State, name: str, type_: ast.Type | None) -> Symbolic:
    """An input of the graph, or a tuple of inputs."""
    if isinstance(type_, ast.TupleType):
        return tuple(add_input(state, f"{name}.{i}", t) for i, t in enumerate(type_.fields))
    if isinstance(type_, ast.TensorType):
        shape = shape_of(type_.shape, name)
        return state.builder.input(name, dtype_of(type_.dtype), shape)
    refuse_parameter(name, type_)
    return state.builder.input(name)


def name_outputs(state: State, values: Sequence[Value], names: Sequence[str]) -> list[Value]:
    """The outputs under their names: each is the output of a node, and no two are one value.

    An output of the name that an input or an earlier output has is that value itself.
    """
    named: dict[Value, str] = {v: v.name for v in state.builder.inputs}
    outputs = []
    for value, name in zip(values, names, strict=True):
        if named.get(value) != name:
            if value in named or value not in state.producers:
                (value,) = emit_node(state, Frame(state.builder), "copy", [value], {}, 1)
            state.builder.names.relabel(value, name)
            named[value] = name
        outputs.append(value)
    return outputs
