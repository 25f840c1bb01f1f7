"""Raise a graph of any ONNX opset to the IR's, and lower the IR to any opset.

Both walk the graph once. A node is taken from its version to the target's one change at a time:
``below[v]`` holds the rules from opset ``v`` to ``v - 1``, ``above[v]`` those from ``v - 1`` to
``v``, and what a rule emits goes through the changes that remain. Only versions that changed an
operator's inputs, outputs, attributes or meaning have a rule; one that widened types needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from serde.errors import Problem, Unconvertible, UnsupportedOp, UsageError, require
from serde.ir.builder import Builder
from serde.ir.graph import IR_OPSET, AttrRef, Graph, Node, Value
from serde.legalize import scalarize_sequences as lists
from serde.legalize.emulate_types import Carried
from serde.legalize.stepping import NO_READERS, Stepping, next_step
from serde.passes.qlinear_ops import with_integer_kernels
from serde.rewrite import custom_ops, functions
from serde.rewrite.rules import Fallback, RuleTable
from serde.rewrite.subgraphs import Body
from serde.spec import schema
from serde.spec.source_checks import refuse_misfits
from serde.version_converter.element_types import BORN, CONSTANT_FORMS, as_is, spelled

LOWEST, LOWEST_WRITTEN = 1, 7
WITH_KERNELS, WITH_AXES = 10, 13  # the first with QLinearConv, and with scales by channel


def _lower_node(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    assert isinstance(builder, Stepping)
    if node.domain:
        meant = next((d for v in inputs if (d := builder.carried.of(v))), None)
        require(meant is None, f"{node.op} reads {meant and meant.value} elements")
        return builder.keep(node, inputs)
    body: Any = node.attrs.get("body")
    if isinstance(body, Body):
        return lists.unrolled(builder, inputs, body, len(node.outputs))
    ends = (*inputs, *(v for g in node.graphs() for v in g.outputs))
    held = builder.resolving and (
        node.op in lists.MADE or any(v in builder.held for v in ends if v is not None)
    )
    known = bool(inputs) and all(v is not None and v.tensor is not None for v in inputs)
    unchanged = builder.next_step(node.op) is None and not held and not known
    if unchanged and _as_is(node, inputs, builder.opset):
        return builder.keep(node, inputs)
    return builder.emit(node.op, inputs, node.attrs, len(node.outputs))


def _unrolled(
    node: Node, builder: Builder, inputs: tuple[Value | None, ...]
) -> frozenset[str]:  # fmt: skip
    """The body of a loop that carries what is followed as the tensors it holds."""
    assert isinstance(builder, Stepping)
    carries = any(v in builder.held for v in inputs if v is not None)
    return frozenset({"body"} if carries and (node.domain, node.op) == ("", "Loop") else ())


def _as_is(node: Node, inputs: tuple[Value | None, ...], opset: int) -> bool:
    """Whether the node is, letter for letter, one of ``opset``."""
    found = schema.find(node.op, opset)
    if found is None or not node.attrs.keys() <= found.attributes:
        return False
    return as_is(found, "inputs", inputs) and as_is(found, "outputs", node.outputs)


def _raise_node(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    assert isinstance(builder, Stepping)
    if node.domain or builder.readers.table(node, builder.level) is not None:
        return custom_ops.read(builder, node, inputs)
    if node.op == "Constant":
        return constant(builder, node)
    node = builder.readers.standardize(node)
    refuse_misfits(builder.level, node)
    return builder.emit(node.op, inputs, node.attrs, len(node.outputs))


def _spelling_out(known: functions.Known, fallback: Fallback) -> Fallback:
    """A fallback that spells calls of ``known`` functions out, and leaves the rest to another."""

    def apply(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        if (node.domain, node.op) in known:
            return functions.spell_out(builder, known, node, inputs)
        return fallback(builder, node, inputs)

    return apply


def constant(builder: Builder, node: Node) -> Value:
    """The Value a Constant node stands for, in any of its attribute forms."""
    require(len(node.attrs) == 1, f"a Constant with {len(node.attrs)} attributes instead of one")
    ((form, data),) = node.attrs.items()
    require(not isinstance(data, AttrRef), "a Constant whose value the call of a function gives")
    reason = schema.misfit(schema.operator("Constant"), node.attrs)
    require(reason is None and len(node.outputs) == 1, reason or "a Constant without output")
    return builder.const(data, CONSTANT_FORMS.get(form), node.outputs[0].name or "const")


def raise_to_ir(graph: Graph, readers: custom_ops.Readers = NO_READERS) -> Graph:
    """Rewrite a graph of any opset into the IR: operators of ``IR_OPSET`` in canonical form.

    ``readers`` have rules for operators of other domains; the rest of those are carried along.

    Raises:
        Unconvertible: for every node that no opset up to the IR's gives a meaning.
    """
    known = LOWEST <= graph.opset <= IR_OPSET
    require(known, f"the model is of opset {graph.opset}; those known are {LOWEST} to {IR_OPSET}")
    stage = f"opset {graph.opset} → ir"
    own = readers.of_model(graph)

    def rewrite(body: Graph, fallback: Fallback = _raise_node) -> Graph:
        builder = Stepping(body.name, body.opset, IR_OPSET, readers=own)
        done = RuleTable(stage, fallback=fallback).rewrite(body, builder, body is not graph)
        _keep_empty(done, body)
        return replace(done, opset=IR_OPSET)

    try:
        done = _with_functions(graph, IR_OPSET, rewrite, _raise_node)
    except Unconvertible as error:
        raise Unconvertible(stage, [*error.problems, *_untyped(graph, own)]) from error
    return replace(done, notes=(*done.notes, *own.notes(graph)))


def _untyped(graph: Graph, readers: custom_ops.Readers) -> Iterator[Problem]:
    """What the file leaves open about operators of other domains, which may be at fault."""
    for node in graph.nodes:
        names = tuple(v.name for v in node.outputs if v.name and None in (v.dtype, v.shape))
        is_read = readers.table(node, graph.opset) is not None
        if node.domain and names and not is_read and (node.domain, node.op) not in readers.defined:
            reason = "the file does not give the types of its outputs. Add them to value_info"
            yield Problem(node.qualified_op, {}, reason, names)


def _keep_empty(done: Graph, said: Graph) -> None:
    """Let outputs be without elements where the model says so and nothing tells otherwise."""
    for new, old in zip(done.outputs, said.outputs, strict=True):
        if new.shape is not None and old.shape is not None and len(new.shape) == len(old.shape):
            pairs = zip(new.shape, old.shape, strict=True)
            new.shape = tuple(0 if b == 0 and a is None else a for a, b in pairs)


def lower_to(
    graph: Graph, opset: int, keep_functions: bool = True,
    spelled_out: frozenset[str] = frozenset(), integer_kernels: bool = False,
) -> Graph:  # fmt: skip
    """Rewrite the IR into operators of ``opset``; functions are spelled out where not kept.

    ``spelled_out`` are operators to be written as older ones even where the opset has them.
    ``integer_kernels`` writes products of integers in units of 1 as ``QLinearConv`` and
    ``QLinearMatMul`` at every opset that has them.

    Raises:
        Unconvertible: for every node that cannot be said at that opset.
    """
    require_opset(opset, LOWEST_WRITTEN)
    stage = f"ir → opset {opset}"

    def rewrite(body: Graph, fallback: Fallback = _lower_node) -> Graph:
        is_function = body is not graph
        if opset >= WITH_KERNELS and (integer_kernels or opset < WITH_AXES):
            body = with_integer_kernels(body, integer_kernels, opset < WITH_AXES)
        builder = Stepping(body.name, IR_OPSET, opset, spelled_out=spelled_out)
        table = RuleTable(stage, fallback=fallback, placed=_unrolled)
        done = table.rewrite(body, builder, is_function)
        _require_outputs(stage, done, builder.carried)
        return done

    return _with_functions(graph, opset, rewrite, _lower_node, keep_functions)


def _require_outputs(stage: str, graph: Graph, found: Carried) -> None:
    """Refuse outputs whose elements the target has not."""
    late = [
        Problem("output", {}, f"no {spelled(d)} elements; opset {BORN[d]} is the lowest with them",
                (v.name,), stage)
        for v in graph.outputs if (d := found.of(v)) is not None
    ]  # fmt: skip
    if late:
        raise Unconvertible(stage, late)


def again(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """Emit a node anew, so that what is known now is folded and inferred."""
    if node.domain:
        return builder.keep(node, inputs)
    return builder.emit(node.op, inputs, node.attrs, len(node.outputs))


def without_functions(graph: Graph, traced: bool = False) -> Graph:
    """Spell every call of a function out, so that sizes can be followed through it.

    ``traced``: nodes tell which call they came from.
    """
    if not graph.functions:
        return graph
    fallback = _spelling_out(functions.Known(graph, traced), again)
    builder = Stepping(graph.name, IR_OPSET, IR_OPSET)
    return replace(RuleTable("functions", fallback=fallback).rewrite(graph, builder), functions=())


def _has_sequences(graph: Graph) -> bool:
    return any(
        (not node.domain and node.op in lists.MADE) or any(map(_has_sequences, node.graphs()))
        for node in graph.nodes
    )


class _Scalarizing(Stepping):
    scalarizes = True


def scalarize_sequences(graph: Graph) -> Graph:
    """Replace sequences and optionals by the tensors in them, for targets that have none.

    Those of dynamic length, or read at dynamic positions, stay, for the target to refuse.
    """
    if not _has_sequences(graph):
        return graph
    table = RuleTable("ir", fallback=_lower_node, placed=_unrolled)
    with suppress(Unconvertible):
        return table.rewrite(graph, _Scalarizing(graph.name, IR_OPSET, IR_OPSET))
    return graph


def _with_functions(
    graph: Graph, opset: int, rewrite: Callable[..., Graph], fallback: Fallback, keep: bool = True
) -> Graph:
    """Rewrite a module with its functions, or without where one of them stands in the way."""
    if not graph.functions:
        return rewrite(graph)
    bodies = functions.rewritten(graph, opset, rewrite) if keep else None
    if bodies is not None:
        with suppress(Unconvertible):  # for want of a call's types, it may be: spell the calls out
            return replace(rewrite(graph), functions=bodies)
    spelled = rewrite(graph, _spelling_out(functions.Known(graph), fallback))
    return replace(spelled, functions=())


def require_opset(opset: int, lowest: int) -> None:
    """Refuse an opset outside what can be read or written."""
    if not lowest <= opset <= IR_OPSET:
        raise UsageError(f"opset {opset} is not one of {lowest} to {IR_OPSET}")


__all__ = [
    "Stepping", "UnsupportedOp", "again", "lower_to", "next_step", "raise_to_ir",
    "without_functions",
]  # fmt: skip
