"""What detectors compute, in MXNet and in TVM, which has it from there: anchors, boxes in terms of
them, and how alike two images are.

Boxes lie along the last axis: the left, top, right and bottom of each, or its center and size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from serde.ir import arrays
from serde.ir.graph import Value


def split_corners(g, boxes: Value):
    """The first and the last two of the four coordinates along the last axis."""
    last = boxes.rank - 1
    return g.slice_axis(boxes, last, 0, 2), g.slice_axis(boxes, last, 2, 4)


def to_center(g, boxes: Value):
    """Left, top, right and bottom as center, width and height."""
    low, high = split_corners(g, boxes)
    return g.Concat(g.Mul(g.Add(low, high), 0.5), g.Sub(high, low), axis=boxes.rank - 1)


def decode_boxes(g, x: Value, anchors: Value, spreads: Sequence[float], clip=-1.0):
    """Moves of the center and logarithms of the size, in terms of anchors, as corners."""
    if set(spreads) != {1.0}:
        x = g.Mul(x, np.array(spreads, x.type.numpy))
    (move, growth), (middle, size) = split_corners(g, x), split_corners(g, anchors)
    middle = g.Add(g.Mul(move, size), middle)
    reach = g.Mul(g.Exp(g.Min(growth, clip) if clip > 0 else growth), g.Mul(size, 0.5))
    return g.Concat(g.Sub(middle, reach), g.Add(middle, reach), axis=x.rank - 1)


def make_anchors(stride: int, scales: Sequence[float], ratios: Sequence[float]) -> Any:
    """The boxes around the first place, sizes rounded as MXNet does (proposal-inl.h)."""
    arrays.charge_elements(len(ratios), len(scales), 4)
    middle, anchors = (stride - 1) / 2, []
    for ratio in ratios:
        width = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        height = math.floor(width * ratio + 0.5)
        reach = (np.multiply.outer(scales, (width, height)) - 1) / 2
        anchors.append(np.concatenate([middle - reach, middle + reach], 1))
    return np.concatenate(anchors).astype("float32")


def move_boxes(g, boxes: Value, deltas: Value):
    """Both corners of boxes of pixels, which the last belongs to, moved and sized."""
    (low, high), (move, grow) = split_corners(g, boxes), split_corners(g, deltas)
    size = g.Add(g.Sub(high, low), 1.0)
    middle = g.Add(low, g.Mul(g.Sub(size, 1.0), 0.5))
    at = g.Add(g.Mul(move, size), middle)
    reach = g.Mul(g.Sub(g.Mul(g.Exp(grow), size), 1.0), 0.5)
    return g.Sub(at, reach), g.Add(at, reach)


def correlate(
    g, a: Value, b: Value, kernel_size: int, max_displacement: int, stride1: int, stride2: int,
    is_multiply: bool,
):  # fmt: skip
    """How alike two padded images are when one is moved: one channel a displacement, row by row."""
    still = crop_margin(g, a, max_displacement, 0, 0)
    reach = max_displacement // stride2
    moves = [i * stride2 for i in range(-reach, reach + 1)]
    planes = []
    for down, right in product(moves, moves):
        moved = crop_margin(g, b, max_displacement, down, right)
        alike = g.Mul(still, moved) if is_multiply else g.Abs(g.Sub(still, moved))
        planes.append(g.ReduceMean(alike, [1], keepdims=1))
    y = g.Concat(*planes, axis=1)
    if (kernel_size, stride1) == (1, 1):
        return y
    return g.AveragePool(y, kernel_shape=(kernel_size,) * 2, strides=(stride1,) * 2)


def crop_margin(g, x: Value, margin: int, down: int, right: int):
    """``x`` without a margin, moved within it."""
    starts = [margin + down, margin + right]
    ends = [down - margin or 2**31 - 1, right - margin or 2**31 - 1]
    return g.Slice(x, starts, ends, [2, 3], [1, 1])
