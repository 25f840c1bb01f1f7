"""Boxes that a network proposes: decoded from anchors, or chosen for each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.decompositions.detectors import make_anchors, move_boxes
from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType, Value

from ..rules import Floats, reads
from .layouts import require_static_sizes
from .nms import column, order_kept_first, reorder_rows, select_boxes, sort_boxes, sort_positions


def shift_anchors(anchors: np.ndarray[Any, Any], stride: int, height: int, width: int):
    """The corners of all anchors at all places, (height, width, anchors, 4)."""
    arrays.charge_elements(height, width, anchors.size)
    y, x = arrays.meshgrid(
        arrays.arange(height) * stride, arrays.arange(width) * stride, indexing="ij"
    )
    return (np.stack([x, y, x, y], -1)[:, :, None] + anchors).astype(np.float32)


def compute_overlap(g, boxes: Value, more: float):
    """The overlap of all pairs of (B, N, 4) boxes, and the areas of one and the other."""
    low, high = column(g, boxes, 0, 2), column(g, boxes, 2, 2)
    span = g.Add(g.Sub(
        g.Min(g.Unsqueeze(high, [1]), g.Unsqueeze(high, [2])),
        g.Max(g.Unsqueeze(low, [1]), g.Unsqueeze(low, [2])),
    ), more)  # fmt: skip
    span = g.Max(span, 0.0)
    extent = g.Add(g.Sub(high, low), more)
    area = g.Mul(column(g, extent, 0), column(g, extent, 1))
    both = g.Mul(column(g, span, 0), column(g, span, 1))
    return both, g.Unsqueeze(area, [2]), g.Unsqueeze(area, [1])


def clip_to_image(g, corners: Value, sizes: Value):
    """Corners moved into an image; ``sizes`` (B, 1, 3) begins with height and width."""
    most = g.Sub(g.Gather(sizes, [1, 0, 1, 0], axis=2), 1.0)
    return g.Max(g.Min(corners, most), 0.0)


@reads("vision.proposal")
def read_proposal(
    g, scores, moves, sizes, *, scales: Floats = (4.0, 8.0, 16.0, 32.0),
    ratios: Floats = (0.5, 1.0, 2.0), feature_stride=16, threshold=0.7, rpn_pre_nms_top_n=6000,
    rpn_post_nms_top_n=300, rpn_min_size=16, iou_loss=False,
):  # fmt: skip
    """The best boxes of each image, over and over until there are as many as asked for."""
    kinds, (height, width) = len(scales) * len(ratios), require_static_sizes(scores)
    anchors = make_anchors(feature_stride, scales, ratios)
    base = g.const(shift_anchors(anchors, feature_stride, height, width).reshape(1, -1, 4))
    deltas = g.Transpose(g.Reshape(moves, [0, kinds, 4, height, width]), perm=(0, 3, 4, 1, 2))
    deltas = g.Reshape(deltas, [0, -1, 4])
    sizes = g.Unsqueeze(sizes, [1])
    corners = g.Add(base, deltas) if iou_loss else g.Concat(*move_boxes(g, base, deltas), axis=2)
    boxes = clip_to_image(g, corners, sizes)
    score = g.Transpose(g.Slice(scores, [kinds], [2 * kinds], [1], [1]), perm=(0, 2, 3, 1))
    score = g.Where(is_outside_image(g, sizes, feature_stride, height, width), -1.0, score)
    score, boxes = discard_small(g, g.Reshape(score, [0, -1]), boxes, sizes, rpn_min_size)
    count = height * width * kinds
    first = min(rpn_pre_nms_top_n, count) if rpn_pre_nms_top_n > 0 else count
    order = g.Slice(sort_positions(g, score), [0], [first], [1], [1])
    boxes = reorder_rows(g, boxes, order)
    both, one, other = compute_overlap(g, boxes, 1.0)
    conflicts = g.Greater(g.Div(both, g.Sub(g.Add(one, other), both)), threshold)
    every = g.Equal(order, order)
    _, kept = select_boxes(g, conflicts, every, every, g.const(-1, DType.INT32))
    front, _, kept_count = order_kept_first(g, kept)
    places = g.Mod(g.const(arrays.arange(rpn_post_nms_top_n)[None]), kept_count)
    rows = reorder_rows(g, reorder_rows(g, boxes, front), places)
    which = g.Reshape(g.cast(g.index_range(g.size_of(rows, 0)), DType.FLOAT32), [-1, 1, 1])
    which = g.Expand(which, [1, rpn_post_nms_top_n, 1])
    return g.Reshape(g.Concat(which, rows, axis=2), [-1, 5])


def is_outside_image(g, sizes: Value, stride: int, height: int, width: int):
    """Which places lie outside an image, (B, height, width, 1)."""
    real = g.cast(g.Div(sizes, float(stride)), DType.INT32)
    down, across = (g.Reshape(column(g, real, i), [-1, 1, 1, 1]) for i in (0, 1))
    rows = g.const(arrays.arange(height, dtype=np.int32).reshape(1, -1, 1, 1))
    columns = g.const(arrays.arange(width, dtype=np.int32).reshape(1, 1, -1, 1))
    return g.Or(g.GreaterOrEqual(rows, down), g.GreaterOrEqual(columns, across))


def discard_small(g, score: Value, boxes: Value, sizes: Value, least: int):
    """Boxes that are too small are made larger, and have a score of -1."""
    least_size = g.Mul(column(g, sizes, 2), float(least))
    span = g.Add(g.Sub(column(g, boxes, 2, 2), column(g, boxes, 0, 2)), 1.0)
    small = g.Less(g.Min(column(g, span, 0), column(g, span, 1)), least_size)
    half = g.Unsqueeze(g.Mul(least_size, 0.5), [2])
    wider = g.Add(boxes, g.Mul(half, g.const(np.float32([-1, -1, 1, 1]))))
    boxes = g.Where(g.Unsqueeze(small, [2]), wider, boxes)
    return g.Where(small, -1.0, score), boxes


@reads("vision.regular_non_max_suppression")
def read_regular_non_max_suppression(
    g, boxes, scores, *, max_detections_per_class: int, max_detections: int, num_classes: int,
    iou_threshold: float, score_threshold: float,
):  # fmt: skip
    """The best boxes of each class, then the best of these; zeros behind them."""
    count, kinds = require_static_sizes(scores, 1)
    require(num_classes <= kinds, f"num_classes={num_classes} of {kinds}")
    kept = g.Slice(scores, [kinds - num_classes], [kinds], [2], [1])
    flat = g.Reshape(g.Transpose(kept, perm=(0, 2, 1)), [-1, count])
    order, score, rows = sort_boxes(g, boxes, flat, num_classes, count)
    both, one, other = compute_overlap(g, rows, 0.0)
    solid = g.And(g.Greater(one, 0.0), g.Greater(other, 0.0))
    union = g.Where(solid, g.Sub(g.Add(one, other), both), 1.0)
    conflicts = g.And(solid, g.Greater(g.Div(both, union), iou_threshold))
    inside = g.GreaterOrEqual(score, score_threshold)
    limit = g.const(max_detections_per_class, DType.INT32)
    _, chosen = select_boxes(g, conflicts, inside, inside, limit)
    return collect_best(g, chosen, score, order, boxes, (num_classes, count, max_detections))


def collect_best(g, chosen, score, order, boxes, counts: tuple[int, int, int]):
    """The boxes, classes and scores of the chosen rows of all classes, and how many there are."""
    kinds, count, most = counts
    total = kinds * count
    chosen, score, order = (g.Reshape(v, [-1, total]) for v in (chosen, score, order))
    key = g.Where(chosen, score, g.const(-np.inf, score.type))
    ranked = sort_positions(g, key)
    few = min(most, total)
    first = g.Slice(ranked, [0], [few], [1], [1])
    row_count = g.ReduceSum(g.cast(chosen, DType.INT64), [1], keepdims=1)
    shown = g.Less(g.const(arrays.arange(few)[None]), row_count)
    rows = reorder_rows(g, boxes, reorder_rows(g, order, first))
    classes = g.cast(g.Div(first, g.const(count, DType.INT64)), DType.FLOAT32)
    columns = [g.Where(g.Unsqueeze(shown, [2]), rows, g.const(0, rows.type))]
    columns += [
        g.Where(shown, v, g.const(0, v.type)) for v in (classes, reorder_rows(g, score, first))
    ]
    if most > few:
        columns = [
            g.Pad(v, (0,) * (v.rank + 1) + (most - few,) + (0,) * (v.rank - 2)) for v in columns
        ]
    number = g.cast(g.Min(g.Squeeze(row_count, [1]), g.const(most, DType.INT64)), DType.INT32)
    return (*columns, number)
