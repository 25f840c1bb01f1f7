"""Control flow unrolled: subgraphs come as ``Body``, and are emitted at each call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serde.errors import require
from serde.ir.graph import DType, Graph, Value, show_shape
from serde.rewrite.subgraphs import Body
from serde.spec.expressions import number

LONGEST = 64  # iterations of a loop that are unrolled
STATIC = "give its size as a number (--static, --input)"
CHOOSE = "give numbers (--static, --input), or set what the condition is made of (--set-input)"
MAX_UNROLLED = 4096  # nodes they may come to
LENGTH = f"a loop of dynamic length, or of more than {LONGEST} iterations"


def static_trip_count(trips: Value | None, go: Value | None, body: Body) -> int | None:
    """How many turns a loop takes, where that is known and few of them."""
    turns = number(trips)
    endless = always_continues(body.graph) and (go is None or number(go))
    is_few = turns is not None and 0 < turns <= most_iterations(body)
    return int(turns) if turns is not None and endless and is_few else None


def most_iterations(body: Body) -> int:
    """How often a body may be unrolled."""
    return min(LONGEST, MAX_UNROLLED // (count_unrolled(body.graph) + 1))


def count_unrolled(graph: Graph) -> int:
    """How many nodes a graph has at most once the loops in it are unrolled."""
    total = 0
    for node in graph.nodes:
        turns = number(node.inputs[0]) if node.op == "Loop" else None
        known = int(turns) if turns is not None and 0 < turns < LONGEST else LONGEST
        times = known if node.op in ("Loop", "Scan") else 1
        total += 1 + times * sum(map(count_unrolled, node.graphs()))
    return total


def fill_zeros(values: Sequence[int] | None, count: int) -> tuple[int, ...]:
    """An attribute that may be left out: as many zeros."""
    return tuple(values or (0,) * count)


def unpack_single(values: Any, outputs: int) -> Any:
    return tuple(values) if outputs > 1 else values[0]


def inline_if(g, condition, *, then_branch: Body, else_branch: Body, outputs: int = 1):
    """The branch taken where the condition is constant; otherwise a choice of both results."""
    chosen = number(condition)
    if chosen is not None:
        return unpack_single((then_branch if chosen else else_branch)(g), outputs)
    pairs = list(zip(then_branch(g), else_branch(g), strict=True))
    for a, b in pairs:
        same = a.dtype is b.dtype and None not in a.ranked_shape and a.shape == b.shape
        shapes = f"{show_shape(a.shape)} and {show_shape(b.shape)}"
        require(same, f"branches that give tensors of the shapes {shapes}: {CHOOSE}")
    return unpack_single([_choose(g, condition, a, b) for a, b in pairs], outputs)


def _choose(g, condition: Value, a: Value, b: Value) -> Value:
    """One of two tensors of a shape; a condition of one element would give scalars an axis."""
    is_wide = a.rank < condition.rank
    return g.Where(g.Reshape(condition, []) if is_wide else condition, a, b)  # type: ignore[no-any-return]


def unroll_loop(g, trips, go, *states, body: Body, outputs: int = 1):
    """An unrolled loop, for targets without loops.

    A condition has to follow from constants, as that of a count does.
    """
    limit = math.inf if trips is None else number(trips) or 0
    require(limit > 0 and (go is None or number(go)), LENGTH)
    endless, most = always_continues(body.graph), most_iterations(body)
    require(not endless or limit <= most, LENGTH)
    return unroll_iterations(g, int(min(limit, most + 1)), states, body, outputs, endless)


def always_continues(body: Graph, copy: str = "Identity") -> bool:
    """Whether the body goes on whenever it was asked to; ``copy`` gives a value another name."""
    go: Value | None = body.outputs[0]
    makers = {v: n for n in body.nodes for v in n.outputs}
    while go is not None and go in makers and makers[go].op == copy:
        go = makers[go].inputs[0]
    return go is body.inputs[1] or bool(number(go))


def unroll_iterations(g, iterations: int, states, body: Body, outputs: int, endless: bool = True):
    """The turns one after the other; what each makes beside the states is gathered.

    Where a loop is not ``endless`` its condition may end it before.
    """
    count, most = len(states), most_iterations(body)
    rows: list[list[Value]] = [[] for _ in body.graph.outputs[1 + count :]]
    for turn in range(iterations):
        require(turn < most, LENGTH)
        operands = (g.const(turn, DType.INT64), g.const(True, DType.BOOL), *states)
        condition, *results = body(g, *operands)
        states = results[:count]
        for row, value in zip(rows, results[count:], strict=True):
            row.append(g.Unsqueeze(value, [0]))
        goes_on = endless or number(condition)
        require(goes_on is not None, LENGTH)
        if not goes_on:
            break
    return unpack_single([*states, *(g.Concat(*row, axis=0) for row in rows)], outputs)


def unroll_scan(
    g, *operands, body: Body, num_scan_inputs: int, scan_input_axes=None,
    scan_input_directions=None, scan_output_axes=None, scan_output_directions=None,
    outputs: int = 1,
):  # fmt: skip
    """A few turns as these; others as a loop, where the target has loops."""
    count = len(operands) - num_scan_inputs
    states, over = list(operands[:count]), operands[count:]
    axes = [a % v.rank for a, v in zip(fill_zeros(scan_input_axes, len(over)), over, strict=True)]
    length = over[0].ranked_shape[axes[0]]
    backward = fill_zeros(scan_input_directions, len(over))
    rows: list[list[Value]] = [[] for _ in body.graph.outputs[count:]]
    ends = fill_zeros(scan_output_axes, len(rows)), fill_zeros(scan_output_directions, len(rows))
    few = isinstance(length, int) and length * count_unrolled(body.graph) <= MAX_UNROLLED
    if g.loops and not few:
        tensors = _scan_loop(g, states, over, body, axes, backward)
        stacks = zip(tensors[count:], *ends, strict=True)
        values = [_stack_scan_output(g, v, axis, back) for v, axis, back in stacks]
        return unpack_single([*tensors[:count], *values], outputs)
    require(isinstance(length, int), f"a Scan of dynamic length: {STATIC}")
    require(few, f"a Scan of {length} steps: they come to more than {MAX_UNROLLED} nodes")
    for turn in range(length):
        parts = [
            g.Gather(v, length - 1 - turn if back else turn, axis=axis)
            for v, axis, back in zip(over, axes, backward, strict=True)
        ]
        results = body(g, *states, *parts)
        states = list(results[:count])
        for row, value in zip(rows, results[count:], strict=True):
            row.append(value)
    values = list(states)
    for row, axis, back in zip(rows, *ends, strict=True):
        at = axis % (row[0].rank + 1)
        values.append(g.Concat(*(g.Unsqueeze(v, [at]) for v in row[:: -1 if back else 1]), axis=at))
    return unpack_single(values, outputs)


def _scan_loop(g, states, over, body: Body, axes, backward) -> list[Value]:
    """A Loop that takes the parts of a Scan by their number."""
    total = g.Gather(g.Shape(over[0]), axes[0], axis=0)
    inner, (turn, on, *state_inputs) = loop_body(g, states)
    parts = []
    for v, axis, back in zip(over, axes, backward, strict=True):
        at = inner.Sub(inner.Sub(total, 1), turn) if back else turn
        parts.append(inner.Gather(v, at, axis=axis))
    results = body(inner, *state_inputs, *parts)
    graph = inner.build([on, *results])
    values = g.Loop(total, g.const(True), *states, body=graph, outputs=len(results))
    return list(values) if len(results) > 1 else [values]


def loop_body(g, states) -> tuple[Any, list[Value]]:
    """A builder of a loop's body, and its inputs: the turn, whether to go on, and the states."""
    inner = g.child("turns")
    state_inputs = [inner.input(v.name, v.dtype, v.shape) for v in states]
    first = [inner.input("turn", DType.INT64, ()), inner.input("on", DType.BOOL, ())]
    inner.inputs = [*first, *state_inputs]
    return inner, inner.inputs


def _stack_scan_output(g, stack: Value, axis: int, back: int) -> Value:
    """What every turn gave, stacked along an axis, maybe from the last to the first."""
    stack = reverse_rows(g, stack) if back else stack
    order = list(range(1, stack.rank))
    order.insert(axis % stack.rank, 0)
    return g.Transpose(stack, perm=tuple(order))  # type: ignore[no-any-return]


def reverse_rows(g, x: Value, axis: int = 0) -> Value:
    """``x`` from the last row to the first, along ``axis``.

    Of a Gather by a Range down to 0 ONNX Runtime's optimizers make an empty Slice.
    """
    count = g.Gather(g.Shape(x), axis, axis=0)
    places = g.Sub(g.Sub(count, 1), g.Range(0, count, 1))
    return g.Gather(x, places, axis=axis)  # type: ignore[no-any-return]


# Rules of targets without control flow.
WITHOUT_CONTROL_FLOW: Mapping[str, Callable[..., Any]] = {
    "If": inline_if, "Loop": unroll_loop, "Scan": unroll_scan,
}  # fmt: skip
