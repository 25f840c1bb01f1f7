"""Numbers for the pads of ``auto_pad`` where sizes have names.

With a stride of 2 the pads depend on whether a size is even, but at one end only. The windows of
``SAME_UPPER`` begin at the same place before the data where the kernel is even, and end at the same
place behind it where the kernel is odd: there the image is reversed, and so are its weights and the
result. What is padded at the other end beyond need, no window reaches.
"""

from __future__ import annotations

from typing import Any

from serde.decompositions.transposed_convolution import reverse
from serde.ir.builder import Builder
from serde.ir.geometry import same_pads
from serde.ir.graph import Dim, Graph, Node, Value
from serde.rewrite.driver import again
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.traits import WINDOWS

UNLIKE = {"ConvTranspose", "QLinearConv"}  # with pads of the result, or weights further behind
LARGEST_STRIDE = 2
EVEN_AND_ODD = (1 << 20, (1 << 20) + 1)


def settle_same_pads(graph: Graph) -> Graph:
    """Return an IR graph in which pads are numbers wherever strides are 2 at most.

    Layers of other strides, and those that return places, keep ``auto_pad``.
    """
    if not any(map(_is_open, graph.nodes)):
        return graph
    return RuleTable("pads", fallback=_settle).rewrite(graph, OnnxBuilder(graph.name))


def _is_open(node: Node) -> bool:
    """Whether a node's pads are not known, and might be."""
    is_window = node.op in WINDOWS - UNLIKE and not node.domain and len(node.outputs) == 1
    if not is_window or "kernel_shape" not in node.attrs:
        return False
    if not str(node.attrs.get("auto_pad", "")).startswith("SAME"):
        return False
    return node.inputs[0] is not None and node.inputs[0].shape is not None


def _settle(g: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    x = inputs[0]
    if not _is_open(node) or x is None:
        return again(g, node, inputs)
    attrs: dict[str, Any] = {**node.attrs}
    is_upper = attrs.pop("auto_pad") == "SAME_UPPER"
    names = ("kernel_shape", "strides", "dilations")
    ones = (1,) * len(attrs["kernel_shape"])
    frame = zip(*(attrs.get(name) or ones for name in names), strict=True)
    ends, reversed_axes = [], []
    for axis, (kernel, stride, dilation) in enumerate(frame, 2):
        pads = _find_pads(x.ranked_shape[axis], kernel, stride, dilation, is_upper)
        if pads is None:
            return again(g, node, inputs)
        is_reversed, *both = pads
        ends.append(both)
        reversed_axes += [axis] * is_reversed
    attrs["pads"] = [begin for begin, _ in ends] + [end for _, end in ends]
    first = [v and reverse(g, v, reversed_axes) for v in inputs[:2]]
    return reverse(g, g.emit(node.op, [*first, *inputs[2:]], attrs), reversed_axes)


def _find_pads(
    size: Dim, kernel: int, stride: int, dilation: int, is_upper: bool
) -> tuple[bool, int, int] | None:
    """Whether an axis is to be reversed, and its pads; None where no numbers are right."""
    if isinstance(size, int):
        return (False, *same_pads(size, kernel, stride, dilation, is_upper))
    if stride > LARGEST_STRIDE:
        return None
    pads = [same_pads(n, kernel, stride, dilation, is_upper) for n in EVEN_AND_ODD]
    most = [max(begin_or_end) for begin_or_end in zip(*pads, strict=True)]
    begins_alike = pads[0][0] == pads[1][0]
    return (False, *most) if begins_alike else (True, *most[::-1])
