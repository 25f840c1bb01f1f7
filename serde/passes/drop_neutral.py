"""Sums with zero, products with one, reductions over axes of one element, and orderly look-ups.

A reduction that drops the axes becomes a Squeeze, and a look-up of all elements of an axis in their
order, as exporters write a view, a Reshape. A sum with zero makes 0 of -0, which ONNX
Runtime, dropping the sum itself, does not either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from serde.ir.constants import make_integers
from serde.ir.geometry import axis_of
from serde.ir.graph import Node, Shape, Value
from serde.passes.merge_reductions import find_reduced_axes
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns, orders
from serde.spec.traits import EXTREMES

NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
MOST = 1 << 16  # elements that are looked at
COMMUTATIVE = frozenset({"Add", "Mul"})
patterns = Patterns()


@patterns(*EXTREMES, "ReduceMean", "ReduceProd", "ReduceSum")
def drop_reduction(near: Neighbours, node: Node) -> Node | Value | None:
    """The operand of a reduction over axes of one element."""
    x, axes = node.inputs[0], find_reduced_axes(node)
    if x is None or axes is None or x.tensor is not None:
        return None
    if any(x.ranked_shape[axis] != 1 for axis in axes):
        return None
    is_kept = x.rank == node.outputs[0].rank
    return x if is_kept else replace(node, op="Squeeze", attrs={})


@patterns(*NEUTRAL)
def drop_term(near: Neighbours, node: Node) -> Value | None:
    """The operand of a sum or product whose other operands change nothing."""
    for x, term in orders(node) if node.op in COMMUTATIVE else orders(node)[:1]:
        if x is None or term is None or term.tensor is None or term.tensor.size > MOST:
            continue
        if x.shape is None or x.tensor is not None or not _keeps_shape(x.shape, term.static_shape):
            continue
        if (term.array() == NEUTRAL[node.op]).all():
            return x
    return None


@patterns("Gather")
def drop_gather(near: Neighbours, node: Node) -> Node | Value | None:
    """The operand of a look-up of all that is along an axis, in order.

    Not of one element: where that is of a batch, the first sample may be meant.
    """
    x, at = node.inputs
    if x is None or x.shape is None or x.tensor is not None or at is None or at.tensor is None:
        return None
    axis: Any = node.attrs.get("axis", 0)
    size, result = x.ranked_shape[axis_of(axis, x.rank)], node.outputs[0]
    if not isinstance(size, int) or not 1 < size == at.tensor.size <= MOST:
        return None
    if (at.array().ravel() % size != range(size)).any():
        return None
    if len(at.static_shape) == 1:
        return x
    shape = [d if isinstance(d, int) else -1 for d in result.shape or ()]
    if result.shape is None or 0 in shape or shape.count(-1) > 1:
        return None
    inputs = (x, make_integers(f"{result.name}/shape", shape))
    return replace(node, op="Reshape", inputs=inputs, attrs={"allowzero": 0})


def _keeps_shape(shape: Shape, other: Shape) -> bool:
    """Whether what ``shape`` and ``other`` broadcast to is ``shape``."""
    behind = shape[len(shape) - len(other) :]
    return len(other) <= len(shape) and all(
        b == 1 or (a == b and isinstance(a, int)) for a, b in zip(behind, other, strict=True)
    )


drop_neutral = optional("drop_neutral")(patterns.apply)
