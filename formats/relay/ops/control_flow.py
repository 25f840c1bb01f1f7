"""Choices and loops, made by partial evaluation; written short ones are unrolled."""

from __future__ import annotations

import numpy as np

from serde.decompositions import loops
from serde.errors import ConversionError, require
from serde.ir.graph import DType, Graph, Shape, Value
from serde.rewrite.subgraphs import Body

from ..rules import reads
from ..target import legalizations, set_type, writes


@reads("if")
def read_if(g, condition, *, then: Graph, otherwise: Graph):
    outs = g.If(condition, then_branch=then, else_branch=otherwise, outputs=len(then.outputs))
    return outs if isinstance(outs, tuple) else (outs,)


@reads("while")
def read_while(g, start, *state, body: Graph):
    outs = g.Loop(None, start, *state, body=body, outputs=len(body.outputs) - 1)
    return outs if isinstance(outs, tuple) else (outs,)


@writes("If")
def write_if(r, condition, *, then_branch: Graph, else_branch: Graph):
    count = len(then_branch.outputs)
    cond = condition
    if condition.rank:
        cond = set_type(r.reshape(condition, newshape=()), condition.dtype, ())
    return r["if"](cond, then=then_branch, otherwise=else_branch, outputs=count)


@legalizations("Loop")
def legalize_loop(g, trips, go, *states, body: Body, outputs: int = 1):
    """A loop of a few turns as these; any other without a count, and with all it makes carried."""
    require(not any(v.container for v in states if v is not None), "a loop that carries sequences")
    if (turns := loops.static_trip_count(trips, go, body)) is not None:
        return loops.unroll_iterations(g, turns, states, body, outputs)
    return loops.unpack_single(_carry_outputs(g, trips, go, states, body), outputs)


def _carry_outputs(g, trips, go, states, body: Body) -> list[Value]:
    """The loop with its trip count in the condition; each iteration appends to the scan outputs."""
    shapes = [v.ranked_shape for v in states]
    for _ in range(2 + sum(map(len, shapes))):
        inner, outputs = _body(g, states, shapes, body)
        new_shapes = [v.ranked_shape for v in outputs[1 : 1 + len(states)]]
        wider = [_common(a, b) for a, b in zip(shapes, new_shapes, strict=True)]
        if wider == shapes:
            break
        shapes = wider
    more, *outs = outputs
    gathered = [GatheredOutput(g, inner, v) for v in outs[len(states) :]]
    grown = [v for one in gathered for v in one.after]
    empty = [v for one in gathered for v in one.before]
    if trips is not None:
        total = g.Reshape(trips, [])
        more = inner.And(more, inner.Less(inner.Add(inner.inputs[0], 1), total))
        first = g.Less(g.const(0, DType.INT64), total)
        go = first if go is None else g.And(go, first)
    start = g.const(True, DType.BOOL) if go is None else go
    graph = inner.build([more, *outs[: len(states)], *grown])
    operands = (None, g.Reshape(start, []), *states, *empty)
    results = g.as_is("Loop", operands, {"body": graph}, len(operands) - 2)
    values = list(results) if isinstance(results, tuple) else [results]
    left = iter(values[len(states) :])
    return [*values[: len(states)], *(one.take_stack(g, left) for one in gathered)]


class GatheredOutput:
    """What a loop carries for an output of its body that is gathered, before a turn and after.

    That is the stack as it grows, or, of dynamic sizes, all elements in a row, the shape of one
    turn's, and how many turns there were.
    """

    def __init__(self, g, inner, value: Value) -> None:
        self.plain, self.type, self.sizes = value.is_static, value.type, value.ranked_shape
        if self.plain:
            rows = inner.input("made", value.type, (None, *value.static_shape))
            self.before = [g.const(np.zeros((0, *value.static_shape), value.type.numpy))]
            self.after = [inner.Concat(rows, inner.Unsqueeze(value, [0]), axis=0)]
            return
        rows = inner.input("made", value.type, (None,))
        inner.input("shape", DType.INT64, (value.rank,))
        turns = inner.input("turns", DType.INT64, (1,))
        self.before = [
            g.const(np.zeros(0, value.type.numpy)), g.const([0] * value.rank, DType.INT64),
            g.const([0], DType.INT64),
        ]  # fmt: skip
        flat = inner.Concat(rows, inner.Reshape(value, [-1]), axis=0)
        self.after = [flat, inner.Shape(value), inner.Add(turns, [1])]

    def take_stack(self, g, results) -> Value:
        """The stack, of what the loop gave for this output, which is taken from ``results``."""
        stack = next(results)
        if self.plain:
            return stack  # type: ignore[no-any-return]
        shape, turns = next(results), next(results)
        sizes = [
            d if isinstance(d, int) else g.Slice(shape, [at], [at + 1], [0], [1])
            for at, d in enumerate(self.sizes)
        ]
        new_shape = g.shape_from([turns, *sizes])
        return g.Reshape(stack, new_shape, allowzero=1)  # type: ignore[no-any-return]


def _body(g, states, shapes, body: Body):
    inner = g.child(body.graph.name)
    turn, on = inner.input("turn", DType.INT64, ()), inner.input("on", DType.BOOL, ())
    state_inputs = [
        inner.input(b.name, v.dtype, shape)
        for b, v, shape in zip(body.graph.inputs[2:], states, shapes, strict=True)
    ]
    return inner, body(inner, turn, on, *state_inputs)


def _common(a: Shape, b: Shape) -> Shape:
    if len(a) != len(b):
        raise ConversionError("a loop that carries a tensor of now so many axes, now others")
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


@writes("Loop")
def write_loop(r, trips, start, *states, body: Graph):
    """Relay's loop is a function that calls itself; ``to_ast.py`` makes it."""
    require(trips is None and len(body.outputs) == len(states) + 1, "a loop that collects")
    return r["while"](start, *states, body=body, outputs=len(states))


legalizations("Scan")(loops.unroll_scan)
