"""Control flow: subgraphs that are run for each element, while a condition holds, or by choice.

The inputs of a subgraph are listed in the order of its own ``list_inputs``; attributes tell which
of them, or of the node's operands, is which (control_flow.cc).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.builder import ensure_distinct_outputs
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Graph, Node, Value
from serde.ir.replace_uses import replace_values
from serde.passes import drop_dead
from serde.rewrite.rules import Hint
from serde.rewrite.subgraphs import Body

from ..rules import reads
from ..target import scalar_value, storage_type_name, writes
from .dynamic_shapes import FINDS, Sizes, emit_arange, emit_iterations

COUNTS = ("num_args", "num_outputs")
MOST = 2**31 - 1  # turns of a loop that has no bound


@reads("_foreach", ignore=COUNTS)
def read_foreach(
    g, *operands, subgraph0: Body, num_out_data: int, in_state_locs: Ints, in_data_locs: Ints,
    remain_locs: Ints,
):  # fmt: skip
    """The operands are what is gone through along the first axis, then states, then the rest."""
    data, states = (
        operands[: len(in_data_locs)],
        operands[len(in_data_locs) :][: len(in_state_locs)],
    )
    rest = operands[len(data) + len(states) :]
    places = (*in_state_locs, *in_data_locs, *remain_locs)
    require(sorted(places) == [*range(len(operands))], f"operands at {places} of {len(operands)}")
    require_outputs(subgraph0, num_out_data, len(states))

    def step(g, *now):
        inputs = dict(zip(places, (*now, *rest), strict=True))
        outputs = call_body(g, subgraph0, [inputs[i] for i in range(len(inputs))])
        return *outputs[num_out_data:], *outputs[:num_out_data]

    results = g.scan(step, states, data)
    return (*results[len(states) :], *results[: len(states)])


def pick_operands(operands: Sequence[Value], places: Ints) -> list[Value]:
    fits = all(0 <= i < len(operands) for i in places)
    require(fits, f"operands at {places} of {len(operands)}")
    return [operands[i] for i in places]


def call_body(g: Any, body: Body, operands: Sequence[Value]) -> tuple[Value, ...]:
    """The outputs of a subgraph for these operands."""
    count = len(body.graph.inputs)
    require(count == len(operands), f"a subgraph of {count} inputs for {len(operands)} operands")
    return body(g, *operands)


def require_outputs(body: Body, data: int, states: int) -> None:
    """Refuse a loop whose body gives other numbers of results and states than the loop has."""
    count = len(body.graph.outputs)
    fits = data >= 0 and count == data + states
    require(fits, f"a subgraph of {count} outputs for {data} results and {states} states")


def make_condition(g: Any, body: Body, operands: Sequence[Value]) -> Value:
    """The one number of a condition as a boolean."""
    require(len(body.graph.outputs) == 1, "a condition of several outputs")
    (value,) = call_body(g, body, operands)
    return g.Reshape(g.is_true(value), g.shape_from([]))  # type: ignore[no-any-return]


@reads("_while_loop", ignore=COUNTS)
def read_while_loop(
    g, *operands, subgraph0: Body, subgraph1: Body, num_out_data: int, max_iterations: int,
    cond_input_locs: Ints, func_input_locs: Ints, func_var_locs: Ints,
):  # fmt: skip
    """What each step gives is stacked, and zeros make it ``max_iterations`` long."""
    require(
        all(0 <= i < len(func_input_locs) for i in func_var_locs), "variables that are no inputs"
    )
    require_outputs(subgraph1, num_out_data, len(func_var_locs))
    places = [func_input_locs[i] for i in func_var_locs]  # of the variables among the operands
    first = pick_operands(operands, tuple(places))

    def step(g, _, __, *variables):
        inside = list(operands)
        for at, v in zip(places, variables, strict=True):
            inside[at] = v
        outputs = call_body(g, subgraph1, pick_operands(inside, func_input_locs))
        for at, v in zip(places, outputs[num_out_data:], strict=True):
            inside[at] = v
        go = make_condition(g, subgraph0, pick_operands(inside, cond_input_locs))
        return go, *outputs[num_out_data:], *outputs[:num_out_data]

    go = make_condition(g, subgraph0, pick_operands(operands, cond_input_locs))
    results = g.loop(step, max_iterations, go, *first)
    stacked = [pad_to_length(g, y, max_iterations) for y in results[len(first) :]]
    return (*stacked, *results[: len(first)])


def pad_to_length(g: Any, y: Value, length: int) -> Value:
    """``y`` with zeros behind it, ``length`` along the first axis."""
    more = g.Sub([length], g.Shape(y, start=0, end=1))
    zeros = [0] * y.rank
    pads = g.Concat(zeros, more, zeros[1:], axis=0) if zeros[1:] else g.Concat(zeros, more, axis=0)
    return g.Pad(y, pads)  # type: ignore[no-any-return]


@reads("_cond", ignore=COUNTS)
def read_cond(
    g, *operands, subgraph0: Body, subgraph1: Body, subgraph2: Body, cond_input_locs: Ints,
    then_input_locs: Ints, else_input_locs: Ints,
):  # fmt: skip
    go = make_condition(g, subgraph0, pick_operands(operands, cond_input_locs))
    then = build_branch(g, subgraph1, pick_operands(operands, then_input_locs))
    other = build_branch(g, subgraph2, pick_operands(operands, else_input_locs))
    require(len(then.outputs) == len(other.outputs), "branches of different numbers of outputs")
    return g.If(go, then_branch=then, else_branch=other, outputs=len(then.outputs))


def build_branch(g: Any, body: Body, operands: Sequence[Value]) -> Graph:
    """A branch, which reads the values around it directly."""
    inner = g.child("branch")
    return inner.build(ensure_distinct_outputs(inner, call_body(inner, body, operands)))  # type: ignore[no-any-return]


@reads("_CachedOp")
def read_cached_op(g, *operands, subgraph0: Body):
    """A subgraph that was set apart is put back in its place."""
    return call_body(g, subgraph0, operands)


def close_over(graph: Graph) -> tuple[Graph, list[Value]]:
    """The graph with all it reads as its inputs, and what those are outside.

    They are in the order MXNet lists them in: that in which the outputs need them.
    """
    graph = drop_dead(graph)
    read = list(dict.fromkeys(_read(graph)))
    inside = {v: Value(v.name or f"inside{i}", v.dtype, v.shape) for i, v in enumerate(read)}
    closure = replace_values(graph, inside)
    return replace(closure, inputs=tuple(inside.values())), read


def _read(graph: Graph) -> Iterable[Value]:
    """Values that no node of the graph computes, depth first from the outputs."""
    makers = {v: n for n in graph.nodes for v in n.outputs}
    stack, seen = list(reversed(graph.outputs)), set()
    while stack:
        value = stack.pop()
        node = makers.get(value)
        if node is None:
            yield value
        elif node not in seen:
            seen.add(node)
            stack.extend(v for v in reversed(node.inputs) if v is not None)


def positions_of(values: Iterable[Value], among: Sequence[Value]) -> tuple[int, ...]:
    """Where values stand among others."""
    at = {v: i for i, v in enumerate(among)}
    require(all(v in at for v in values), "a loop with a state its body does not read")
    return tuple(at[v] for v in values)


@writes("If")
def write_if(s, condition, *, then_branch: Graph, else_branch: Graph):
    pairs = zip(then_branch.outputs, else_branch.outputs, strict=True)
    require(all(may_have_one_shape(a, b) for a, b in pairs), "branches that give other shapes")
    if s.is_inner:
        return emit_select(s, condition, then_branch, else_branch)
    inside = Value("condition", condition.dtype, condition.shape)
    copied = Value("holds", condition.dtype, condition.shape)
    copy = inner_node("_copy", (inside,), copied)
    asking = Graph("condition", (inside,), (copied,), (copy,), "mxnet")
    bodies, reads = zip(*map(close_over, (then_branch, else_branch)), strict=True)
    read = list(dict.fromkeys([condition, *reads[0], *reads[1]]))
    return s["_cond"](
        *read, subgraph0=asking, subgraph1=bodies[0], subgraph2=bodies[1], num_args=3 + len(read),
        num_outputs=len(then_branch.outputs), cond_input_locs=(0,),
        then_input_locs=positions_of(reads[0], read), else_input_locs=positions_of(reads[1], read),
        outputs=len(then_branch.outputs),
    )  # fmt: skip


def may_have_one_shape(a: Value, b: Value) -> bool:
    """Whether two values have one shape, as far as it is known."""
    if a.shape is None or b.shape is None:
        return True
    sizes = zip(a.shape, b.shape, strict=False)
    return len(a.shape) == len(b.shape) and all(m == n or None in (m, n) for m, n in sizes)


def emit_select(s, condition, then_branch: Graph, else_branch: Graph):
    """Both branches, and a choice: MXNet tells no shapes of a ``_cond`` inside of a loop."""
    s.nodes += [*then_branch.nodes, *else_branch.nodes]
    outputs = []
    for a, b in zip(then_branch.outputs, else_branch.outputs, strict=True):
        mask = s.Reshape(condition, shape=(1,) * max(a.rank, 1))
        outputs.append(s.where(s.broadcast_like(mask, a), a, b))
    return tuple(outputs)


def inner_node(op: str, inputs: tuple[Value, ...], output: Value, **attrs) -> Node:
    """A node of MXNet's that gives one value, whose name it has."""
    return Node(op, inputs, (output,), attrs, "mxnet", output.name)


@writes("Loop")
def write_loop(s, most, going, *states, body: Graph, sizes: Hint[Sizes | None] = None):
    """A loop that no condition ends is MXNet's foreach, which infers the shapes in its body.

    Of other loops nothing but states comes out.
    """
    turns = scalar_value(most)
    still, constant = body.inputs[1], body.outputs[0]
    endless = constant.tensor is not None and bool(constant.array().all())
    kept = endless or is_passed_through(body, constant, still)
    begun = going is None or bool(scalar_value(going))
    kinds = [(v.dtype, v.shape) for v in body.inputs[2:]]
    ends = body.outputs[1 : len(states) + 1]
    require([(v.dtype, v.shape) for v in ends] == kinds, "states that change their shape")
    finds = sorted({node.op for node in body.all_nodes()} & FINDS)
    is_foreach = kept and begun and not finds
    if is_foreach and turns is not None and turns > 0:
        numbers = s.const(arrays.arange(turns).reshape(-1, 1), DType.INT64, name=f"{s.name}/turns")
        return emit_foreach(s, numbers, states, body)
    only_states = len(body.outputs) == len(states) + 1
    if is_foreach and turns is None and most is not None and (sizes or not only_states):
        steps = (
            emit_arange(s, sizes[0]) if sizes else emit_iterations(s, s.Reshape(most, shape=(1,)))
        )
        numbers = s.Cast(s.Reshape(steps, shape=(-1, 1)), dtype="int64")
        return emit_foreach(s, numbers, states, body)
    require(only_states or not finds, f"outputs of a loop in which {', '.join(finds)} finds sizes. "
            "Compute them in front of the loop.")  # fmt: skip
    require(only_states, "outputs of a loop that a condition ends")
    return emit_while_loop(s, most, going, states, body)


def is_passed_through(body: Graph, value: Value, source: Value) -> bool:
    """Whether ``value`` is ``source`` as it came in."""
    makers = {v: n for n in body.nodes for v in n.outputs}
    while value is not source and value in makers and makers[value].op in ("_copy", "Cast"):
        value = makers[value].inputs[0]  # type: ignore[assignment]
    return value is source


def emit_foreach(s, numbers: Value, states: Sequence[Value], body: Graph):
    """``_foreach`` over the numbers of the turns, ``(turns, 1)``."""
    count, still, *inner = body.inputs
    results = (*body.outputs[len(states) + 1 :], *body.outputs[1 : len(states) + 1])
    always = s.const(np.ones(1, np.float32), name=f"{s.name}/going")
    closure, read = close_over(replace(body, outputs=results))
    outside = {still: always, count: numbers, **dict(zip(inner, states, strict=True))}
    data = [count] if count in read else []
    if not data:  # MXNet counts turns by what it goes over
        closure, read = depend_on_iteration(closure, read, count)
        data = [count]
    local = (*data, *inner)
    rest = [v for v in read if v not in local]
    outputs = s["_foreach"](
        *(outside.get(v, v) for v in (*local, *rest)), subgraph0=closure, num_args=1 + len(read),
        num_outputs=len(results), num_out_data=len(results) - len(states),
        in_data_locs=positions_of(data, read), in_state_locs=positions_of(inner, read),
        remain_locs=positions_of(rest, read), outputs=len(results),
    )  # fmt: skip
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    stacked = len(results) - len(states)
    scanned = [
        s.Reshape(v, shape=(-1,)) if result.shape == () else v
        for v, result in zip(outputs[:stacked], results, strict=False)
    ]
    return (*outputs[stacked:], *scanned)


def depend_on_iteration(closure: Graph, read: list[Value], count: Value):
    """Let a body read the number of the turn: added to its first result as nothing."""
    inside = Value(count.name, count.dtype, count.shape)
    first = closure.outputs[0]
    parts = [Value(f"{first.name}/{n}", first.dtype) for n in ("none", "nothing", "counted")]
    nodes = [
        inner_node("zeros_like", (inside,), parts[0]),
        inner_node("Cast", (parts[0],), parts[1], dtype=storage_type_name(first.type)),
        inner_node("broadcast_add", (first, parts[1]), parts[2]),
    ]
    outputs = (parts[2], *closure.outputs[1:])
    graph = replace(closure, nodes=(*closure.nodes, *nodes), outputs=outputs)
    order = dict(zip(closure.inputs, read, strict=True)) | {inside: count}
    inputs = list(dict.fromkeys(_read(graph)))
    return replace(graph, inputs=tuple(inputs)), [order[v] for v in inputs]


def emit_while_loop(s, most: Value | None, going, states: Sequence[Value], body: Graph):
    """``_while_loop`` over the number of the turn, whether to go on, and the states."""
    turns, (count, still) = scalar_value(most), body.inputs[:2]
    names_of_loop = [
        Value(n, count.dtype, ()) for n in ("limit", "under", "going_on", "next", "again")
    ]
    limit, under, both, following, again = names_of_loop
    if most is None or turns is not None:
        most = s.const(np.array([MOST if turns is None else turns]), DType.INT64)
    less = Value("less")
    asking = Graph("condition", (), (both,), (
        inner_node("broadcast_lesser", (count, limit), less),
        inner_node("Cast", (less,), under, dtype="float32"),
        inner_node("broadcast_mul", (under, still), both),
    ), "mxnet")  # fmt: skip
    steps = (
        inner_node("_plus_scalar", (count,), following, scalar=1),
        inner_node("broadcast_mul", (body.outputs[0], still), again),
    )
    results = (following, again, *body.outputs[1:])
    func, func_read = close_over(replace(body, nodes=(*body.nodes, *steps), outputs=results))
    cond, cond_read = close_over(asking)
    begin = s.const(np.zeros(1, np.int64)), going
    if going is None:
        begin = begin[0], s.const(np.ones(1, np.float32))
    inner = [count, still, *body.inputs[2:]]
    outside = dict(zip(inner, (*begin, *states), strict=True)) | {limit: most}
    read = list(dict.fromkeys([*inner, *func_read, *cond_read]))
    outputs = s["_while_loop"](
        *(outside.get(v, v) for v in read),
        subgraph0=cond,
        subgraph1=func,
        num_args=2 + len(read),
        num_outputs=len(results),
        num_out_data=0,
        max_iterations=int(MOST if turns is None else turns),
        cond_input_locs=positions_of(cond_read, read),
        func_input_locs=positions_of(func_read, read),
        func_var_locs=positions_of(inner, func_read),
        outputs=len(results),
    )
    return outputs[2:]
