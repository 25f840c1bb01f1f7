"""A Slice of a Slice along other axes, and of a Pad that it does not reach, as one Slice."""

from __future__ import annotations

from typing import NamedTuple

from serde.ir.constants import is_constant, make_integers
from serde.ir.graph import Node
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns, calls_of, merge


class Bounds(NamedTuple):
    """Starts, ends, axes and steps of a Slice."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    axes: tuple[int, ...]
    steps: tuple[int, ...]


patterns = Patterns()


@patterns("Slice")
def merge_slice(near: Neighbours, node: Node) -> Node | None:
    """A Slice before it that only Slices read, or a Pad of which it takes nothing."""
    before = near.maker(node.inputs[0], "Slice", "Pad")
    bounds = _bounds_of(node) if before is not None else None
    if bounds is None or before is None or calls_of(before) != calls_of(node):
        return None
    first = Bounds((), (), (), ()) if before.op == "Pad" else _bounds_of(before)
    if first is None or not (_reaches(bounds, before) or _are_apart(before, first, near)):
        return None
    both = Bounds(*(a + b for a, b in zip(first, bounds, strict=True)))
    stem = node.outputs[0].name
    operands = (make_integers(f"{stem}/{part}", of) for part, of in both._asdict().items())
    inputs = (before.inputs[0], *operands)
    return merge(before, node, op="Slice", inputs=inputs, attrs=node.attrs, name=node.name)


def _reaches(bounds: Bounds, pad: Node) -> bool:
    """Whether a Slice reads nothing that a Pad adds: it adds at the end of the one axis."""
    (x, pads, _, axes) = (*pad.inputs, None, None)[:4] if pad.op == "Pad" else (None,) * 4
    is_plain = x is not None and x.shape is not None and axes is None and len(bounds.axes) == 1
    if not is_plain or x is None or pads is None or pads.tensor is None:
        return False
    (axis,), (start,), (end,), _ = bounds.axes, bounds.starts, bounds.ends, bounds.steps
    size, added = x.ranked_shape[axis], pads.ints()
    others = [p for at, p in enumerate(added) if at != x.rank + axis]
    is_inside = isinstance(size, int) and 0 <= start <= end <= size
    return is_inside and not any(others) and added[x.rank + axis] >= 0


def _are_apart(before: Node, first: Bounds, near: Neighbours) -> bool:
    """Whether all that read a Slice are Slices along other axes."""
    x = before.outputs[0]
    readers = near.readers.get(x, ())
    if before.op != "Slice" or near.uses[x] != len(readers):
        return False
    others = [_bounds_of(n) if n.inputs[0] is x else None for n in readers]
    alike = all(calls_of(n) == calls_of(before) for n in readers)
    return alike and all(b is not None and set(b.axes).isdisjoint(first.axes) for b in others)


def _bounds_of(node: Node) -> Bounds | None:
    """The bounds of a Slice of constants, axes counted from the front; None of another node."""
    x, *operands = node.inputs if node.op == "Slice" and not node.domain else (None,)
    if x is None or len(operands) < 2 or not is_constant(operands) or x.shape is None:
        return None
    starts, ends = (v.ints() for v in operands[:2] if v is not None)
    count, rest = len(starts), (*operands[2:], None, None)[:2]
    axes = tuple(range(count)) if rest[0] is None else rest[0].ints()
    steps = (1,) * count if rest[1] is None else rest[1].ints()
    return Bounds(starts, ends, tuple(a % x.rank for a in axes), steps)


merge_slices = optional("merge_slices")(patterns.apply)
