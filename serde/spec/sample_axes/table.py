"""The table of the axes along which operators work, and what its rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from serde.errors import ConversionError
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import Ints, axes_of, axis_of
from serde.ir.graph import Node, Value

ANY = -1  # in ``inputs``: of the operand, only the element type is looked at
SHARED = -1  # in ``outputs``: the output is one for all indices along the axis
Axis = int | None


class SampleAxis(NamedTuple):
    """An axis along which an operator computes every index by itself.

    Attributes:
        inputs: the axis of each operand; None where one operand is for all indices.
        outputs: the axis of each output; None where the output mixes the indices.
        broadcasts: whether an operand of size 1 along it stands for all indices.
    """

    inputs: tuple[Axis, ...]
    outputs: tuple[Axis, ...]
    broadcasts: bool = False


Rule = Callable[[Node], Iterable[SampleAxis]]
RULES: dict[str, Rule] = {}


def sample_axes(names: str, domain: str = "") -> Callable[[Rule], Rule]:
    """Enter a rule for the operators of some names, with spaces between them."""

    def register(rule: Rule) -> Rule:
        RULES.update({f"{domain}:{n}" if domain else n: rule for n in names.split()})
        return rule

    return register


def first_operand(node: Node, axes: Iterable[int | tuple[int, int]]) -> Iterator[SampleAxis]:
    """Axes of the first operand and of all outputs; pairs where they differ."""
    rest = (None,) * (len(node.inputs) - 1)
    for axis in axes:
        source, target = axis if isinstance(axis, tuple) else (axis, axis)
        yield SampleAxis((source, *rest), (target,) * len(node.outputs))


def first_output(node: Node, axes: Iterable[int], *inputs: Axis) -> Iterator[SampleAxis]:
    """Like ``first_operand`` where the other outputs mix all indices."""
    for axis in first_operand(node, axes):
        yield axis._replace(outputs=(axis.outputs[0], *(None,) * (len(node.outputs) - 1)))


def one_axis(node: Node, inputs: Sequence[Axis], *outputs: Axis) -> SampleAxis:
    """One axis, with as many operands and outputs as the node has; the last output repeats."""
    count = len(node.outputs)
    return SampleAxis(
        (*inputs, *(None,) * len(node.inputs))[: len(node.inputs)],
        (*outputs, *(outputs[-1],) * count)[:count],
    )


def align_operands(node: Node) -> Iterator[SampleAxis]:
    """The axes of operands that broadcast, counted from the last."""
    ranks = [None if v is None else v.rank for v in node.inputs]
    rank = max((r for r in ranks if r is not None), default=0)
    for axis in range(rank):
        operand_axes = (None if r is None or axis < rank - r else axis - (rank - r) for r in ranks)
        yield SampleAxis(tuple(operand_axes), (axis,) * len(node.outputs), True)


def other_axes(node: Node, axes: Iterable[int]) -> Ints:
    """The axes of the first operand that are not among ``axes``."""
    rank = operand(node, 0).rank
    named = axes_of(axes, rank)
    return tuple(a for a in range(rank) if a not in named)


def operand(node: Node, index: int) -> Value:
    """An operand that has to be there."""
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        raise ConversionError(f"{node.op} lacks operand {index}")
    return value


def has_operand(node: Node, index: int) -> bool:
    """Whether an operand is there."""
    return index < len(node.inputs) and node.inputs[index] is not None


def known_integers(node: Node, index: int) -> tuple[int | None, ...] | None:
    """What is known of an operand of integers: None for all of it, or for an element."""
    elements = shape_data_of(node.inputs[index]) if has_operand(node, index) else None
    if elements is None:
        return None
    return tuple(e if isinstance(e, int) else None for e in elements)


def integer(node: Node, name: str, default: int) -> int:
    """An attribute that is an integer."""
    value = node.attrs.get(name, default)
    return value if isinstance(value, int) else default


def attribute_axis(node: Node, default: int, index: int = 0) -> int:
    """The attribute ``axis``, counted from the front of an operand."""
    return axis_of(integer(node, "axis", default), operand(node, index).rank)
