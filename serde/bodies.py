"""What enters a body: types that a file may leave out, since the node around it implies them."""

from __future__ import annotations

from collections.abc import Sequence

from serde.graph import DType, Graph, Node, Value
from serde.inference import UNKNOWN, Type, merge, of

COUNT, GOING = Type(DType.INT64, ()), Type(DType.BOOL, ())


def entering(node: Node, body: Graph, inputs: Sequence[Value | None]) -> list[Type]:
    """The types of what a Loop, a Scan or a SequenceMap hands to its body at first."""
    operands = [UNKNOWN if v is None else of(v) for v in inputs]
    if node.op == "Loop":
        operands[:2] = [COUNT, GOING]
    elif node.op == "Scan":
        scanned = node.attrs.get("num_scan_inputs", 0)
        axes = node.attrs.get("scan_input_axes") or (0,) * scanned
        states = len(operands) - scanned
        turns = [_without(t, a) for t, a in zip(operands[states:], axes, strict=False)]
        operands[max(states, 0) :] = turns
    elif node.op == "SequenceMap":
        operands = [t._replace(wrap=t.wrap[1:]) if t.wrap else t for t in operands]
    else:
        operands = []
    if len(operands) != len(body.inputs):  # a body without inputs, or of another version
        return [UNKNOWN] * len(body.inputs)
    return operands


def returning(node: Node, types: Sequence[Type], body: Graph) -> list[Type]:
    """The types of what enters in the next turn as well, if the first is of ``types``."""
    first, skipped = {"Loop": (2, 1), "Scan": (0, 0)}.get(node.op, (len(types), 0))
    last = len(types) - (node.attrs.get("num_scan_inputs", 0) if node.op == "Scan" else 0)
    states = zip(types[first:last], body.outputs[skipped:], strict=False)
    merged = [merge(t, of(v)) for t, v in states]
    return [*types[:first], *merged, *types[first + len(merged) :]]


def complete(value: Value, given: Type) -> Type:
    """What is said of an input of a body, and what is not, as it is given."""
    if value.dtype is None:
        return given
    same = value.dtype is given.dtype and value.wrap == given.wrap
    shape = given.shape if value.shape is None and same else value.shape
    return Type(value.dtype, shape, value.wrap)


def _without(type_: Type, axis: int) -> Type:
    """The type of one turn's share."""
    if type_.shape is None or not -len(type_.shape) <= axis < len(type_.shape):
        return type_._replace(shape=None)
    axis %= len(type_.shape)
    return type_._replace(shape=type_.shape[:axis] + type_.shape[axis + 1 :])
