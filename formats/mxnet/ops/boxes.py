"""Boxes of detectors: overlap, coding, anchors."""

from __future__ import annotations

import math

import numpy as np

from serde.errors import require
from serde.graph import DType, Value
from serde.idioms import Size, cast, scalar, shape_from, size_of, slice_axis, steps

from ..rules import Floats, reads

FORMATS = ("corner", "center")


def corners(g, boxes: Value):
    """The four coordinates along the last axis, one by one, with an axis of size 1 left."""
    last = boxes.rank - 1
    return [slice_axis(g, boxes, last, i, i + 1) for i in range(4)]


def to_corner(g, boxes: Value):
    """Centre, width and height as left, top, right and bottom."""
    x, y, w, h = corners(g, boxes)
    half, tall = g.Mul(w, 0.5), g.Mul(h, 0.5)
    last = boxes.rank - 1
    return g.Concat(g.Sub(x, half), g.Sub(y, tall), g.Add(x, half), g.Add(y, tall), axis=last)


def to_center(g, boxes: Value):
    left, top, right, bottom = corners(g, boxes)
    middle = [g.Mul(g.Add(a, b), 0.5) for a, b in ((left, right), (top, bottom))]
    return g.Concat(*middle, g.Sub(right, left), g.Sub(bottom, top), axis=boxes.rank - 1)


def overlap(g, a: Value, b: Value):
    """Intersection over union of all of ``a`` with all of ``b``; 0 where the union is nothing."""
    a = g.Unsqueeze(a, list(range(a.rank - 1, a.rank + b.rank - 2)))
    la, ta, ra, ba = (g.Squeeze(v, [v.rank - 1]) for v in corners(g, a))
    lb, tb, rb, bb = (g.Squeeze(v, [v.rank - 1]) for v in corners(g, b))
    width = g.Max(g.Sub(g.Min(ra, rb), g.Max(la, lb)), 0.0)
    height = g.Max(g.Sub(g.Min(ba, bb), g.Max(ta, tb)), 0.0)
    inner = g.Mul(width, height)
    area_a, area_b = (
        g.Mul(g.Max(g.Sub(right, left), 0.0), g.Max(g.Sub(bottom, top), 0.0))
        for left, top, right, bottom in ((la, ta, ra, ba), (lb, tb, rb, bb))
    )
    union = g.Sub(g.Add(area_a, area_b), inner)
    nothing = g.LessOrEqual(union, 0.0)
    return g.Where(nothing, scalar(g, 0, a), g.Div(inner, g.Where(nothing, scalar(g, 1, a), union)))


@reads("_contrib_box_iou")
def read_box_iou(g, lhs, rhs, *, format="corner"):
    require(format in FORMATS, f"format={format!r} is unknown")
    if format == "center":
        lhs, rhs = to_corner(g, lhs), to_corner(g, rhs)
    return overlap(g, lhs, rhs)


@reads("_contrib_box_decode")
def read_box_decode(
    g, x, anchors, *, std0=1.0, std1=1.0, std2=1.0, std3=1.0, clip=-1.0, format="center"
):
    """Offsets from anchors as corners; a positive ``clip`` bounds the logarithm of the sizes."""
    require(format in FORMATS, f"format={format!r} is unknown")
    anchors = anchors if format == "center" else to_center(g, anchors)
    return decoded(g, x, anchors, (std0, std1, std2, std3), clip)


def decoded(g, x: Value, anchors: Value, spreads: Floats, clip=-1.0):
    moves = [g.Mul(v, s) for v, s in zip(corners(g, x), spreads, strict=True)]
    ax, ay, aw, ah = corners(g, anchors)
    cx, cy = (g.Add(g.Mul(m, s), a) for m, s, a in zip(moves, (aw, ah), (ax, ay), strict=False))
    logs = [g.Min(m, clip) if clip > 0 else m for m in moves[2:]]
    halves = [g.Mul(g.Mul(g.Exp(m), s), 0.5) for m, s in zip(logs, (aw, ah), strict=True)]
    sides = [op(c, h) for op in (g.Sub, g.Add) for c, h in zip((cx, cy), halves, strict=True)]
    return g.Concat(*sides, axis=x.rank - 1)


@reads("_contrib_MultiBoxPrior")
def read_multibox_prior(
    g, x, *, sizes: Floats = (1.0,), ratios: Floats = (1.0,), clip=False,
    steps: Floats = (-1.0, -1.0), offsets: Floats = (0.5, 0.5),
):  # fmt: skip
    """At each place of the image one box a size and one a further ratio, in parts of the image."""
    height, width = (count(g, size_of(g, x, axis)) for axis in (2, 3))
    rows = centers(g, size_of(g, x, 2), steps[0], offsets[0])
    columns = centers(g, size_of(g, x, 3), steps[1], offsets[1])
    forms = [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
    wide = np.array([s * math.sqrt(r) / 2 for s, r in forms], "float32")
    tall = np.array([s / math.sqrt(r) / 2 for s, r in forms], "float32")
    half = g.Mul(g.Div(height, width), wide)
    middle_x, middle_y = g.Unsqueeze(columns, [0, 2]), g.Unsqueeze(rows, [1, 2])
    sides = [op(m, h) for op in (g.Sub, g.Add) for m, h in ((middle_x, half), (middle_y, tall))]
    shape = shape_from(g, [size_of(g, x, 2), size_of(g, x, 3), len(forms)])
    boxes = g.Concat(*(g.Unsqueeze(g.Expand(v, shape), [3]) for v in sides), axis=3)
    boxes = g.Reshape(boxes, [1, -1, 4])
    return g.Clip(boxes, 0.0, 1.0) if clip else boxes


def count(g, size: Size):
    """A size as a float."""
    return cast(g, shape_from(g, [size]), DType.FLOAT32)


def centers(g, size: Size, step: float, offset: float):
    """The middles of the places along an axis."""
    line = g.Add(cast(g, steps(g, size), DType.FLOAT32), offset)
    return g.Mul(line, step) if step > 0 else g.Div(line, count(g, size))
