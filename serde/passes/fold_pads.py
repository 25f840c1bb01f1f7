"""A Pad of zeros as the pads of the convolutions that read it."""

from __future__ import annotations

from typing import Any

from serde.ir.graph import Node
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns, merge

patterns = Patterns("Pad")


@patterns("Conv")
def add_pads(near: Neighbours, node: Node) -> Node | None:
    """A convolution of what a Pad of constants makes, which others may read too."""
    pad = near.maker(node.inputs[0], "Pad")
    added = None if pad is None else _spatial_pads(pad)
    if pad is None or added is None or node.attrs.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    before: Any = node.attrs.get("pads") or (0,) * len(added)
    pads = tuple(a + b for a, b in zip(before, added, strict=True))
    inputs, attrs = (pad.inputs[0], *node.inputs[1:]), {**node.attrs, "pads": pads}
    return merge(pad, node, op="Conv", inputs=inputs, attrs=attrs, name=node.name)


def _spatial_pads(pad: Node) -> tuple[int, ...] | None:
    """The zeros that a Pad adds around images; None where it is another."""
    (x, pads, fill, axes) = (*pad.inputs, None, None)[:4]
    if pad.attrs.get("mode", "constant") != "constant" or axes is not None or x is None:
        return None
    if pads is None or pads.tensor is None:
        return None
    if fill is not None and (fill.tensor is None or fill.array().any()):
        return None
    listed = pads.ints()
    half = len(listed) // 2
    begin, end = listed[:half], listed[half:]
    if half < 3 or any((*begin[:2], *end[:2])) or min(listed) < 0:
        return None
    return (*begin[2:], *end[2:])


fold_pads = optional("fold_pads")(patterns.apply)
