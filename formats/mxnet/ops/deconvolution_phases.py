"""Transposed convolutions of images, added up in the order in which MXNet adds them up.

Every ``stride``-th row and column of the result, a phase of it, is a convolution of the image by
every ``stride``-th row and column of the kernel. oneDNN adds up 16 channels at a time, kernel row
by kernel row, and then those sums: as ONNX Runtime does in convolutions, not in transposed ones.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

BLOCK = 16  # channels that are added up at a time
STRIDES = (1, 2, 4)  # with others oneDNN adds some images up otherwise
TURN = [[-1, -1], [-(2**63), -(2**63)], [2, 3], [-1, -1]]  # an image by 180 degrees, for Slice


class Phase(NamedTuple):
    """Every ``stride``-th row: a convolution by every ``stride``-th of the kernel, with pads."""

    first: int
    stride: int
    pads: tuple[int, int]


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
    sizes = zip(frame["kernel_shape"], frame["pads"], adj, strict=False)
    by_axis = [phases_along(*size, stride) for size in sizes]
    return by_axis if all(by_axis) else []


def phases_along(kernel: int, pad: int, adj: int, stride: int) -> list[Phase]:
    """Row ``o`` of the result, which has ``stride`` times as many as the image, is the sum over
    ``t`` of row ``first + t * stride`` of the kernel times row ``shift + o // stride - t`` of the
    image.
    """
    if kernel - 2 * pad + adj != stride or kernel < 2 * stride:
        return []
    results = []
    for row in reversed(range(stride)):
        shift, first = divmod(row + pad, stride)
        taps = len(range(first, kernel, stride))
        results.append(Phase(first, stride, (shift, taps - 1 - shift)))
    return results


def convolve_phases(g, x: Value, w: Value, b: Value | None, by_axis: list[list[Phase]]):
    """The image is turned, as transposed convolutions run through it backwards."""
    x, parts = flip_image(g, x), []
    for rows, columns in product(*by_axis):
        starts, steps = zip(
            *((phase.first, phase.stride) for phase in (rows, columns)), strict=True
        )
        kernel = g.Transpose(
            g.Slice(w, starts, w.static_shape[2:], [2, 3], steps), perm=(1, 0, 2, 3)
        )
        pads = [phase.pads[end] for end in (0, 1) for phase in (rows, columns)]
        parts.append(g.Conv(x, kernel, b, kernel_shape=kernel.static_shape[2:], pads=pads))
    stride = by_axis[0][0].stride
    y = parts[0] if stride == 1 else g.DepthToSpace(g.Concat(*parts, axis=1), blocksize=stride)
    return flip_image(g, y)


def flip_image(g, x: Value):
    return g.Slice(x, *TURN)


def is_flipped(g, x: Value) -> bool:
    """Whether an image is what ``convolve_phases`` gives."""
    node = g.producer(x)
    if node is None or node.op != "Slice":
        return False
    return [v.tensor and v.array().tolist() for v in node.inputs[1:]] == TURN
