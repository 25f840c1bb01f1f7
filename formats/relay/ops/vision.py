"""Anchors and boxes of detectors, and reorganised images."""

from __future__ import annotations

import numpy as np

from serde.decompositions.detectors import decode_boxes, to_center
from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType

from ..rules import Floats, reads
from .layouts import require_static_sizes
from .nms import mask_rows, order_kept_first, reorder_rows

VARIANCES = (0.10000000149011612, 0.10000000149011612, 0.20000000298023224, 0.20000000298023224)


@reads("vision.yolo_reorg")
def read_yolo_reorg(g, x, *, stride=1):
    """TVM's reorg counts through memory, over the ends of axes: a table of places says which."""
    batch, channels, height, width = require_static_sizes(x, 0)
    area = stride * stride
    few = channels // area
    require(few > 0, f"{channels} channels for stride {stride}")
    b, k, j, i = arrays.meshgrid(*map(arrays.arange, require_static_sizes(x, 0)), indexing="ij")
    row = (j * stride + (k // few) // stride) * stride
    at = ((b * area * channels + (k % few) * area) * height + row) * width
    at = at + i * stride + (k // few) % stride
    require(at.max() < at.size, "more than one image: TVM reads behind the tensor's end")
    y = g.Gather(g.Reshape(x, [-1]), g.const(at.astype(np.int64)), axis=0)
    return g.Reshape(y, [batch, channels * area, height // stride, width // stride])


@reads("vision.multibox_prior")
def read_multibox_prior(
    g, x, *, sizes: Floats = (1.0,), ratios: Floats = (1.0,), steps: Floats = (-1.0, -1.0),
    offsets: Floats = (0.5, 0.5), clip=False,
):  # fmt: skip
    """Anchors around each place of an image, which only its size tells."""
    height, width = require_static_sizes(x)
    step = [s if s > 0 else 1.0 / n for s, n in zip(steps, (height, width), strict=True)]
    boxes = [(s * height / width / 2, s / 2) for s in sizes]
    roots = [np.sqrt(r) for r in ratios[1:]]
    boxes += [(sizes[0] * height / width * r / 2, sizes[0] / r / 2) for r in roots]
    rows = (arrays.arange(height) + offsets[0]) * step[0]
    columns = (arrays.arange(width) + offsets[1]) * step[1]
    arrays.charge_elements(height, width, len(boxes), 4)
    y, across = arrays.meshgrid(rows, columns, indexing="ij")
    centers = np.stack([across, y, across, y], -1)[:, :, None]
    half = np.array([(-w, -h, w, h) for w, h in boxes])
    anchors = (centers + half).reshape(1, -1, 4).astype(np.float32)
    return g.const(np.clip(anchors, 0, 1) if clip else anchors)


@reads("vision.multibox_transform_loc")
def read_multibox_transform_loc(
    g, classes, moves, anchors, *, clip=True, threshold=0.01, variances: Floats = VARIANCES,
    keep_background=False,
):  # fmt: skip
    """Rows of class, score and box; those of the background give way, behind the others are -1."""
    kept = classes if keep_background else g.Slice(classes, [1], [2**31 - 1], [1], [1])
    score = g.ReduceMax(kept, [1], keepdims=0)
    kind = g.ArgMax(kept, axis=1, keepdims=0)
    low = g.Less(score, g.scalar(threshold, score))
    if keep_background:
        kind = g.Where(low, g.const(0, DType.INT64), kind)
        valid = g.GreaterOrEqual(kind, g.const(0, DType.INT64))
    else:
        valid = g.Not(low)
    boxes = decode_boxes(g, g.Reshape(moves, [0, -1, 4]), to_center(g, anchors), variances)
    boxes = g.Clip(boxes, 0.0, 1.0) if clip else boxes
    parts = [g.Unsqueeze(v, [2]) for v in (g.cast(kind, score.type), score)]
    order, shown, count = order_kept_first(g, valid)
    rows = mask_rows(g, reorder_rows(g, g.Concat(*parts, boxes, axis=2), order), shown)
    return rows, g.cast(g.Squeeze(count, [1]), DType.INT32)
