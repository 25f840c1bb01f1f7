"""The custom operator behind detectors: boxes by anchors, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from serde.errors import ConversionError, require
from serde.ir.graph import DType, Value

from ..io.read_flexbuffer import read_map
from ..rules import reads


@dataclass
class Options:
    """What the operator is told, by the names that it has in a file."""

    max_detections: int
    max_classes_per_detection: int
    num_classes: int
    nms_score_threshold: float
    nms_iou_threshold: float
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float
    use_regular_nms: int = 0
    detections_per_class: int = 100

    @classmethod
    def of(cls, data: bytes) -> Options:
        """Those of a file.

        Raises:
            ConversionError: where some are left out, or cannot be.
        """
        names = {field.name for field in fields(cls)}
        try:
            options = cls(**{k: v for k, v in read_map(data).items() if k in names})  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            raise ConversionError(f"{error}. Write the model anew") from None
        counts = (options.max_detections, options.max_classes_per_detection, options.num_classes,
                  options.detections_per_class)  # fmt: skip
        scales = (options.y_scale, options.x_scale, options.h_scale, options.w_scale)
        is_possible = all(0 < n < 1 << 16 for n in counts) and all(s > 0 for s in scales)
        require(is_possible, "counts or scales that are not above 0. Correct them")
        return options


@reads("TFLite_Detection_PostProcess")
def read_detection_post_process(g, codes, scores, anchors, *, custom_options: bytes = b""):
    """Boxes, their classes and scores, and how many there are; zeros are behind these."""
    how = Options.of(custom_options)
    background = scores.static_shape[2] - how.num_classes
    require(background in (0, 1), f"scores of {scores.static_shape[2]} classes for "
            f"num_classes={how.num_classes}. Correct it")  # fmt: skip
    boxes = decode_boxes(g, codes, anchors, how)
    scores = g.Squeeze(g.slice_axis(scores, 2, background, background + how.num_classes), [0])
    suppress = suppress_by_class if how.use_regular_nms else suppress_together
    return suppress(g, boxes, scores, how)


def decode_boxes(g, codes: Value, anchors: Value, how: Options):
    """Corners of boxes: each is an anchor that is moved and stretched."""
    codes = g.Squeeze(codes, [0])
    y, x, h, w = (g.slice_axis(codes, 1, k, k + 1) for k in range(4))
    anchor_y, anchor_x, height, width = (g.slice_axis(anchors, 1, k, k + 1) for k in range(4))
    middles = [
        g.Add(g.Mul(g.Div(code, scale), size), anchor)
        for code, scale, size, anchor in (
            (y, how.y_scale, height, anchor_y), (x, how.x_scale, width, anchor_x),
        )
    ]  # fmt: skip
    halves = [
        g.Mul(g.Mul(g.Exp(g.Div(code, scale)), 0.5), size)
        for code, scale, size in ((h, how.h_scale, height), (w, how.w_scale, width))
    ]
    pairs = [*zip(middles, halves, strict=True)]
    return g.Concat(*(g.Sub(m, s) for m, s in pairs), *(g.Add(m, s) for m, s in pairs), axis=1)


def choose_boxes(g, boxes: Value, scores: Value, most: int, how: Options):
    """Class and box of what is kept, by rows of scores; a score on the threshold is."""
    least = np.nextafter(np.float32(how.nms_score_threshold), np.float32(-np.inf))
    return g.NonMaxSuppression(
        g.Unsqueeze(boxes, [0]), g.Unsqueeze(scores, [0]), g.const([most], DType.INT64),
        g.const([how.nms_iou_threshold], DType.FLOAT32), g.const(least.reshape(1)),
    )  # fmt: skip


def suppress_together(g, boxes: Value, scores: Value, how: Options):
    """Boxes of any class suppress each other; each has its best classes."""
    best = g.ReduceMax(scores, [1], keepdims=0)
    chosen = choose_boxes(g, boxes, g.Unsqueeze(best, [0]), how.max_detections, how)
    places = g.Squeeze(g.slice_axis(chosen, 1, 2, 3), [1])
    most, classes = how.max_detections, how.max_classes_per_detection
    count, kept = g.Shape(places), min(classes, how.num_classes)
    places = g.slice_axis(g.Pad(places, [0, most]), 0, 0, most)
    values, labels = g.TopK(g.Gather(scores, places, axis=0), [kept], axis=1, outputs=2)
    corners = g.Unsqueeze(g.Gather(boxes, places, axis=0), [1])
    corners = g.Tile(corners, [1, kept, 1])

    def fill(v: Value, *sizes: int):
        shown = show_first(g, v, most, count)
        rest = [0] * len(sizes)
        shown = g.Pad(shown, [0, 0, *rest, 0, classes - kept, *rest])
        return g.reshape(shown, [1, most * classes, *sizes])

    return fill(corners, 4), fill(labels), fill(values), g.cast(count, DType.FLOAT32)


def show_first(g, rows: Value, most: int, count: Value):
    """``count`` of ``most`` rows as floats, and zeros behind them."""
    is_there = g.Less(np.arange(most, dtype=np.int64), count)
    mask = g.Unsqueeze(is_there, list(range(1, rows.rank)))
    return g.Where(mask, g.cast(rows, DType.FLOAT32), g.const(0, DType.FLOAT32))


def suppress_by_class(g, boxes: Value, scores: Value, how: Options):
    """Boxes suppress those of their class; the best of all classes are kept."""
    chosen = choose_boxes(g, boxes, g.Transpose(scores, perm=(1, 0)), how.detections_per_class, how)
    labels, places = (g.slice_axis(chosen, 1, k, k + 1) for k in (1, 2))
    values = g.GatherND(scores, g.Concat(places, labels, axis=1))
    most = how.max_detections
    all_values, all_labels, all_places = (
        g.Pad(v, [0, most], fill) for v, fill in (
            (values, g.const(-np.inf, DType.FLOAT32)), (g.Squeeze(labels, [1]), None),
            (g.Squeeze(places, [1]), None),
        )
    )  # fmt: skip
    best, order = g.TopK(all_values, [most], outputs=2)
    count = g.Min(g.Shape(values), g.const([most], DType.INT64))
    corners = g.Gather(boxes, g.Gather(all_places, order, axis=0), axis=0)
    rest = most * (how.max_classes_per_detection - 1)

    def fill(v: Value, *sizes: int):
        shown = show_first(g, v, most, count)
        rows = [0] * (1 + len(sizes))
        return g.Unsqueeze(g.Pad(shown, [*rows, rest, *rows[1:]]) if rest else shown, [0])

    detections = fill(corners, 4), fill(g.Gather(all_labels, order, axis=0)), fill(best)
    return (*detections, g.cast(count, DType.FLOAT32))
