"""Nodes that only rearrange axes, one after the other, as one Reshape.

Its shape is a constant: sizes that are no numbers are one that is left to -1, or all of them those
in the same place. A Transpose that moves axes of size 1 only is such a node. What comes back to the
shape that it was made of is that. ``Unsqueeze`` after ``Unsqueeze`` is one of any shape.
"""

from __future__ import annotations

from typing import Any

from serde.ir.constants import make_integers
from serde.ir.graph import Graph, Node, Value
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns, merge
from serde.spec.traits import RESHAPES

REARRANGING = (*RESHAPES, "Transpose")
unsqueezes, patterns = Patterns(), Patterns()


@optional("merge_reshapes")
def merge_reshapes(graph: Graph) -> Graph:
    """Return ``graph`` with each chain of such nodes as one; nodes that others read too stay."""
    return patterns.apply(merge_unsqueezes(graph))


@unsqueezes("Unsqueeze")
def merge_unsqueeze(near: Neighbours, node: Node) -> Node | None:
    """The Unsqueeze of an Unsqueeze."""
    before = near.sole_maker(node, node.inputs[0], "Unsqueeze")
    added = _added_axes(before, node) if before is not None else None
    if before is None or added is None:
        return None
    axes = make_integers(f"{node.outputs[0].name}/axes", added)
    return merge(before, node, inputs=(before.inputs[0], axes), name=node.name)


@patterns(*REARRANGING)
def drop_round_trip(near: Neighbours, node: Node) -> Value | None:
    """What has the shape again that it had before two such nodes."""
    before = _find_reshaping(near, node)
    x = None if before is None else before.inputs[0]
    if x is None or x.shape != node.outputs[0].shape or _find_target(x, node.outputs[0]) is None:
        return None
    return x


@patterns(*REARRANGING)
def merge_reshape(near: Neighbours, node: Node) -> Node | None:
    """Two such nodes as a Reshape."""
    before, result = _find_reshaping(near, node), node.outputs[0]
    x = None if before is None else before.inputs[0]
    shape = None if x is None else _find_target(x, result)
    if before is None or shape is None:
        return None
    inputs = (x, make_integers(f"{result.name}/shape", shape))
    return merge(before, node, op="Reshape", inputs=inputs, attrs={"allowzero": 0}, name=node.name)


def _find_reshaping(near: Neighbours, node: Node) -> Node | None:
    """The node of this kind whose result ``node``, of this kind too, reads alone."""
    before = near.sole_maker(node, node.inputs[0], *REARRANGING)
    is_reshaping = before is not None and _is_reshaping(node) and _is_reshaping(before)
    return before if is_reshaping else None


def _added_axes(before: Node, node: Node) -> list[int] | None:
    """The axes that two nodes add together, None where they are not known."""
    (x, inner), outer = before.inputs, node.inputs[1]
    if x is None or x.shape is None or inner is None or outer is None:
        return None
    if inner.tensor is None or outer.tensor is None:
        return None
    count = len(inner.ints()) + len(outer.ints())
    outer_axes = {axis % (x.rank + count) for axis in outer.ints()}
    kept = [axis for axis in range(x.rank + count) if axis not in outer_axes]
    return sorted(outer_axes | {kept[axis % len(kept)] for axis in inner.ints()})


def _is_reshaping(node: Node) -> bool:
    """Whether a node gives the elements in the order in which it reads them."""
    x = node.inputs[0] if node.inputs and node.op in REARRANGING else None
    if node.domain or x is None or x.shape is None or node.outputs[0].shape is None:
        return False
    if node.op != "Transpose":
        return True
    perm: Any = node.attrs.get("perm") or tuple(reversed(range(x.rank)))
    kept = [axis for axis in perm if x.shape[axis] != 1]
    return kept == sorted(kept)


def _find_target(x: Value, y: Value) -> list[int] | None:
    """The shape that a Reshape of ``x`` to ``y`` is given, None where no constant is that."""
    before, after = x.ranked_shape, y.ranked_shape
    if 0 in before or 0 in after:
        return None
    shape = [d if isinstance(d, int) else -1 for d in after]
    if shape.count(-1) > 1:
        places = enumerate(zip(before, after, strict=False))
        for at in (i for i, (a, b) in places if isinstance(a, str) and a == b):
            shape[at] = 0  # as it is there; beside it none is left to -1, as it may be 0
    return shape if shape.count(-1) + (0 in shape) <= 1 else None


merge_unsqueezes = unsqueezes.apply
