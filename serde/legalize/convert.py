"""Raise a graph of any ONNX opset to the IR's, and lower the IR to any opset.

Both walk the graph once. A node is taken from its version to the target's one change at a time:
``downgrades[v]`` holds the rules from opset ``v`` to ``v - 1``, ``upgrades[v]`` those from
``v - 1`` to ``v``, and what a rule emits goes through the changes that remain. Only versions that
changed an operator's inputs, outputs, attributes or meaning have a rule; one that widened types
needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from serde.errors import Problem, Unconvertible, UsageError, require
from serde.ir.builder import Builder
from serde.ir.graph import IR_OPSET, Graph, Node, Value
from serde.legalize import decisions
from serde.legalize import scalarize_sequences as lists
from serde.legalize.legalizer import NO_READERS, Legalizer
from serde.legalize.target import IR, LOWEST_WRITTEN, Target, opset_target
from serde.legalize.walk import (
    Legalized,
    group_problems,
    illegal_nodes,
    inlined_bodies,
    legalize,
    legalize_node,
)
from serde.passes import tidy
from serde.passes.dropout import drop_dropout
from serde.passes.qlinear_ops import use_qlinear_ops
from serde.rewrite import custom_ops, functions
from serde.rewrite.driver import again
from serde.rewrite.rules import Fallback, RuleTable
from serde.spec.source_checks import refuse_illegal_node

LOWEST = 1
WITH_KERNELS, WITH_AXES = 10, 13  # the first with QLinearConv, and with scales by channel


def _raise_node(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    assert isinstance(builder, Legalizer)
    if node.domain or builder.readers.table(node, builder.current_opset) is not None:
        return custom_ops.read(builder, node, inputs)
    if node.op == "Constant":
        return functions.constant(builder, node)
    return decisions.take_or_emit(builder, builder.readers.standardize(node), inputs, _emit_legal)


def _emit_legal(builder: Any, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    refuse_illegal_node(builder.current_opset, node)
    return builder.emit(node.op, inputs, node.attrs, len(node.outputs))


def _inline_calls(known: functions.FunctionTable, fallback: Fallback) -> Fallback:
    """A fallback that inlines calls of ``known`` functions, and leaves the rest to another."""

    def apply(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        if (node.domain, node.op) in known:
            return functions.inline_call(builder, known, node, inputs)
        return fallback(builder, node, inputs)

    return apply


def raise_to_ir(
    graph: Graph, readers: custom_ops.Readers = NO_READERS, training: bool = False
) -> Graph:
    """Rewrite a graph of any opset into the IR: operators of ``IR_OPSET`` in canonical form.

    ``readers`` have rules for operators of other domains; the rest of those are carried along.
    ``training`` keeps what only training needs.

    Raises:
        Unconvertible: for every node that no opset up to the IR's gives a meaning.
    """
    known = LOWEST <= graph.opset <= IR_OPSET
    require(known, f"the model is of opset {graph.opset}; those known are {LOWEST} to {IR_OPSET}")
    stage = f"opset {graph.opset} → ir"
    readers_of_model = readers.of_model(graph)

    def rewrite(body: Graph, fallback: Fallback = _raise_node) -> Graph:
        builder = Legalizer(body.name, IR, opset=body.opset, readers=readers_of_model)
        builder.for_training = builder.keeps_weights = training
        done = RuleTable(stage, fallback=fallback).rewrite(body, builder, body is not graph)
        _keep_empty(done, body)
        return replace(done, opset=IR_OPSET)

    try:
        done = _with_functions(graph, IR_OPSET, rewrite, _raise_node)
    except Unconvertible as error:
        raise Unconvertible(
            stage, [*error.problems, *_describe_untyped(graph, readers_of_model)]
        ) from error
    done = done if training else drop_dropout(done)
    return replace(done, notes=(*done.notes, *readers_of_model.notes(graph)))


def _describe_untyped(graph: Graph, readers: custom_ops.Readers) -> Iterator[Problem]:
    """What the file leaves open about operators of other domains, which may be at fault."""
    for node in graph.nodes:
        names = tuple(v.name for v in node.outputs if v.name and None in (v.dtype, v.shape))
        is_read = readers.table(node, graph.opset) is not None
        if node.domain and names and not is_read and (node.domain, node.op) not in readers.defined:
            reason = "the file does not give the types of its outputs. Add them to value_info"
            yield Problem(node.qualified_op, {}, reason, names)


def _keep_empty(done: Graph, source: Graph) -> None:
    """Let outputs be without elements where the model says so and nothing tells otherwise."""
    for new, old in zip(done.outputs, source.outputs, strict=True):
        if new.shape is not None and old.shape is not None and len(new.shape) == len(old.shape):
            pairs = zip(new.shape, old.shape, strict=True)
            new.shape = tuple(0 if b == 0 and a is None else a for a, b in pairs)


def lower_to(
    graph: Graph, opset: int, keep_functions: bool = True,
    decomposed: frozenset[str] = frozenset(), integer_kernels: bool = False,
) -> Graph:  # fmt: skip
    """Rewrite the IR into operators of ``opset``; functions are inlined where not kept.

    ``decomposed`` are operators to be written as older ones even where the opset has them.
    ``integer_kernels`` writes products of integers in units of 1 as ``QLinearConv`` and
    ``QLinearMatMul`` at every opset that has them.

    Raises:
        Unconvertible: for every node that cannot be said at that opset.
    """
    require_opset(opset, LOWEST_WRITTEN)
    target = opset_target(opset, decomposed)
    stage = f"ir → {target.name}"

    def rewrite(body: Graph, fallback: Fallback = legalize_node) -> Graph:
        is_function = body is not graph
        if opset >= WITH_KERNELS and (integer_kernels or opset < WITH_AXES):
            body = use_qlinear_ops(body, integer_kernels, opset < WITH_AXES)
        builder = Legalizer(body.name, target)
        if not is_function and decisions.is_legal_graph(builder, body):
            return Graph(
                body.name, body.inputs, body.outputs, body.nodes, opset=opset,
                metadata=body.metadata, imports=body.imports, notes=body.notes,
            )  # fmt: skip
        table = RuleTable(stage, fallback=fallback, body_attributes=inlined_bodies)
        done = table.rewrite(body, builder, is_function)
        legal = Legalized(done, {}, builder.emulated_types.logical_types)
        if emulated := legal.emulated_outputs(target, stage):
            raise Unconvertible(stage, emulated)
        return done

    return _with_functions(graph, opset, rewrite, legalize_node, keep_functions)


def lower_to_target(graph: Graph, target: Target) -> Graph:
    """Legalize the IR for a target whose graphs are of ONNX's operators at its opset.

    Raises:
        Unconvertible: for all inputs, outputs and nodes that cannot be made legal, at once.
    """
    legal = legalize(scalarize_sequences(without_functions(graph)), target, tidy)
    return require_legal(legal, target.for_graph(legal.graph))


def require_legal(legal: Legalized, target: Target) -> Graph:
    """The graph, if a target can take all of it."""
    problems = [*legal.emulated_outputs(target), *group_problems(illegal_nodes(legal, target))]
    if problems:
        raise Unconvertible(f"ir → {target.name}", problems)
    return legal.graph


def without_functions(graph: Graph, traced: bool = False) -> Graph:
    """Spell every call of a function out, so that sizes can be followed through it.

    ``traced``: nodes tell which call they came from.
    """
    if not graph.functions:
        return graph
    fallback = _inline_calls(functions.FunctionTable(graph, traced), again)
    builder = Legalizer(graph.name, IR)
    return replace(RuleTable("functions", fallback=fallback).rewrite(graph, builder), functions=())


def _has_sequences(graph: Graph) -> bool:
    constructors = lists.CONSTRUCTORS
    return any(
        (not node.domain and node.op in constructors) or any(map(_has_sequences, node.graphs()))
        for node in graph.nodes
    )


TENSORS_ONLY = Target("ir without sequences", sequences=False)


def scalarize_sequences(graph: Graph) -> Graph:
    """Replace sequences and optionals by the tensors in them, for targets that have none.

    Those of dynamic length, or read at dynamic positions, stay, for the target to refuse.
    """
    if not _has_sequences(graph):
        return graph
    table = RuleTable("ir", fallback=legalize_node, body_attributes=inlined_bodies)
    with suppress(Unconvertible):
        return table.rewrite(graph, Legalizer(graph.name, TENSORS_ONLY))
    return graph


def _with_functions(
    graph: Graph, opset: int, rewrite: Callable[..., Graph], fallback: Fallback, keep: bool = True
) -> Graph:
    """Rewrite a module with its functions, or without where one of them stands in the way."""
    if not graph.functions:
        return rewrite(graph)
    bodies = functions.rewrite_functions(graph, opset, rewrite) if keep else None
    if bodies is not None:
        with suppress(Unconvertible):  # for want of a call's types, it may be: inline the calls
            return replace(rewrite(graph), functions=bodies)
    inlined = rewrite(graph, _inline_calls(functions.FunctionTable(graph), fallback))
    return replace(inlined, functions=())


def require_opset(opset: int, lowest: int) -> None:
    """Refuse an opset outside what can be read or written."""
    if not lowest <= opset <= IR_OPSET:
        raise UsageError(f"opset {opset} is not one of {lowest} to {IR_OPSET}")
