"""Regions that a network proposes: anchors moved and sized as it says, the best of them kept."""

from __future__ import annotations

import numpy as np

from serde.decompositions.detectors import make_anchors, move_boxes
from serde.ir.graph import DType, Value
from serde.spec.expressions import lowest_value

from ..rules import Floats, reads
from .nms import compact_mask, gather_rows, select_survivors


def to_rows(g, x: Value, each: int):
    """``(N, A * each, H, W)`` as ``(N, H * W * A, each)``."""
    batch, channels, height, width = g.sizes_of(x)
    count = channels // each if isinstance(channels, int) else g.Div(channels, [each])
    split = g.Reshape(x, g.shape_from([batch, count, each, height, width]))
    return g.Reshape(g.Transpose(split, perm=(0, 3, 4, 1, 2)), g.shape_from([batch, -1, each]))


def shift_anchors(g, x: Value, anchors, stride: int):
    """``(H * W * A, 4)``: the anchors at each place; and each box's row and column."""
    rows, columns = (g.index_range(g.size_of(x, a)) for a in (2, 3))
    grid = g.shape_from([g.size_of(x, 2), g.size_of(x, 3), len(anchors)])
    y = g.Reshape(g.Expand(g.Unsqueeze(rows, [1, 2]), grid), [-1])
    right = g.Reshape(g.Expand(g.Unsqueeze(columns, [0, 2]), grid), [-1])
    moves = g.stack((right, y, right, y), 1)
    places = g.Concat(g.shape_from([g.size_of(x, 2)]), g.shape_from([g.size_of(x, 3)]), axis=0)
    tiled = g.Tile(anchors, g.Concat(g.ReduceProd(places, [0], keepdims=1), [1], axis=0))
    return g.Add(tiled, g.cast(g.Mul(moves, stride), DType.FLOAT32)), y, right


@reads(
    "_contrib_Proposal",
    "_contrib_MultiProposal",
    ignore=("output_score",),
    only={"iou_loss": (False,)},
)
def read_proposal(
    g, cls_prob, bbox_pred, im_info, *, rpn_pre_nms_top_n=6000, rpn_post_nms_top_n=300,
    threshold=0.7, rpn_min_size=16, scales: Floats = (4.0, 8.0, 16.0, 32.0),
    ratios: Floats = (0.5, 1.0, 2.0), feature_stride=16,
):  # fmt: skip
    """Rows of the sample and a box; where fewer than asked for are left, they are repeated."""
    anchors = make_anchors(feature_stride, scales, ratios)
    half = g.Slice(cls_prob, [len(anchors)], [2 * len(anchors)], [1], [1])
    scores = g.Squeeze(to_rows(g, half, 1), [2])
    boxes, row, column = shift_anchors(g, cls_prob, anchors, feature_stride)
    image = g.Gather(im_info, [1, 0], axis=1)  # width and height
    most = g.Unsqueeze(g.Sub(image, 1.0), [1])
    ends = [g.Max(g.Min(e, most), 0.0) for e in move_boxes(g, boxes, to_rows(g, bbox_pred, 4))]
    least = g.Unsqueeze(g.Mul(g.Gather(im_info, [2], axis=1), float(rpn_min_size)), [1])
    small = g.Less(g.Add(g.Sub(ends[1], ends[0]), 1.0), least)
    too_small = g.cast(g.ReduceMax(g.cast(small, DType.INT32), [2], keepdims=0), DType.BOOL)
    real = g.Floor(g.Div(image, float(feature_stride)))
    outside = [
        g.GreaterOrEqual(g.cast_like(v, image), g.Gather(real, [i], axis=1))
        for i, v in enumerate((column, row))
    ]
    none = g.Or(too_small, g.Or(*outside))
    wider = g.Where(g.Unsqueeze(too_small, [2]), g.Mul(least, 0.5), g.scalar(0, image))
    rows = g.Concat(g.Sub(ends[0], wider), g.Add(ends[1], wider), axis=2)
    scores = g.Where(none, g.scalar(-1, scores), scores)
    return keep_best(g, rows, scores, rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold)


def keep_best(g, rows: Value, scores: Value, before: int, behind: int, threshold: float):
    """The best boxes that no better one covers."""
    count = g.Min(g.shape_from([g.size_of(scores, 1)]), [before if before > 0 else 2**31 - 1])
    scores, order = g.TopK(scores, count, axis=1, outputs=2)
    rows = gather_rows(g, rows, order)
    boxes = g.Add(rows, np.array([0, 0, 1, 1], "float32"))  # their last pixels belong to them
    mask = select_survivors(g, boxes, scores, None, threshold, lowest_value(scores), False)
    places, _ = compact_mask(g, mask)
    number = g.ReduceSum(g.cast(mask, DType.INT64), [1], keepdims=1)
    turn = g.Mod(g.index_range(behind), number)
    chosen = g.GatherElements(places, turn, axis=1)
    sample = g.Add(g.Mul(chosen, 0), g.Unsqueeze(g.index_range(g.size_of(rows, 0)), [1]))
    parts = g.cast_like(g.Unsqueeze(sample, [2]), rows), gather_rows(g, rows, chosen)
    return (
        g.Reshape(g.Concat(*parts, axis=2), [-1, 5]),
        g.Reshape(g.GatherElements(scores, chosen, axis=1), [-1, 1]),
    )
