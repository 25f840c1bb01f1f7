"""A reduction of what the same one reduced along other axes, as one.

A mean of means is that of all elements: each is of as many.
"""

from __future__ import annotations

from serde.ir.constants import make_integers
from serde.ir.graph import DType, Node
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns, merge
from serde.spec.traits import EXTREMES

PRECISE = frozenset({DType.FLOAT32, DType.FLOAT64})  # elements of which sums are merged
patterns = Patterns()


@patterns(*EXTREMES, "ReduceL1", "ReduceMean", "ReduceProd", "ReduceSum")
def merge_reduction(near: Neighbours, node: Node) -> Node | None:
    """A reduction that nothing else reads, of the same kind, is done together with ``node``."""
    before = near.sole_maker(node, node.inputs[0], node.op)
    if before is None:
        return None
    x, keepdims = before.inputs[0], node.attrs.get("keepdims", 1)
    first, axes = find_reduced_axes(before), find_reduced_axes(node)
    is_exact = node.op in EXTREMES or (x is not None and x.dtype in PRECISE)
    if x is None or first is None or axes is None or not is_exact:
        return None
    if before.attrs.get("keepdims", 1) != keepdims:
        return None
    left = [a for a in range(x.rank) if keepdims or a not in first]
    reduced = sorted({*first, *(left[a] for a in axes)})
    operand = make_integers(f"{node.outputs[0].name}/axes", reduced)
    return merge(before, node, inputs=(x, operand), attrs=node.attrs, name=node.name)


def find_reduced_axes(node: Node) -> set[int] | None:
    """The axes that a reduction names, from the front; None where they are computed, or all are."""
    x, axes = (*node.inputs, None)[:2]
    if x is None or x.shape is None or axes is None or axes.tensor is None:
        return None
    return {axis % x.rank for axis in axes.ints()} or None


merge_reductions = optional("merge_reductions")(patterns.apply)
