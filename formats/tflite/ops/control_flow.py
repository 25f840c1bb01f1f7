"""Branches and loops, as subgraphs that an IF or a WHILE runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from serde.decompositions import loops
from serde.errors import ConversionError, require
from serde.ir.graph import DType, Graph, Shape, Value, show_shape
from serde.ir.replace_uses import replace_values
from serde.rewrite.subgraphs import Body, list_outer_values
from serde.spec.expressions import number

from ..target import TfliteBuilder, legalizations, writes
from .elementwise import cast

COPY = "RESHAPE"  # what gives a value another name
SIZES = "Give static sizes (--static, --input), or unroll it where the model is made"


@writes("If")
def write_if(t: TfliteBuilder, condition: Value, *, then_branch: Graph, else_branch: Graph):
    for a, b in zip(then_branch.outputs, else_branch.outputs, strict=True):
        is_one = a.shape == b.shape and None not in a.ranked_shape
        require(is_one, f"branches that give tensors of the shapes {show_shape(a.shape)} and "
                f"{show_shape(b.shape)}. {loops.CHOOSE.capitalize()}")  # fmt: skip
    branches = {"then_branch": skip_copies(then_branch), "else_branch": skip_copies(else_branch)}
    constants = [v for body in branches.values() for v in body.outputs if v.tensor is not None]
    outer = [*list_outer_values(*branches.values()), *dict.fromkeys(constants)]
    bodies = {name: close(t, body, outer) for name, body in branches.items()}
    return emit_typed(t, "IF", [condition, *outer], bodies, then_branch.outputs)


def skip_copies(body: Graph) -> Graph:
    """The body with outputs that are inputs, constants and values of around as they are."""
    makers = {v: n for n in body.nodes for v in n.outputs}
    outputs = []
    for output in body.outputs:
        maker = makers.get(output)
        source = maker.inputs[0] if maker is not None and maker.op == COPY else None
        is_copy = source is not None and source not in makers and source.shape == output.shape
        outputs.append(source if is_copy else output)
    return replace(body, outputs=tuple(outputs))


def close(t: TfliteBuilder, body: Graph, outer: Sequence[Value]) -> Graph:
    """The body with what it reads of the graph around as inputs behind its own."""
    inside = {v: make_input(t, v.name, v.type, v.ranked_shape) for v in outer}
    return replace(replace_values(body, inside), inputs=(*body.inputs, *inside.values()))


def make_input(t: TfliteBuilder, name: str, dtype: DType, shape: Shape) -> Value:
    """An input of a subgraph."""
    return Value(t.names.fresh(name), dtype, shape)


def emit_typed(t: TfliteBuilder, op: str, inputs, bodies, like: Sequence[Value]):
    """An operator whose results are of the types of others."""
    results = t.emit(op, inputs, bodies, len(like))
    for value, other in zip(results if len(like) > 1 else (results,), like, strict=True):
        value.dtype, value.shape = other.dtype, other.shape
    return results


@legalizations("Loop")
def legalize_loop(g, trips, go, *states, body: Body, outputs: int = 1):
    """A few turns as these, where their number is known; others as a loop of fixed shapes."""
    turns = g.child(body.graph.name)
    try:
        results = loops.unroll_loop(turns, trips, go, *states, body=body, outputs=outputs)
    except ConversionError:
        return keep_loop(g, trips, go, states, body, outputs)
    g.take_over(turns)
    return results


def keep_loop(g, trips, go, states, body: Body, outputs: int):
    """The loop, with a body that takes states as they enter it."""
    inner, (turn, on, *state_inputs) = loops.loop_body(g, states)
    results = body(inner, turn, on, *state_inputs)
    for before, after in zip(states, results[1:], strict=False):
        is_same = before.dtype is after.dtype and before.shape == after.shape
        require(is_same and not before.container and None not in before.ranked_shape,
                f"a loop that carries {before.name!r} of the shape {show_shape(before.shape)}, and "
                f"then {show_shape(after.shape)}. {SIZES}")  # fmt: skip
    graph = inner.build(results)
    is_counted = loops.always_continues(graph) and (go is None or number(go))
    require(outputs == len(states) or (is_counted and number(trips)), "stacked results of as many "
            f"turns as data tells. {SIZES}")  # fmt: skip
    loop = g.as_is("Loop", (trips, go, *states), {"body": graph}, outputs)
    values = loop if outputs > 1 else (loop,)
    if is_counted:
        for value, row in zip(values[len(states) :], results[1 + len(states) :], strict=True):
            value.shape = (number(trips), *row.ranked_shape)
    return loop


legalizations("Scan")(loops.unroll_scan)


class Carried(NamedTuple):
    """What a WHILE carries: its place in the body, what it is at first, and after a turn."""

    inside: Value
    first: Value
    after: Value


@writes("Loop")
def write_loop(
    t: TfliteBuilder, trips: Value | None, going: Value | None, *states: Value, body: Graph
):
    """A WHILE that carries the number of the turn, whether to go on, states and stacked results."""
    body = skip_copies(body)
    turn, on, *inside = body.inputs
    again, *results = body.outputs
    always = t.const(np.asarray(True))
    first = always if going is None else t.reshape(going, ())
    is_endless = loops.always_continues(body, COPY)
    is_counted = is_endless and bool(number(first))
    if is_counted:
        body = replace_values(body, {on: always})
    step = t.child(body.name)
    step.nodes.extend(body.nodes)
    following = step.make("ADD", [turn, t.const(np.asarray(1, np.int64))], DType.INT64, ())
    carried = [Carried(turn, t.const(np.asarray(0, np.int64)), following)]
    if not is_counted:
        carried.append(Carried(on, first, on if is_endless else step.reshape(again, ())))
    before = len(carried)
    carried += map(Carried, inside, states, results)
    for row in results[len(states) :]:
        carried.append(stack(t, step, turn, row, int(number(trips) or 0)))
    asking = t.child("condition")
    going_on = [on] * (not is_counted)
    if trips is not None:
        most = t.reshape(trips, ())
        going_on.append(asking.make("LESS", [turn, most], DType.BOOL, ()))
    require(going_on, "a loop that nothing ends. Give it a number of turns, or a condition")
    if len(going_on) > 1:
        going_on = [asking.make("LOGICAL_AND", going_on, DType.BOOL, ())]
    condition = asking.build(going_on)
    return emit_while(t, condition, step, carried)[before:]


def stack(t: TfliteBuilder, step: TfliteBuilder, turn: Value, row: Value, turns: int) -> Carried:
    """The results of all turns, of which each turn writes its own."""
    require(turns > 0 and row.is_static, f"stacked results of {turns} turns. {SIZES}")
    shape = (turns, *row.static_shape)
    rows = make_input(t, "rows", row.type, shape)
    axis = t.const(np.eye(1, len(shape), dtype=np.int32)[0])
    place = step.make("MUL", [cast(step, turn, DType.INT32), axis], DType.INT32, (len(shape),))
    operands = [rows, step.reshape(row, (1, *row.static_shape)), place]
    after = step.make("DYNAMIC_UPDATE_SLICE", operands, row.dtype, shape)
    return Carried(rows, t.const(np.zeros(shape, row.type.numpy)), after)


def emit_while(
    t: TfliteBuilder, condition: Graph, step: TfliteBuilder, carried: Sequence[Carried]
) -> tuple[Value, ...]:
    """The results of a WHILE, whose subgraphs have the same inputs."""
    inputs, first, after = map(tuple, zip(*carried, strict=True))
    body = replace(step.build(after), inputs=inputs)
    outer = [v for v in list_outer_values(body, condition) if v not in inputs]
    body = close(t, body, outer)
    body = replace(body, outputs=(*after, *body.inputs[len(inputs) :]))
    bodies = {"cond": close(t, condition, [*inputs, *outer]), "body": body}
    results = emit_typed(t, "WHILE", [*first, *outer], bodies, body.inputs)
    return results if isinstance(results, tuple) else (results,)
