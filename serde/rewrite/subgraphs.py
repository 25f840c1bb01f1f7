"""What enters a body: types that a file may leave out, since the node around it implies them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from serde.ir.builder import Builder
from serde.ir.graph import DType, Graph, Node, Value
from serde.spec.inference import UNKNOWN, Type, merge, type_of

COUNT, GOING = Type(DType.INT64, ()), Type(DType.BOOL, ())


@dataclass(frozen=True)
class Body:
    """A subgraph whose nodes a rule puts where it wants them, and as often.

    A rule's keyword-only parameter annotated so takes an attribute that is a subgraph. Called with
    a builder and what the subgraph's inputs stand for, it emits the nodes and returns the outputs.
    """

    graph: Graph
    place: Callable[[Graph, Builder, Sequence[Value]], tuple[Value, ...]]

    def __call__(self, builder: Builder, *operands: Value) -> tuple[Value, ...]:
        return self.place(self.graph, builder, operands)


def constant_branch(node: Node, inputs: Sequence[Value | None]) -> Graph | None:
    """The branch that an If on a constant takes; None where the condition is none."""
    condition = inputs[0] if inputs else None
    if (node.domain, node.op) != ("", "If") or condition is None or condition.tensor is None:
        return None
    if condition.dtype is not DType.BOOL or condition.tensor.size != 1:
        return None
    branch = node.attrs.get("then_branch" if condition.array().any() else "else_branch")
    usable = isinstance(branch, Graph) and len(branch.outputs) == len(node.outputs)
    return branch if usable else None  # type: ignore[return-value]


def infer_entry_types(node: Node, body: Graph, inputs: Sequence[Value | None]) -> list[Type]:
    """The types of what a Loop, a Scan or a SequenceMap hands to its body at first."""
    operands = [UNKNOWN if v is None else type_of(v) for v in inputs]
    if node.op == "Loop":
        operands[:2] = [COUNT, GOING]
    elif node.op == "Scan":
        states, axes = _split_scan_operands(node, len(operands))
        turns = [_drop_axis(t, a) for t, a in zip(operands[states:], axes, strict=False)]
        operands[states:] = turns
    elif node.op == "SequenceMap":
        operands = [t._replace(container=t.container[1:]) if t.container else t for t in operands]
    else:
        operands = []
    if len(operands) != len(body.inputs):  # a body without inputs, or of another version
        return [UNKNOWN] * len(body.inputs)
    return operands


def infer_next_types(node: Node, types: Sequence[Type], body: Graph) -> list[Type]:
    """The types of what enters in the next turn as well, if the first is of ``types``."""
    if node.op == "Loop":
        first, last, results = 2, len(types), body.outputs[1:]
    else:
        first, last, results = 0, _split_scan_operands(node, len(types))[0], body.outputs
    states = zip(types[first:last], results, strict=False)
    merged = [merge(t, type_of(v)) for t, v in states] if node.op in ("Loop", "Scan") else []
    return [*types[:first], *merged, *types[first + len(merged) :]]


def _split_scan_operands(node: Node, operands: int) -> tuple[int, Sequence[int]]:
    """How many operands of a Scan are states, and the axes it goes over of the others."""
    count = node.attrs.get("num_scan_inputs")
    if not isinstance(count, int):
        return operands, ()
    axes = node.attrs.get("scan_input_axes")
    scan_axes = axes if isinstance(axes, tuple) and axes else (0,) * min(count, operands)
    return max(operands - count, 0), scan_axes


def complete_type(value: Value, type_: Type) -> Type:
    """What is said of an input of a body, and what is not, as it is given."""
    if value.dtype is None:
        return type_
    same = value.dtype is type_.dtype and value.container == type_.container
    shape = type_.shape if value.shape is None and same else value.shape
    return Type(value.dtype, shape, value.container)


def _drop_axis(type_: Type, axis: int) -> Type:
    """The type of one turn's share."""
    if type_.shape is None or not -len(type_.shape) <= axis < len(type_.shape):
        return type_._replace(shape=None)
    axis %= len(type_.shape)
    return type_._replace(shape=type_.shape[:axis] + type_.shape[axis + 1 :])


def list_outer_values(*bodies: Graph) -> tuple[Value, ...]:
    """The values that subgraphs read of the graph around, each once."""
    return tuple(dict.fromkeys(v for body in bodies for v in _read_from_outside(body)))


def _read_from_outside(body: Graph) -> Iterator[Value]:
    inside = {*body.inputs, *(v for node in body.nodes for v in node.outputs)}
    for values in (*(node.inputs for node in body.nodes), body.outputs):
        for value in values:
            if value is not None and value.tensor is None and value not in inside:
                yield value
