"""Non-maximum suppression by TVM's own operator, where it computes what ONNX asks for."""

from __future__ import annotations

import numpy as np

from serde.graph import DType, Value
from serde.idioms import number
from serde.recasts.loops import turning
from serde.recasts.older import older

from .recast import recasts
from .table import scalar, writes


@recasts("NonMaxSuppression")
def recast_non_max_suppression(
    g, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    """Boxes of corners, with scores above zero: TVM suppresses no others.

    It has no function for the shape of a result whose limits are numbers without axes: where
    there are as many classes or batches as the run tells, each is taken by itself.
    """
    limit, floor = 0 if most is None else number(most), number(least)
    if limit is not None and limit <= 0:
        return g.const(np.zeros((0, 3), np.int64))
    if not isinstance(boxes.known[1], int) or (overlap is not None and number(overlap) is None):
        return older(
            g, 10, "NonMaxSuppression", boxes, scores, most, overlap, least,
            center_point_box=center_point_box,
        )  # fmt: skip
    if not (boxes.is_static and scores.is_static):
        return _one_by_one(g, boxes, scores, most, overlap, least, center_point_box)
    if not center_point_box and floor is not None and floor >= 0:
        return None
    if floor is None or floor < 0:
        scores, least = _ranked(g, scores, least), g.const([0.0], DType.FLOAT32)
    boxes = _cornered(g, boxes) if center_point_box else boxes
    overlap = g.const([0.0], DType.FLOAT32) if overlap is None else overlap
    return g.NonMaxSuppression(boxes, scores, most, overlap, least)


def _one_by_one(g, boxes, scores, most, overlap, least, center_point_box: int):
    """What is found in each class of each batch, one after the other."""
    count, nothing = boxes.known[1], g.const(np.zeros((0, 3), np.int64))
    classes = g.Shape(scores, start=1, end=2)
    inner, (turn, on, rows) = turning(g, [nothing])
    rows.shape = (None, 3)
    at = inner.Unsqueeze(turn, [0])
    batch, own = inner.Div(at, classes), inner.Mod(at, classes)
    one = inner.Gather(boxes, batch, axis=0), inner.Gather(g.Reshape(scores, [-1, count]), at)
    one = inner.Reshape(one[0], [1, count, 4]), inner.Reshape(one[1], [1, 1, count])
    found = inner.NonMaxSuppression(*one, most, overlap, least, center_point_box=center_point_box)
    found = inner.Add(found, inner.Concat(batch, own, [0], axis=0))
    body = inner.build([on, inner.Concat(rows, found, axis=0)])
    total = g.Squeeze(g.Mul(g.Shape(scores, end=1), classes), [0])
    return g.Loop(total, None, nothing, body=body)


def _ranked(g, scores: Value, least: Value | None):
    """How many scores of a class come at or after each one; 0 for those that are not above the
    threshold.
    """
    count = g.Shape(scores, start=2)
    order = g.TopK(scores, count, axis=2, outputs=2)[1]
    falling = g.Cast(g.Range(g.Squeeze(count, [0]), 0, -1), to=1)
    ranks = g.ScatterElements(scores, order, g.Expand(falling, g.Shape(scores)), axis=2)
    if least is None:
        return ranks
    return g.Where(g.Greater(scores, g.Reshape(least, [1])), ranks, 0.0)


def _cornered(g, boxes: Value):
    """Corners of boxes given by their middle and size; one of a size below zero has no area."""
    middle = g.Slice(boxes, [0], [2], [2], [1])
    half = g.Mul(g.Max(g.Slice(boxes, [2], [4], [2], [1]), 0.0), 0.5)
    return g.Concat(g.Sub(middle, half), g.Add(middle, half), axis=2)


@writes("NonMaxSuppression", only={"center_point_box": (0,)})
def write_non_max_suppression(r, boxes, scores, most, overlap=None, least=None):
    """ONNX suppresses what overlaps more, TVM what overlaps as much; as many rows as it counts.

    No limit is TVM's limit of 0.
    """
    bound = np.float32(number(overlap) or 0)
    bound = max(np.nextafter(bound, np.float32(np.inf)), np.finfo(np.float32).tiny)
    floor = scalar(r, number(least), DType.FLOAT32)
    limit = r.reshape(most, newshape=()) if most.rank else most
    rows, count = r.vision.all_class_non_max_suppression(
        boxes, scores, limit, scalar(r, bound, DType.FLOAT32), floor, output_format="onnx",
        outputs=2,
    )  # fmt: skip
    if number(most) is None:
        some = r.greater(r.reshape(most, newshape=(1,)), scalar(r, 0, DType.INT64))
        count = r.multiply(count, r.cast(some, dtype="int64"))
    end = r.concatenate(count, r.const([3], DType.INT64), axis=0)
    zeros, ones = (r.const([v, v], DType.INT64) for v in (0, 1))
    return r.dyn.strided_slice(rows, zeros, end, ones)
