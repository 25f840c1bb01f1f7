"""Non-maximum suppression, exactly as MXNet does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from serde.decompositions.detectors import decode_boxes, to_center
from serde.errors import require
from serde.ir.graph import Dim, DType, Graph, Node, Value
from serde.passes.suppression import find_marked
from serde.spec.expressions import lowest_value
from serde.version_converter.adapters.nms import suppress_by_looping

from ..rules import Floats, note_old_meaning, reads, reads_between
from ..target import legalizations, scalar_value, writes
from .bbox import FORMATS, to_corner
from .dynamic_shapes import align_to_axis, emit_arange_like, emit_broadcast_like
from .shared_attributes import with_attributes_of

LOWEST = -3.4028234663852886e38  # of float32
MASK = "SuppressionMask"
DOMAIN = "mxnet"
OPERANDS = 5


def select_survivors(
    g, boxes: Value, scores: Value, ids: Value | None, bound: float, least: float, center,
    count: Dim = None,
):  # fmt: skip
    """Which of ``(batch, count)`` boxes with scores over ``least`` are not suppressed by one with a
    higher score, that overlaps more than ``bound``, of its own class where there are ``ids``, below
    ``count`` if that is known.
    """
    each = g.Unsqueeze(scores, [1])
    if ids is not None:
        int_ids = g.cast(ids, DType.INT64)
        first, last = (g[op](int_ids, [0, 1], keepdims=0) for op in ("ReduceMin", "ReduceMax"))
        ends = (0, count) if isinstance(count, int) else (first, g.Add(last, 1))
        classes = g.cast_like(g.Unsqueeze(g.Range(*ends, 1), [1]), ids)
        is_of_class = g.Equal(g.Unsqueeze(ids, [1]), classes)
        each = g.Where(is_of_class, each, g.scalar(lowest_value(scores), scores))
    require(bound >= 0, f"an overlap of {bound}, by which boxes far apart suppress each other")
    boxes, bound = clip_negative_sides(g, boxes, center), min(bound, 1.0)
    limit = g.shape_from([g.size_of(scores, 1)])
    floor = g.const([least], DType.FLOAT32)
    chosen = g.NonMaxSuppression(
        boxes, each, limit, g.const([bound], DType.FLOAT32), floor, center_point_box=int(center)
    )
    places = g.Gather(chosen, [0, 2], axis=1)
    ones = g.Expand(g.const(1, DType.INT32), g.slice_axis(g.Shape(places), 0, 0, 1))
    mask = g.ScatterND(g.full_like(scores, 0, DType.INT32), places, ones)
    return g.cast(mask, DType.BOOL)


def clip_negative_sides(g, boxes: Value, center: bool):
    """Boxes with nothing inside where a side is less than 0, which ONNX would turn around."""
    if center:
        sides = g.Max(g.slice_axis(boxes, 2, 2, 4), g.scalar(0, boxes))
        return g.Concat(g.slice_axis(boxes, 2, 0, 2), sides, axis=2)
    first = g.slice_axis(boxes, 2, 0, 2)
    return g.Concat(first, g.Max(first, g.slice_axis(boxes, 2, 2, 4)), axis=2)


def gather_rows(g, rows: Value, places: Value):
    """The rows of each sample at its places."""
    return g.GatherND(rows, g.Unsqueeze(places, [2]), batch_dims=1)


def compact_mask(g, mask: Value):
    """The places of what the mask keeps, in order, and which of them are real."""
    size = g.shape_from([g.size_of(mask, 1)])
    backwards = g.Sub(size, g.index_range(g.size_of(mask, 1)))
    key = g.Where(mask, backwards, g.const(0, DType.INT64))
    values, places = g.TopK(key, size, axis=1, outputs=2)
    return places, g.Greater(values, 0)


@reads("_contrib_box_nms")
def read_box_nms(
    g, x, *, overlap_thresh=0.5, valid_thresh=0.0, topk=-1, coord_start=2, score_index=1,
    id_index=-1, background_id: int | None = -1, force_suppress=False, in_format="corner",
    out_format="corner",
):  # fmt: skip
    """The rows that survive, by falling score, then rows of -1; the best ``topk`` take part."""
    require(in_format in FORMATS and out_format in FORMATS, f"{in_format=} {out_format=}")
    count, width = g.size_of(x, x.rank - 2), g.size_of(x, x.rank - 1)
    rows = g.Reshape(x, g.shape_from([-1, count, width]))
    scores = g.Gather(rows, score_index, axis=2)
    valid = g.Greater(scores, valid_thresh)
    if id_index >= 0 and background_id is not None:
        background = g.Equal(g.Gather(rows, id_index, axis=2), float(background_id))
        valid = g.And(valid, g.Not(background))
    scores = g.Where(valid, scores, g.scalar(lowest_value(x), x))
    size = g.shape_from([count])
    best = g.Min(size, [topk]) if topk > 0 else size
    scores, places = g.TopK(scores, best, axis=1, outputs=2)
    rows = gather_rows(g, rows, places)
    boxes = g.slice_axis(rows, 2, coord_start, coord_start + 4)
    ids = g.Gather(rows, id_index, axis=2) if id_index >= 0 and not force_suppress else None
    mask = select_survivors(
        g, boxes, scores, ids, overlap_thresh, valid_thresh, in_format == "center"
    )
    places, real = compact_mask(g, mask)
    rows = convert_box_format(g, gather_rows(g, rows, places), coord_start, in_format, out_format)
    rows = g.Where(g.Unsqueeze(real, [2]), rows, g.scalar(-1, x))
    if topk > 0:
        more = g.Concat([0, 0, 0, 0], g.Sub(size, best), [0], axis=0)
        rows = g.Pad(rows, more, g.scalar(-1, x))
    return g.Reshape(rows, g.Shape(x))


@reads_between(10300, 10500)("_contrib_box_nms")
@with_attributes_of(read_box_nms, leave_out=("background_id",))
def read_old_box_nms(g, x, *, id_index=-1, **attrs):
    """Before MXNet 1.5 no class is the background."""
    if id_index >= 0:
        note_old_meaning(g, "1.5")
    return read_box_nms(g, x, id_index=id_index, background_id=None, **attrs)


@reads_between(0, 10300)("_contrib_box_nms")
@with_attributes_of(read_old_box_nms, leave_out=("valid_thresh",))
def read_box_nms_of_all(g, x, **attrs):
    """Before MXNet 1.3 boxes take part whatever their scores are."""
    note_old_meaning(g, "1.3")
    return read_old_box_nms(g, x, valid_thresh=float("-inf"), **attrs)


def convert_box_format(g, rows: Value, start: int, current: str, expected: str):
    """Rows with the four coordinates from ``start`` on in another format."""
    if current == expected:
        return rows
    change = to_corner if expected == "corner" else to_center
    boxes = change(g, g.slice_axis(rows, 2, start, start + 4))
    around = g.slice_axis(rows, 2, 0, start), g.slice_axis(rows, 2, start + 4, 2**31 - 1)
    return g.Concat(around[0], boxes, around[1], axis=2)


def detect(
    drops_rest, g, cls_prob, loc_pred, anchor, *, clip=True, threshold=0.01, nms_threshold=0.5,
    force_suppress=False, variances: Floats = (0.1, 0.1, 0.2, 0.2), nms_topk=-1,
):  # fmt: skip
    """Rows of class, score and box; class 0 is the background whatever ``background_id`` says.

    Anchors that show nothing give rows of -1 behind the others. Sorted by score, those that are
    suppressed have the class -1; so have those not among the best ``nms_topk``, left unsorted.
    """
    rows = list_detections(g, cls_prob, loc_pred, anchor, clip, threshold, variances)
    if not 0 < nms_threshold <= 1:
        return rows
    classes = count_classes(cls_prob)
    return suppress_rows(g, rows, nms_threshold, force_suppress, nms_topk, classes, drops_rest)


DETECTION = "_contrib_MultiBoxDetection"
reads(DETECTION, ignore=("background_id",))(partial(detect, True))


@reads_between(0, 10300)(DETECTION, ignore=("background_id",))
@with_attributes_of(detect)
def read_old_detection(g, cls_prob, loc_pred, anchor, *, nms_topk=-1, **attrs):
    """Before MXNet 1.3 those not among the best ``nms_topk`` compete too, where they are."""
    if nms_topk > 0:
        note_old_meaning(g, "1.3")
    return detect(False, g, cls_prob, loc_pred, anchor, nms_topk=nms_topk, **attrs)


def count_classes(cls_prob: Value) -> Dim:
    """How many classes there are beside the background, if it is known."""
    count = cls_prob.ranked_shape[1]
    return count - 1 if isinstance(count, int) else None


def list_detections(g, cls_prob, loc_pred, anchor, clip, threshold, variances):
    """The rows of what anchors show, before any suppression."""
    boxes = decode_boxes(g, g.Reshape(loc_pred, [0, -1, 4]), to_center(g, anchor), variances)
    boxes = g.Clip(boxes, 0.0, 1.0) if clip else boxes
    shown = g.slice_axis(cls_prob, 1, 1, 2**31 - 1)
    scores = g.ReduceMax(shown, [1], keepdims=0)
    ids = g.cast_like(g.ArgMax(shown, axis=1, keepdims=0), scores)
    rows = g.Concat(g.Unsqueeze(ids, [2]), g.Unsqueeze(scores, [2]), boxes, axis=2)
    places, real = compact_mask(g, g.GreaterOrEqual(scores, threshold))
    return g.Where(g.Unsqueeze(real, [2]), gather_rows(g, rows, places), g.scalar(-1, rows))


def suppress_rows(
    g, rows: Value, bound: float, force: bool, topk: int, classes: Dim, drops_rest: bool
):
    """Rows by falling score, the class of those that are suppressed set to -1.

    Behind the first ``topk`` the rows are those that were there. They have the class -1, or else
    are as if their scores fell from place to place.
    """
    size = g.shape_from([g.size_of(rows, 1)])
    scores, places = g.TopK(g.Gather(rows, 1, axis=2), size, axis=1, outputs=2)
    sorted_rows = gather_rows(g, rows, places)
    ids, boxes = g.Gather(sorted_rows, 0, axis=2), g.slice_axis(sorted_rows, 2, 2, 6)
    scores = g.cast(scores, DType.FLOAT32)
    if topk > 0:
        among = g.Less(g.index_range(g.size_of(rows, 1)), topk)
        sorted_rows = g.Where(g.Unsqueeze(among, [1]), sorted_rows, rows)
        if drops_rest:
            scores = g.Where(among, scores, g.scalar(-1, scores))
        else:
            ids, boxes = g.Gather(sorted_rows, 0, axis=2), g.slice_axis(sorted_rows, 2, 2, 6)
            falling = g.Reciprocal(
                g.cast(g.Add(g.index_range(g.size_of(rows, 1)), 1), DType.FLOAT32)
            )
            scores = g.Where(g.Less(ids, 0.0), g.scalar(-1, falling), falling)
    below = float(np.nextafter(np.float32(bound), np.float32(0)))  # ONNX asks for more, not as much
    mask = select_survivors(g, boxes, scores, None if force else ids, below, -0.5, False, classes)
    ids = g.Where(mask, g.Gather(sorted_rows, 0, axis=2), g.scalar(-1, rows))
    return g.Concat(g.Unsqueeze(ids, [2]), g.slice_axis(sorted_rows, 2, 1, 6), axis=2)


@legalizations("NonMaxSuppression")
def legalize_suppression(
    g, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    """MXNet takes bounds as numbers; where they are computed, the boxes are looped over."""
    if _are_numbers(overlap, least):
        return None
    return suppress_by_looping(
        g, boxes, scores, most, overlap, least, center_point_box=center_point_box
    )


def _are_numbers(*bounds: Value | None) -> bool:
    return all(v is None or v.tensor is not None for v in bounds)


def mark_suppression_masks(graph: Graph) -> Graph:
    """The graph with marks put where NonMaxSuppression chose boxes made at once.

    A list of boxes may be empty, which no tensor of MXNet is; the marks never are.
    """
    if not any(node.op == "NonMaxSuppression" for node in graph.nodes):
        return graph
    makers = {v: node for node in graph.nodes for v in node.outputs}
    marks = {
        node: mark for node in graph.nodes if (mark := _make_mask_node(node, makers)) is not None
    }
    return replace(graph, nodes=tuple(marks.get(n, n) for n in graph.nodes)) if marks else graph


def _make_mask_node(node: Node, makers: Mapping[Value, Node]) -> Node | None:
    """What a ScatterND of one number at the batch and place of each chosen box amounts to."""
    if node.op != "ScatterND" or node.domain or node.attrs.get("reduction", "none") != "none":
        return None
    data, *marked = node.inputs
    marked_boxes = find_marked(makers.get, *marked)
    if marked_boxes is None:
        return None
    chosen, update = marked_boxes
    operands = (*chosen.inputs, *(None,) * OPERANDS)[:OPERANDS]
    if not _are_numbers(*operands[3:]):
        return None
    return replace(
        node, op=MASK, domain=DOMAIN, attrs=chosen.attrs, inputs=(*operands, data, update)
    )


@writes("NonMaxSuppression")
def write_suppression(
    s, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    """Rows of batch, class and box, of those that are kept."""
    places, chosen, kept = _keep_boxes(s, boxes, scores, most, overlap, least, center_point_box)
    rows = s.Reshape(s.Concat(*places[:2], chosen, dim=3, num_args=3), shape=(-1, 3))
    require(s.release.number >= 10500, "MXNet before 1.5 runs no symbol that finds its own shape")
    return s.Cast(s["_contrib_boolean_mask"](rows, s.Reshape(kept, shape=(-1,))), dtype="int64")


@writes(MASK)
def write_mask(s, boxes, scores, most, overlap, least, data, update, *, center_point_box: int):
    """``update`` where a box is kept, ``data`` where none is.

    Where sizes are known, kept boxes are put in their places, and others behind the last.
    """
    (batch, _, place), chosen, kept = _keep_boxes(
        s, boxes, scores, most, overlap, least, center_point_box
    )
    rows, count = data.ranked_shape
    if isinstance(rows, int) and isinstance(count, int):
        batch, indices = (s.Cast(v, dtype="int32") for v in (batch, chosen))
        flat = s.broadcast_add(s["_mul_scalar"](batch, scalar=count), indices)
        behind = s["_full"](shape=(1, 1, 1, 1), value=rows * count, dtype="int32")
        at = s.where(kept, flat, emit_broadcast_like(s, behind, flat))
        ones = s.Reshape(s.ones_like(kept), shape=(-1,))
        hit = s.scatter_nd(ones, s.Reshape(at, shape=(1, -1)), shape=(rows * count + 1,))
        hit = s.Reshape(s.slice_axis(hit, axis=0, begin=0, end=-1), shape=(rows, count))
    else:
        pairs = s.broadcast_equal(place, s.transpose(chosen, axes=(0, 1, 3, 2)))
        pairs = s.broadcast_mul(pairs, s.transpose(kept, axes=(0, 1, 3, 2)))
        hit = s.max(pairs, axis=(1, 3))
    return s.where(hit, emit_broadcast_like(s, s.Reshape(update, shape=(1, 1)), data), data)


def _keep_boxes(s, boxes, scores, most, overlap, least, center_point_box: int):
    """Where each row is (batch, class, rank), the box it is of, and whether it is kept.

    All are (batch, class, count, 1). MXNet's operator gives rows that are kept by falling score,
    and rows of -1 behind them.
    """
    require(most is not None, "no boxes at all: 'max_output_boxes_per_class' is 0")
    form = "center" if center_point_box else "corner"
    if not center_point_box:
        a, b = (s.slice_axis(boxes, axis=2, begin=i, end=i + 2) for i in (0, 2))
        boxes = s.Concat(s.broadcast_minimum(a, b), s.broadcast_maximum(a, b), dim=2, num_args=2)
    sizes = scores.ranked_shape
    if least is None:  # even those of no score take part
        scores = s["_maximum_scalar"](scores, scalar=LOWEST)
    scores = s.expand_dims(scores, axis=3)
    boxes = s.expand_dims(boxes, axis=1)
    if s.release.has("broadcast_like", lhs_axes=()):
        boxes = s.broadcast_like(boxes, scores, lhs_axes=(1,), rhs_axes=(1,))
    else:
        boxes = s.broadcast_mul(boxes, s.ones_like(scores))
    places = [_index_axis(s, scores, axis, size) for axis, size in enumerate(sizes)]
    rows = s["_contrib_box_nms"](
        s.Concat(places[2], scores, boxes, dim=3, num_args=3),
        overlap_thresh=0.0 if overlap is None else scalar_value(overlap),
        valid_thresh="-inf" if least is None else scalar_value(least),
        coord_start=2, score_index=1, force_suppress=True, in_format=form, out_format=form,
    )  # fmt: skip
    chosen = s.slice_axis(rows, axis=3, begin=0, end=1)
    limit = s.Cast(s.Reshape(most, shape=(1, 1, 1, 1)), dtype="float32")
    within = s.broadcast_lesser(places[2], limit)
    return places, chosen, s.broadcast_mul(s["_greater_equal_scalar"](chosen, scalar=0), within)


def _index_axis(s, like, axis: int, size: Dim):
    """The places along an axis of this size, in the shape of ``like``."""
    if isinstance(size, int) and not s.release.has("_contrib_arange_like"):
        row = s["_arange"](start=0, stop=size, dtype="float32")
    else:
        row = emit_arange_like(s, like, 4, axis, "float32")
    return emit_broadcast_like(s, align_to_axis(s, row, axis, 4), like)
