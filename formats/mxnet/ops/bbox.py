"""Boxes of detectors: overlap, coding, anchors."""

from __future__ import annotations

import math

import numpy as np

from serde.decompositions.detectors import decode_boxes, split_corners, to_center
from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType, Value
from serde.spec.expressions import Size, lowest_value

from ..rules import Floats, note_old_meaning, reads, reads_between
from .shared_attributes import with_attributes_of

FORMATS = ("corner", "center")


def to_corner(g, boxes: Value):
    """Centre, width and height as left, top, right and bottom."""
    middle, size = split_corners(g, boxes)
    reach = g.Mul(size, 0.5)
    return g.Concat(g.Sub(middle, reach), g.Add(middle, reach), axis=boxes.rank - 1)


def area(g, low: Value, high: Value):
    """Width times height, 0 where either is negative."""
    return g.ReduceProd(g.Max(g.Sub(high, low), 0.0), [low.rank - 1], keepdims=0)


def compute_iou(g, a: Value, b: Value):
    """Intersection over union of all of ``a`` with all of ``b``; 0 where the union is nothing."""
    a = g.Unsqueeze(a, list(range(a.rank - 1, a.rank + b.rank - 2)))
    (low_a, high_a), (low_b, high_b) = split_corners(g, a), split_corners(g, b)
    inner = area(g, g.Max(low_a, low_b), g.Min(high_a, high_b))
    union = g.Sub(g.Add(area(g, low_a, high_a), area(g, low_b, high_b)), inner)
    nothing = g.LessOrEqual(union, 0.0)
    return g.Where(nothing, g.scalar(0, a), g.Div(inner, g.Where(nothing, g.scalar(1, a), union)))


@reads("_contrib_box_iou")
def read_box_iou(g, lhs, rhs, *, format="corner"):
    require(format in FORMATS, f"format={format!r} is unknown")
    if format == "center":
        lhs, rhs = to_corner(g, lhs), to_corner(g, rhs)
    return compute_iou(g, lhs, rhs)


@reads("_contrib_box_decode")
def read_box_decode(
    g, x, anchors, *, std0=1.0, std1=1.0, std2=1.0, std3=1.0, clip=-1.0, format="center"
):
    """Offsets from anchors as corners; a positive ``clip`` bounds the logarithm of the sizes."""
    require(format in FORMATS, f"format={format!r} is unknown")
    anchors = anchors if format == "center" else to_center(g, anchors)
    return decode_boxes(g, x, anchors, (std0, std1, std2, std3), clip)


@reads("_contrib_MultiBoxPrior")
def read_multibox_prior(
    g, x, *, sizes: Floats = (1.0,), ratios: Floats = (1.0,), clip=False,
    steps: Floats = (-1.0, -1.0), offsets: Floats = (0.5, 0.5),
):  # fmt: skip
    """At each place of the image one box a size and one a further ratio, in parts of the image."""
    forms = [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
    reach = np.array([(s * math.sqrt(r) / 2, s / math.sqrt(r) / 2) for s, r in forms], "float32")
    image = x.ranked_shape[2:]
    if all(isinstance(size, int) for size in image):
        known = fixed_anchors(image, reach, steps, offsets)
        return g.const(known.clip(0, 1) if clip else known, name="anchors")
    boxes = anchors(g, [g.size_of(x, axis) for axis in (2, 3)], reach, steps, offsets)
    return g.Clip(boxes, 0.0, 1.0) if clip else boxes


@reads_between(0, 10500)("_contrib_MultiBoxPrior")
@with_attributes_of(read_multibox_prior)
def read_old_multibox_prior(g, x, *, ratios: Floats = (1.0,), **attrs):
    """Before MXNet 1.5 the boxes of the sizes are squares, whatever the first ratio is."""
    if ratios[0] != 1:
        note_old_meaning(g, "1.5")
    return read_multibox_prior(g, x, ratios=(1.0, *ratios[1:]), **attrs)


@reads_between(0, 10000)("_contrib_MultiBoxPrior")
@with_attributes_of(read_multibox_prior)
def read_oldest_multibox_prior(
    g, x, *, sizes: Floats = (1.0,), ratios: Floats = (1.0,), clip=False, **attrs
):
    """Before MXNet 1.0 they are squares in parts of the image, not in pixels."""
    height, width = x.ranked_shape[2:]
    fits = isinstance(height, int) and isinstance(width, int)
    require(fits, "needs to know the size of the image. Give it: --input data=1,3,300,300, say")
    if height != width or ratios[0] != 1:
        note_old_meaning(g, "1.0")
    forms = [(s, 1.0) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
    reach = [(s * math.sqrt(r) / 2 * width / height, s / math.sqrt(r) / 2) for s, r in forms]
    known = fixed_anchors((height, width), np.array(reach, "float32"), **attrs)
    return g.const(known.clip(0, 1) if clip else known, name="anchors")


def fixed_anchors(image, reach, steps: Floats, offsets: Floats):
    """All boxes around the places of an image of known size."""
    lines = [
        ((arrays.arange(n) + o) * (s if s > 0 else 1 / n)).astype("float32")
        for n, s, o in zip(image, steps, offsets, strict=True)
    ]
    arrays.charge_elements(*image, len(reach), 4)
    y, x = arrays.meshgrid(*lines, indexing="ij")
    middle = np.stack([x, y], -1)[:, :, None]
    reach = reach * np.array([image[0] / image[1], 1], "float32")
    return np.concatenate([middle - reach, middle + reach], -1).reshape(1, -1, 4)


def anchors(g, image: list[Size], reach, spacing: Floats, offsets: Floats):
    """All boxes around the places of an image of dynamic size."""
    height, width = (g.cast(g.shape_from([size]), DType.FLOAT32) for size in image)
    y, x = (
        centers(g, size, count, step, offset)
        for size, count, step, offset in zip(image, (height, width), spacing, offsets, strict=True)
    )
    grid = g.shape_from([*image, 1])
    middle = [g.Expand(g.Unsqueeze(v, axes), grid) for v, axes in ((x, [0, 2]), (y, [1, 2]))]
    middle = g.Unsqueeze(g.Concat(*middle, axis=2), [2])
    reach = g.Mul(reach, g.Concat(g.Div(height, width), [1.0], axis=0))
    boxes = g.Concat(g.Sub(middle, reach), g.Add(middle, reach), axis=3)
    return g.Reshape(boxes, [1, -1, 4])


def centers(g, size: Size, count: Value, step: float, offset: float):
    """The middles of the places along an axis."""
    line = g.Add(g.cast(g.index_range(size), DType.FLOAT32), offset)
    return g.Mul(line, step) if step > 0 else g.Div(line, count)


@reads("_contrib_box_encode")
def read_box_encode(g, samples, matches, anchors, refs, means, stds):
    """How far matched boxes are from the anchors, and where samples count: zeros elsewhere."""
    index = g.Unsqueeze(g.Max(g.cast(matches, DType.INT64), 0), [2])
    boxes = to_center(g, g.GatherND(refs, index, batch_dims=1))
    (at, size), (base, unit) = split_corners(g, boxes), split_corners(g, to_center(g, anchors))
    coded = g.Concat(g.Div(g.Sub(at, base), unit), g.Log(g.Div(size, unit)), axis=2)
    counts = g.Expand(g.Unsqueeze(g.Greater(samples, 0.5), [2]), g.Shape(anchors))
    away = g.Div(g.Sub(coded, means), stds)
    return g.Where(counts, away, g.scalar(0, away)), g.cast_like(counts, away)


@reads("_contrib_bipartite_matching")
def read_bipartite_matching(g, x, *, is_ascend=False, threshold: float, topk=-1):
    """The partner of each row and of each column, -1 where it has none; the best pairs first.

    MXNet stops behind ``topk`` pairs and one more.
    """
    rows, columns = (g.size_of(x, x.rank - n) for n in (2, 1))
    scores = g.Reshape(x, g.shape_from([-1, rows, columns]))
    scores, least = (g.Neg(scores), -threshold) if is_ascend else (scores, threshold)
    never = g.scalar(lowest_value(x), x)
    most, lines = g.Min(*(g.shape_from([s]) for s in (rows, columns))), g.Shape(scores, end=1)
    most = g.Min(most, [topk + 1]) if topk > 0 else most
    none = [g.Expand(g.scalar(-1, x), g.Concat(lines, g.shape_from([s]), axis=0))
            for s in (rows, columns)]  # fmt: skip

    def step(g, _, go, left, *partners):
        flat = g.Reshape(left, [0, -1])
        best = g.ArgMax(flat, axis=1, keepdims=1)
        real = g.Greater(g.GatherElements(flat, best, axis=1), g.scalar(least, x))
        width = g.shape_from([columns])
        pair = g.Div(best, width), g.Mod(best, width)
        hits = [g.And(g.Equal(g.index_range(s), at), real)
                for s, at in zip((rows, columns), pair, strict=True)]  # fmt: skip
        carry = [g.Where(hit, g.cast_like(other, x), old)
                 for hit, other, old in zip(hits, pair[::-1], partners, strict=True)]  # fmt: skip
        matched = g.Or(g.Unsqueeze(hits[0], [2]), g.Unsqueeze(hits[1], [1]))
        return go, g.Where(matched, never, left), *carry

    _, *done = g.loop(step, g.Squeeze(most, [0]), g.const(True), scores, *none)
    batch = [g.Shape(x, end=x.rank - 2)] if x.rank > 2 else []
    return tuple(
        g.Reshape(v, g.Concat(*batch, g.shape_from([s]), axis=0))
        for v, s in zip(done, (rows, columns), strict=True)
    )
