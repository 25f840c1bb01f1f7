"""Transposed convolutions of images, added up in the order in which MXNet adds them up.

oneDNN adds up 16 channels at a time, kernel row by kernel row, and then those sums: as ONNX Runtime
does in convolutions, not in transposed ones.
"""

from __future__ import annotations

from serde.decompositions.transposed_convolution import (
    FROM_THE_FRONT,
    Phase,
    convolve_phases,
    find_phases,
    reverse,
)
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

BLOCK = 16  # channels that are added up at a time
STRIDES = (1, 2, 4)  # with others oneDNN adds some images up otherwise
# The bounds of the Slice that turns an image by 180 degrees.
TURN = [[-1, -1], [FROM_THE_FRONT] * 2, [2, 3], [-1, -1]]


def phases(x: Value, w: Value, frame, adj: Ints) -> list[list[Phase]]:
    """The phases of rows and those of columns, the last first, as the image is turned.

    There are none of what MXNet adds up otherwise, at least for some images.
    """
    stride, *others = frame["strides"]
    in_blocks = all(isinstance(n, int) and n % BLOCK == 0 for n in w.ranked_shape[:2])
    if not in_blocks or x.rank != 4 or x.type is not DType.FLOAT32:
        return []
    if others != [stride] or stride not in STRIDES or {*frame["dilations"]} != {1}:
        return []
    kernel = frame["kernel_shape"]
    if min(kernel) < 2 * stride:
        return []
    sizes = zip(kernel, frame["pads"], adj, strict=False)
    by_axis = [find_phases(k, (pad, pad), more, stride) for k, pad, more in sizes]
    return [[p.run_forwards for p in reversed(each)] for each in by_axis] if all(by_axis) else []


def convolve_turned(g, x: Value, w: Value, b: Value | None, by_axis: list[list[Phase]]) -> Value:
    """The image is turned, as transposed convolutions run through it backwards."""
    return reverse(g, convolve_phases(g, reverse(g, x, [2, 3]), w, b, *by_axis), [2, 3])


def is_flipped(g, x: Value) -> bool:
    """Whether an image is what ``convolve_turned`` gives."""
    node = g.maker(x, "Slice")
    return node is not None and [v.tensor and v.array().tolist() for v in node.inputs[1:]] == TURN
