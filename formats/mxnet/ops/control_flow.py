"""Control flow: subgraphs that are run for each element, while a condition holds, or by choice.

The inputs of a subgraph are listed in the order of its own ``list_inputs``; attributes tell which
of them, or of the node's operands, is which (control_flow.cc).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serde.decompositions.expressions import is_true, shape_from
from serde.errors import require
from serde.ir.builder import computed
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Graph, Value
from serde.rewrite.subgraphs import Body

from ..rules import reads

COUNTS = ("num_args", "num_outputs")


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
    inner = g.child("foreach")
    carried = [inner.input("state", s.type, s.shape) for s in states]
    items = [inner.input("item", x.type, x.shape and x.shape[1:]) for x in data]
    places = (*in_data_locs, *in_state_locs, *remain_locs)
    given = dict(zip(places, (*items, *carried, *rest), strict=True))
    found = subgraph0(inner, *(given[i] for i in range(len(given))))
    body = inner.build(computed(inner, [*found[num_out_data:], *found[:num_out_data]]))
    results = several(
        g.Scan(*states, *data, body=body, num_scan_inputs=len(data), outputs=len(found))
    )
    return (*results[len(states) :], *results[: len(states)])


def several(results: Any) -> tuple[Value, ...]:
    """The outputs of an operator, of which there may be one."""
    return results if isinstance(results, tuple) else (results,)


def picked(operands: Sequence[Value], places: Ints) -> list[Value]:
    return [operands[i] for i in places]


def truth(g: Any, value: Value) -> Value:
    """The one number of a condition as a boolean."""
    return g.Reshape(is_true(g, value), shape_from(g, []))  # type: ignore[no-any-return]


@reads("_while_loop", ignore=COUNTS)
def read_while_loop(
    g, *operands, subgraph0: Body, subgraph1: Body, num_out_data: int, max_iterations: int,
    cond_input_locs: Ints, func_input_locs: Ints, func_var_locs: Ints,
):  # fmt: skip
    """What each step gives is stacked, and zeros make it ``max_iterations`` long."""
    places = [func_input_locs[i] for i in func_var_locs]  # of the variables among the operands
    first = picked(operands, places)
    inner = g.child("while")
    inner.input("step", DType.INT64, ())
    inner.input("go", DType.BOOL, ())
    variables = [inner.input("variable", v.type, v.shape) for v in first]
    inside = list(operands)
    for at, v in zip(places, variables, strict=True):
        inside[at] = v
    found = subgraph1(inner, *picked(inside, func_input_locs))
    for at, v in zip(places, found[num_out_data:], strict=True):
        inside[at] = v
    go = truth(inner, *subgraph0(inner, *picked(inside, cond_input_locs)))
    body = inner.build(computed(inner, [go, *found[num_out_data:], *found[:num_out_data]]))
    go = truth(g, *subgraph0(g, *picked(operands, cond_input_locs)))
    results = several(g.Loop(max_iterations, go, *first, body=body, outputs=len(found)))
    stacked = [filled_up(g, y, max_iterations) for y in results[len(first) :]]
    return (*stacked, *results[: len(first)])


def filled_up(g: Any, y: Value, length: int) -> Value:
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
    go = truth(g, *subgraph0(g, *picked(operands, cond_input_locs)))
    then = branch(g, subgraph1, picked(operands, then_input_locs))
    other = branch(g, subgraph2, picked(operands, else_input_locs))
    require(len(then.outputs) == len(other.outputs), "branches of different numbers of outputs")
    return g.If(go, then_branch=then, else_branch=other, outputs=len(then.outputs))


def branch(g: Any, body: Body, operands: Sequence[Value]) -> Graph:
    """A branch, which reads the values around it directly."""
    inner = g.child("branch")
    return inner.build(computed(inner, body(inner, *operands)))  # type: ignore[no-any-return]


@reads("_CachedOp")
def read_cached_op(g, *operands, subgraph0: Body):
    """A subgraph that was set apart is put back in its place."""
    return subgraph0(g, *operands)
