"""Sequences and optionals whose contents are known, resolved to the tensors they hold.

An older opset may lack them, or take them in fewer places. A sequence that is built, changed and
read within the graph, at places that are constants, needs no sequence there: a value stands for the
tensors in it. Where one has to be after all it is constructed, if the opset can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from serde.errors import require
from serde.ir.graph import DType, Graph, Value
from serde.rewrite import functions
from serde.rewrite.subgraphs import Body

from ..version_converter.adapters.common import require_expandable

SEQUENCES, OPTIONALS = 13, 16  # from these opsets on bodies and Identity take them as well
SINCE = {"Optional": OPTIONALS}
MOST = 1 << 12  # elements of a sequence that is made scalars


class KnownSequence(NamedTuple):
    """What a value stands for: the tensors of a sequence, or the one of an optional, or none."""

    values: tuple[Value, ...]
    optional: bool = False


def forward(g: Any, values: Sequence[Value], optional: bool = False) -> Value:
    """A value no node computes, that stands for ``values``."""
    require_expandable(len(values), "a sequence", MOST)
    first = values[0] if values else None
    wrap = (
        "optional" if optional else "sequence",
        *(first.container if optional and first else ()),
    )
    value = Value(g.names.fresh("held"), first and first.dtype, None, container=wrap)
    g.known_sequences[value] = KnownSequence(tuple(values), optional)
    return value


def materialize(g: Any, value: Value) -> Value:
    """What a value stands for, as a sequence or an optional of the opset."""
    known = g.known_sequences.get(value)
    if known is None:
        return value
    kind, op, lowest = "a sequence", "SequenceConstruct", 11
    if known.optional:
        kind, op, lowest = "an optional", "Optional", 15
    require(g.opset >= lowest, f"{kind} that is an output of the graph, or whose contents are "
            f"dynamic; opset {lowest} is the lowest with such")  # fmt: skip
    if not known.values:
        require(not known.optional, "an optional without element; opset 16 is the lowest")
        return g.node("SequenceEmpty", (), {})  # type: ignore[no-any-return]
    values = [materialize(g, v) for v in known.values]
    return g.node(op, values, {})  # type: ignore[no-any-return]


def place(position: Value | None, count: int, default: int) -> int | None:
    """A constant position, counted from the front; None where it is computed."""
    if position is None:
        return default
    if position.tensor is None:
        return None
    at = position.ints()[0]
    at = at + count if at < 0 else at
    require(0 <= at <= count, f"position {at} of a sequence of {count}")
    return at


def resolve_sequence_operator(
    g: Any, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], outputs: int
) -> Any:  # fmt: skip
    """The result of an operator on what is held; None where it has to be a node."""
    if op in CONSTRUCTORS and (g.scalarizes or g.opset < SINCE.get(op, SEQUENCES)):
        return CONSTRUCTORS[op](g, *inputs, **attrs)
    first = g.known_sequences.get(inputs[0]) if inputs and isinstance(inputs[0], Value) else None
    if op == "If":
        return branches(g, inputs[0], attrs, outputs)
    if first is None:
        return None
    if op == "Identity":
        return inputs[0]
    if op == "SequenceMap":
        return map_sequence(g, inputs, attrs["body"], outputs)
    return READ[op](g, first.values, *inputs[1:], **attrs) if op in READ else None


def construct(g: Any, *values: Value) -> Value:
    return forward(g, values)


def split_to_sequence(
    g: Any, x: Value, split: Value | None = None, *, axis: int = 0, keepdims: int = 1
) -> Value | None:  # fmt: skip
    """SplitToSequence, where the number of parts is known."""
    n = x.ranked_shape[axis]
    if not isinstance(n, int) or (split is not None and split.tensor is None):
        return None
    if split is None:
        sizes = (1,) * n
    elif split.rank == 0:
        each = split.ints()[0]
        sizes = (*(each,) * (n // each), *((n % each,) if n % each else ()))
    else:
        sizes = split.ints()
    require_expandable(len(sizes), "a sequence", MOST)
    ends = list(accumulate(sizes))
    parts = [g.Slice(x, [e - s], [e], [axis], [1]) for s, e in zip(sizes, ends, strict=True)]
    if split is None and not keepdims:
        parts = [g.Squeeze(p, [axis]) for p in parts]
    return forward(g, parts)


def optional(g: Any, x: Value | None = None, *, type: Any = None) -> Value:
    return forward(g, [] if x is None else [x], optional=True)


def element(g: Any, values: tuple[Value, ...], position: Value) -> Value | None:
    """One of the tensors; by a computed position if they have one shape."""
    at = place(position, len(values), 0)
    if at is not None:
        require(at < len(values), f"element {at} of a sequence of {len(values)}")
        return values[at]
    if not values or not all(v.is_static and v.shape == values[0].shape for v in values):
        return None
    stacked = g.Concat(*(g.Unsqueeze(v, [0]) for v in values), axis=0)
    return g.Gather(stacked, g.Reshape(position, g.const([], DType.INT64)), axis=0)  # type: ignore


def insert(g: Any, values: tuple[Value, ...], x: Value, position: Any = None) -> Value | None:
    at = place(position, len(values), len(values))
    return None if at is None else forward(g, [*values[:at], x, *values[at:]])


def erase(g: Any, values: tuple[Value, ...], position: Any = None) -> Value | None:
    at = place(position, len(values), len(values) - 1)
    return None if at is None else forward(g, [*values[:at], *values[at + 1 :]])


def length(g: Any, values: tuple[Value, ...]) -> Value:
    return g.const(len(values), DType.INT64)  # type: ignore[no-any-return]


def concatenate(g: Any, values: tuple[Value, ...], *, axis: int, new_axis: int = 0) -> Value:
    require(len(values) > 0, "the elements of an empty sequence as one tensor")
    parts = [g.Unsqueeze(v, [axis]) for v in values] if new_axis else values
    return g.Concat(*parts, axis=axis)  # type: ignore[no-any-return]


def has_optional(g: Any, values: tuple[Value, ...]) -> Value:
    return g.const(bool(values), DType.BOOL)  # type: ignore[no-any-return]


def get_optional(g: Any, values: tuple[Value, ...]) -> Value:
    require(len(values) == 1, "the element of an optional that has none")
    return values[0]


CONSTRUCTORS = {
    "Optional": optional,
    "SequenceConstruct": construct,
    "SequenceEmpty": lambda g, **attrs: forward(g, []),
    "SplitToSequence": split_to_sequence,
}
READ = {
    "ConcatFromSequence": concatenate,
    "OptionalGetElement": get_optional,
    "OptionalHasElement": has_optional,
    "SequenceAt": element,
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
}


def map_sequence(g: Any, inputs: Sequence[Value], body: Graph, outputs: int) -> Any:
    """SequenceMap: its body once for each element."""
    lists = [g.known_sequences.get(v) for v in inputs]
    if any(h is None and v.container for h, v in zip(lists, inputs, strict=True)):
        return None
    columns: list[list[Value]] = [[] for _ in body.outputs]
    for i in range(len(lists[0].values)):  # type: ignore[union-attr]
        operands = [v if h is None else h.values[i] for h, v in zip(lists, inputs, strict=True)]
        values = functions.emit_subgraph(g, body, operands, g.opset)
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    results = tuple(forward(g, values) for values in columns)
    return results[0] if outputs == 1 else results


def unroll_sequence_loop(
    g: Any, inputs: Sequence[Value | None], body: Body, outputs: int
) -> tuple[Any, ...]:  # fmt: skip
    """Unroll a Loop that carries a sequence; its number of iterations has to be static."""
    count, go = inputs[:2]
    states: list[Any] = list(inputs[2:])
    lowest = (
        OPTIONALS
        if any(v in g.known_sequences and g.known_sequences[v].optional for v in states)
        else SEQUENCES
    )
    late = (f"a loop that carries {'an optional' if lowest == OPTIONALS else 'a sequence'} and "
            f"turns as often as data says; opset {lowest} is the lowest that has such")  # fmt: skip
    require(count is None or count.tensor is not None, late)
    turns = MOST if count is None else require_expandable(count.ints()[0], "turns of a loop", MOST)
    rows: list[tuple[Value, ...]] = []  # what each turn gives to be gathered
    for i in range(turns + 1):
        require(go is None or go.tensor is not None, late)
        if i == turns or (go is not None and not go.ints()[0]):
            break
        first = g.const(True, DType.BOOL) if go is None else go
        go, *results = body(g, g.const(i, DType.INT64), first, *states)
        states = list(results[: len(states)])
        rows.append(tuple(results[len(states) :]))
    require(i < MOST, late)
    require(len(states) == outputs or bool(rows), "what a loop gathers that turns not even once")
    stacks = [
        g.Concat(*(g.Unsqueeze(v, [0]) for v in turn), axis=0) for turn in zip(*rows, strict=True)
    ]
    return (*states, *stacks)


def branches(g: Any, condition: Value, attrs: Mapping[str, Any], outputs: int) -> Any:
    """An If whose branches give as many tensors, in what they hold, gives those tensors."""
    bodies = [attrs["then_branch"], attrs["else_branch"]]
    sequences = [[g.known_sequences.get(v) for v in b.outputs] for b in bodies]
    if not any(h is not None for part in sequences for h in part):
        return None
    for one, other in zip(*sequences, strict=True):
        same = one is not None and other is not None and len(one.values) == len(other.values)
        late = f"opset {SEQUENCES} is the lowest with such (of optionals, {OPTIONALS})"
        require(same or one is other is None, f"a sequence that a condition makes longer; {late}")
    flat = [return_elements(g, body, part) for body, part in zip(bodies, sequences, strict=True)]
    count = len(flat[0].outputs)
    result = g.If(condition, then_branch=flat[0], else_branch=flat[1], outputs=count)
    left = list(result if isinstance(result, tuple) else (result,))
    results = []
    for h in sequences[0]:
        if h is None:
            results.append(left.pop(0))
        else:
            results.append(forward(g, [left.pop(0) for _ in h.values], h.optional))
    return results[0] if outputs == 1 else tuple(results)


def return_elements(g: Any, body: Graph, sequences: Sequence[KnownSequence | None]) -> Graph:
    """A branch that gives what its outputs hold, each a value of its own."""
    inner = g.child(body.name)
    inner.nodes.extend(body.nodes)
    outputs: list[Value] = []
    for value, h in zip(body.outputs, sequences, strict=True):
        outputs += [value] if h is None else [inner.emit_identity(v) for v in h.values]
    return inner.build(outputs)  # type: ignore[no-any-return]
