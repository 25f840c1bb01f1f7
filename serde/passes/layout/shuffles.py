"""Channels of images in another order, with channels last.

A Reshape splits channels into groups, a Transpose exchanges groups and their members, and a Reshape
restores the shape. Of an image with channels last that is one Transpose of the last two axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from serde.ir.constants import make_integers
from serde.ir.graph import Node, Shape, Value
from serde.rewrite.patterns import Neighbours, Patterns, join_sources

from .place import to_first, to_last

patterns = Patterns("Conv")


@patterns("Reshape")
def turn_shuffle(near: Neighbours, node: Node) -> Sequence[Node] | None:
    """The shuffle of an image between Transposes to channels last and back."""
    turned = near.sole_maker(node, node.inputs[0], "Transpose")
    split = None if turned is None else near.sole_maker(turned, turned.inputs[0], "Reshape")
    if turned is None or split is None or (x := split.inputs[0]) is None:
        return None
    result, groups = node.outputs[0], split.outputs[0].shape
    if x.shape is None or x.rank != 4 or result.shape != x.shape or groups is None:
        return None
    samples, channels, *sizes = x.shape
    if not isinstance(channels, int) or not all(isinstance(size, int) for size in sizes):
        return None
    count = groups[1] if len(groups) == 5 else None
    if samples is None or not isinstance(count, int) or channels % count:
        return None
    members = channels // count
    if groups != (samples, count, members, *sizes) or turned.attrs["perm"] != (0, 2, 1, 3, 4):
        return None
    pixels = math.prod(size for size in sizes if isinstance(size, int))
    steps = (
        ("Transpose", to_last(4), (samples, *sizes, channels)),
        ("Reshape", (0, pixels, count, members), (samples, pixels, count, members)),
        ("Transpose", (0, 1, 3, 2), (samples, pixels, members, count)),
        ("Reshape", (0, *sizes, channels), (samples, *sizes, channels)),
    )
    nodes, value = [], x
    for at, (op, numbers, shape) in enumerate(steps):
        step = Value(f"{result.name}/shuffle{at}", x.dtype, shape)
        nodes.append(_rearrange(node, op, value, numbers, step))
        value = step
    last = _rearrange(node, "Transpose", value, to_first(4), result)
    return [*nodes, replace(last, sources=join_sources(split, turned, node))]


def _rearrange(node: Node, op: str, x: Value, numbers: Shape, result: Value) -> Node:
    """A Transpose by a permutation, or a Reshape to a shape, in the place of a node."""
    if op == "Transpose":
        return replace(node, op=op, inputs=(x,), attrs={"perm": numbers}, outputs=(result,))
    shape = make_integers(f"{result.name}/shape", [d for d in numbers if isinstance(d, int)])
    return replace(node, op=op, inputs=(x, shape), outputs=(result,))


turn_shuffles = patterns.apply
