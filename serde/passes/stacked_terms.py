"""Sums and extremes along an axis that tensors were stacked along, as those of the tensors."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.geometry import axes_of
from serde.ir.graph import DType, Node, Value
from serde.passes.merge_reductions import find_reduced_axes
from serde.rewrite.patterns import Neighbours, Patterns, join_sources

REDUCED = {"ReduceMax": "Max", "ReduceMean": "Mean", "ReduceMin": "Min", "ReduceSum": "Sum"}
patterns = Patterns("Concat")


@patterns(*REDUCED)
def add_stacked(near: Neighbours, node: Node) -> Node | None:
    """``stack(tensors, axis).sum(axis)`` as a sum of the tensors."""
    stack = near.sole_maker(node, node.inputs[0], "Concat")
    axes = None if stack is None else find_reduced_axes(node)
    if stack is None or axes is None or node.outputs[0].dtype is not DType.FLOAT32:
        return None
    rank, axis = stack.outputs[0].rank, stack.attrs["axis"]
    is_kept = node.outputs[0].rank == rank
    if is_kept or not isinstance(axis, int) or axes != {*axes_of([axis], rank)}:
        return None
    terms: list[Value] = []
    makers = [near.maker(part, "Unsqueeze") for part in stack.inputs]
    for maker in makers:
        added = None if maker is None else maker.inputs[1]
        if maker is None or added is None or added.tensor is None:
            return None
        term = maker.inputs[0]
        if term is None or term.shape != node.outputs[0].shape:
            return None
        if {*axes_of(added.ints(), rank)} != axes:
            return None
        terms.append(term)
    sources = join_sources(*[m for m in makers if m is not None], stack, node)
    return replace(node, op=REDUCED[node.op], inputs=tuple(terms), attrs={}, sources=sources)


add_stacked_terms = patterns.apply
