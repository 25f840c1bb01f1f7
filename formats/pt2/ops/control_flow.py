"""Operators that take graphs: branches, loops, and regions whose settings do not matter."""

from __future__ import annotations

from serde.errors import require
from serde.ir.builder import ensure_distinct_outputs

from ..operands import Number
from ..rules import reads


@reads("higher_order.cond")
def read_cond(g, condition, then, other, operands):
    operands = values_of(operands)
    if isinstance(condition, bool):
        return (then if condition else other)(g, *operands)
    branches = []
    for body in (then, other):
        inner = g.child("branch")
        branches.append(inner.build(ensure_distinct_outputs(inner, body(inner, *operands))))
    first, second = (len(b.outputs) for b in branches)
    require(first == second, f"branches of {first} and {second} results")
    return g.If(as_condition(g, condition), then_branch=branches[0], else_branch=branches[1],
                outputs=first)  # fmt: skip


def values_of(operands):
    """Operands as the values that they are in the graph."""
    return [x.value if isinstance(x, Number) else x for x in operands]


def as_condition(g, x):
    """A number as a condition."""
    return g.Reshape(g.is_true(x.value if isinstance(x, Number) else x), g.shape_from([]))


@reads("higher_order.while_loop")
def read_while_loop(g, condition, body, carried, additional):
    carried, additional = values_of(carried), values_of(additional)

    def asks(g, states):
        results = condition(g, *states, *additional)
        require(len(results) == 1, f"a condition of {len(results)} results")
        return as_condition(g, *results)

    def step(g, _, __, *states):
        states = body(g, *states, *additional)
        return asks(g, states), *states

    return g.loop(step, None, asks(g, carried), *carried)


@reads("higher_order.scan")
def read_scan(g, body, states, rows, additional):
    states, rows, additional = map(values_of, (states, rows, additional))
    return g.scan(lambda g, *now: body(g, *now, *additional), states, rows)


@reads("higher_order.map_impl")
def read_map(g, body, rows, additional):
    return read_scan(g, body, (), rows, additional)


@reads("higher_order.wrap_with_set_grad_enabled")
def read_region(g, _, body, *operands):
    """A region with or without gradients."""
    return call_region(g, body, operands)


@reads("higher_order.wrap_with_autocast")
def read_autocast(g, device, dtype, enabled, cache, body, *operands):
    """A region that has its casts (``autocast.py``)."""
    return call_region(g, body, operands)


@reads("higher_order.tag_activation_checkpoint", "higher_order.wrap")
def read_checkpoint(g, body, *operands):
    """A region whose values are computed again for gradients."""
    return call_region(g, body, operands)


def call_region(g, body, operands):
    """The results of a graph, whose operands may come in lists."""
    listed = [x for group in operands for x in (group if isinstance(group, tuple) else (group,))]
    return body(g, *values_of(listed))
