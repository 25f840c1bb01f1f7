"""Non-maximum suppression: TVM's own, box after box, in a Loop over all batches at once.

That of all classes is ONNX's where its bounds are such that both suppress the same.
"""

from __future__ import annotations

import numpy as np

from serde.decompositions.loops import loop_body
from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType, Value
from serde.passes.suppression import find_marked, strict_bound
from serde.spec.expressions import number

from ..rules import reads
from ..target import DOMAIN, emit_scalar, legalizations, set_type, writes
from .layouts import require_static_sizes
from .shape import axis_size

MASK = "SuppressionMask"
OPERANDS = 5


def column(g, x: Value, at: int, count: int = 1):
    """Columns of the last axis; a single one without that axis."""
    axis = x.rank - 1
    if count == 1:
        return g.Gather(x, g.const(at, DType.INT64), axis=axis)
    return g.Slice(x, [at], [at + count], [axis], [1])


def overlaps(g, boxes: Value):
    """Intersection over union of all pairs of (B, N, 4) boxes, corners in any order."""
    low = g.Min(column(g, boxes, 0, 2), column(g, boxes, 2, 2))
    high = g.Max(column(g, boxes, 0, 2), column(g, boxes, 2, 2))
    one = [g.Unsqueeze(v, [2]) for v in (low, high)]
    other = [g.Unsqueeze(v, [1]) for v in (low, high)]
    shared = g.Max(g.Sub(g.Min(one[1], other[1]), g.Max(one[0], other[0])), 0.0)
    area = g.Mul(column(g, shared, 0), column(g, shared, 1))
    extent = g.Sub(high, low)
    each = g.Mul(column(g, extent, 0), column(g, extent, 1))
    union = g.Sub(g.Add(g.Unsqueeze(each, [2]), g.Unsqueeze(each, [1])), area)
    flat = g.LessOrEqual(union, 0.0)
    return g.Where(flat, 0.0, g.Div(area, g.Where(flat, 1.0, union)))


def select_boxes(g, conflicts: Value, scored: Value, inside: Value, limit: Value):
    """Which rows stay, and which of them suppress others: two (B, N) of truth.

    ``conflicts`` (B, N, N) tells whether a row gives way to an earlier one that was selected; rows
    that are ``inside`` but not ``scored`` stay and suppress nothing. ``limit`` is the greatest
    number of selected rows, below 0 for no limit.
    """
    count = g.size_of(scored, 1)
    total = g.const(count, DType.INT64) if isinstance(count, int) else g.Squeeze(count, [0])
    none = g.And(scored, g.Not(scored))
    start = g.ReduceSum(g.cast(none, DType.INT32), [1], keepdims=0)

    def step(g, at, _, kept, shown, kept_count):
        row = g.Gather(conflicts, at, axis=1)
        hit = g.cast(g.ReduceMax(g.cast(g.And(row, kept), DType.INT32), [1], keepdims=0),
                     DType.BOOL)  # fmt: skip
        full = g.Equal(kept_count, limit)
        here = [g.Gather(v, at, axis=1) for v in (scored, inside)]
        keeps = g.And(here[0], g.Not(g.Or(hit, full)))
        shows = g.Or(keeps, g.And(g.And(here[1], g.Not(here[0])), g.Not(full)))
        steps = g.Range(g.const(0, DType.INT64), total, g.const(1, DType.INT64))
        place = g.Unsqueeze(g.Equal(steps, at), [0])
        new = [
            g.Or(old, g.And(g.Unsqueeze(add, [1]), place))
            for old, add in ((kept, keeps), (shown, shows))
        ]
        more = g.Add(kept_count, g.cast(keeps, DType.INT32))
        return g.const(True, DType.BOOL), *new, more

    outputs = g.loop(step, total, None, none, none, start)
    return outputs[1], outputs[0]


def positions(g, x: Value):
    """0 … N - 1 along the second axis, as one row."""
    return g.Unsqueeze(g.index_range(g.size_of(x, 1)), [0])


def sort_positions(g, key: Value):
    """Positions of (B, N) by descending key, equal ones as they stand."""
    return g.TopK(key, axis_size(g, key, 1), axis=1, largest=1, sorted=1, outputs=2)[1]


def reorder_rows(g, x: Value, order: Value):
    """Rows of (B, N) or (B, N, K) in another order."""
    if x.rank == 2:
        return g.GatherElements(x, order, axis=1)
    return g.GatherND(x, g.Unsqueeze(order, [2]), batch_dims=1)


def sort_boxes(g, boxes: Value, scores: Value, classes: int, count: int):
    """For each class of an image, the positions of its boxes by score, the scores, and the boxes.

    ``scores`` are (B · classes, count), ``boxes`` (B, count, 4).
    """
    order = sort_positions(g, scores)
    sorted_scores = reorder_rows(g, scores, order)
    spread = g.Expand(g.Unsqueeze(boxes, [1]), [1, classes, count, 4])
    return order, sorted_scores, reorder_rows(g, g.Reshape(spread, [-1, count, 4]), order)


def order_kept_first(g, shown: Value):
    """An order in which the rows that are shown come first, and which of the places they take."""
    steps = positions(g, shown)
    far = g.Add(g.ReduceMax(steps, keepdims=0), 1)
    key = g.Sub(g.Where(shown, far, g.const(0, DType.INT64)), steps)
    count = g.ReduceSum(g.cast(shown, DType.INT64), [1], keepdims=1)
    return sort_positions(g, key), g.Less(steps, count), count


def mask_rows(g, x: Value, shown: Value):
    """Rows that are not shown are -1 throughout."""
    mask = shown if x.rank == 2 else g.Unsqueeze(shown, [2])
    return g.Where(mask, x, g.scalar(-1, x))


@reads("vision.get_valid_counts")
def read_get_valid_counts(
    g, x, threshold, *, id_index=0, score_index=1, score_threshold: float | None = None
):
    valid = g.Greater(column(g, x, score_index), g.Reshape(threshold, []))
    if id_index >= 0:
        valid = g.And(valid, g.GreaterOrEqual(column(g, x, id_index), 0.0))
    order, shown, count = order_kept_first(g, valid)
    rows = mask_rows(g, reorder_rows(g, x, order), shown)
    counts = g.cast(g.Squeeze(count, [1]), DType.INT32)
    return counts, rows, g.cast(mask_rows(g, order, shown), DType.INT32)


@reads("vision.non_max_suppression")
def read_non_max_suppression(
    g, x, valid_count, indices, limit, threshold, *, force_suppress=False, top_k=-1,
    coord_start=2, score_index=1, id_index=0, return_indices=True, invalid_to_bottom=False,
):  # fmt: skip
    require(threshold.tensor is not None and float(threshold.array()) > 0,
            "an IoU threshold that is computed, or not above 0")  # fmt: skip
    require(x.type.kind == "f", f"boxes of {x.type.value}: cast them to float32")
    steps = positions(g, x)
    valid = g.Less(steps, g.Unsqueeze(g.cast(valid_count, DType.INT64), [1]))
    score = column(g, x, score_index)
    order = sort_positions(g, g.Where(valid, score, g.scalar(-np.inf, score)))
    rows, score = reorder_rows(g, x, order), reorder_rows(g, score, order)
    inside = g.And(valid, g.Less(steps, top_k)) if top_k > 0 else valid
    scored = g.And(inside, g.Greater(score, 0.0))
    boxes = column(g, rows, coord_start, 4)
    conflicts = g.GreaterOrEqual(overlaps(g, boxes), float(threshold.array()))
    if id_index >= 0:
        kind = column(g, rows, id_index)
        conflicts = g.And(conflicts, g.Unsqueeze(g.GreaterOrEqual(kind, 0.0), [1]))
        if not force_suppress:
            same = g.Equal(g.Unsqueeze(kind, [2]), g.Unsqueeze(kind, [1]))
            conflicts = g.And(conflicts, same)
    shown, _ = select_boxes(g, conflicts, scored, inside, g.cast(g.Reshape(limit, []), DType.INT32))
    if return_indices:
        box_index = g.GatherElements(g.cast(indices, DType.INT32), order, axis=1)
        front, places, count = order_kept_first(g, shown)
        return mask_rows(g, reorder_rows(g, box_index, front), places), g.cast(count, DType.INT32)
    rows = mask_rows(g, rows, shown)
    if not invalid_to_bottom:
        return rows
    front, places, _ = order_kept_first(g, g.GreaterOrEqual(column(g, rows, 0), 0.0))
    return mask_rows(g, reorder_rows(g, rows, front), places)


@reads("vision.all_class_non_max_suppression", only={"output_format": ("onnx",)})
def read_all_class_non_max_suppression(g, boxes, scores, limit, overlap, threshold):
    """Rows of (batch, class, box) by score; behind them zeros, where TVM leaves what there was."""
    classes, count = require_static_sizes(scores, 1)
    places = _select_with_onnx(g, boxes, scores, limit, overlap, threshold, count)
    if places is None:
        places = _select_by_looping(g, boxes, scores, limit, overlap, threshold)
    total = g.multiply_sizes([g.size_of(scores, 0), classes * count])
    zeros = g.Expand(g.const([[0]], DType.INT64), g.shape_from([total, 3]))
    padded = g.Concat(places, zeros, axis=0)
    return g.slice_axis(padded, 0, 0, total), g.Shape(places, start=0, end=1)


def _select_with_onnx(g, boxes, scores, limit, overlap, threshold, count: int):
    """ONNX's own, where it is the same: scores above zero only, and bounds that are numbers.

    TVM suppresses what overlaps as much as the bound, ONNX what overlaps more.
    """
    most, bound, least = (number(v) for v in (limit, overlap, threshold))
    if most is None or not bound or bound < 0 or least is None or least < 0:
        return None
    below = float(np.nextafter(np.float32(bound), np.float32(0)))
    most = most if most > 0 else count
    return g.NonMaxSuppression(boxes, scores, [most], np.float32([below]), np.float32([least]))


def _select_by_looping(g, boxes, scores, limit, overlap, threshold):
    """Box after box, by what overlaps of every two."""
    classes, count = require_static_sizes(scores, 1)
    order, score, rows = sort_boxes(g, boxes, g.Reshape(scores, [-1, count]), classes, count)
    inside = g.Greater(score, g.Reshape(threshold, []))
    late = g.Unsqueeze(g.Greater(score, 0.0), [2])
    conflicts = g.And(g.GreaterOrEqual(overlaps(g, rows), g.Reshape(overlap, [])), late)
    most = g.cast(g.Reshape(limit, []), DType.INT32)
    most = g.Where(g.Greater(most, np.int32(0)), most, np.int32(count))
    _, kept = select_boxes(g, conflicts, inside, inside, most)
    places = g.Transpose(g.NonZero(kept), perm=(1, 0))
    which = column(g, places, 0)
    box = g.GatherND(order, places)
    table = [g.Unsqueeze(v, [1]) for v in (g.Div(which, classes), g.Mod(which, classes), box)]
    return g.Concat(*table, axis=1)


@legalizations("NonMaxSuppression")
def legalize_non_max_suppression(
    g, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    """Boxes of corners, with scores above zero: TVM suppresses no others.

    It has no function for the shape of a result whose limits are numbers without axes: where
    the number of classes or batches is dynamic, each is taken by itself.
    """
    limit, floor = 0 if most is None else number(most), number(least)
    if limit is not None and limit <= 0:
        return g.const(np.zeros((0, 3), np.int64))
    if not isinstance(boxes.ranked_shape[1], int) or (
        overlap is not None and number(overlap) is None
    ):
        return g.decompose(
            "NonMaxSuppression", 10, boxes, scores, most, overlap, least,
            center_point_box=center_point_box,
        )  # fmt: skip
    if not (boxes.is_static and scores.is_static):
        return _suppress_by_looping(g, boxes, scores, most, overlap, least, center_point_box)
    if not center_point_box and floor is not None and floor >= 0:
        return None
    if floor is None or floor < 0:
        scores, least = _rank_scores(g, scores, least), g.const([0.0], DType.FLOAT32)
    boxes = _to_corners(g, boxes) if center_point_box else boxes
    overlap = g.const([0.0], DType.FLOAT32) if overlap is None else overlap
    return g.NonMaxSuppression(boxes, scores, most, overlap, least)


def _suppress_by_looping(g, boxes, scores, most, overlap, least, center_point_box: int):
    """What is found in each class of each batch, one after the other."""
    count, nothing = boxes.ranked_shape[1], g.const(np.zeros((0, 3), np.int64))
    classes = g.Shape(scores, start=1, end=2)
    inner, (turn, on, rows) = loop_body(g, [nothing])
    rows.shape = (None, 3)
    at = inner.Unsqueeze(turn, [0])
    batch, class_index = inner.Div(at, classes), inner.Mod(at, classes)
    one = inner.Gather(boxes, batch, axis=0), inner.Gather(g.Reshape(scores, [-1, count]), at)
    one = inner.Reshape(one[0], [1, count, 4]), inner.Reshape(one[1], [1, 1, count])
    index = inner.NonMaxSuppression(*one, most, overlap, least, center_point_box=center_point_box)
    index = inner.Add(index, inner.Concat(batch, class_index, [0], axis=0))
    body = inner.build([on, inner.Concat(rows, index, axis=0)])
    total = g.Squeeze(g.Mul(g.Shape(scores, end=1), classes), [0])
    return g.Loop(total, None, nothing, body=body)


def _rank_scores(g, scores: Value, least: Value | None):
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


def _to_corners(g, boxes: Value):
    """Corners of boxes given by their middle and size; one of a size below zero has no area."""
    middle = g.Slice(boxes, [0], [2], [2], [1])
    half = g.Mul(g.Max(g.Slice(boxes, [2], [4], [2], [1]), 0.0), 0.5)
    return g.Concat(g.Sub(middle, half), g.Add(middle, half), axis=2)


@writes("NonMaxSuppression", only={"center_point_box": (0,)})
def write_non_max_suppression(r, boxes, scores, most, overlap=None, least=None):
    """As many rows as TVM counts."""
    rows, count = _suppress_all(r, boxes, scores, most, overlap, least)
    end = r.concatenate(count, r.const([3], DType.INT64), axis=0)
    zeros, ones = (r.const([v, v], DType.INT64) for v in (0, 1))
    return r.dyn.strided_slice(rows, zeros, end, ones)


def _suppress_all(r, boxes, scores, most, overlap, least) -> tuple[Value, Value]:
    """A row for each box of each class, those that are kept in front, and how many these are.

    No limit is TVM's limit of 0.
    """
    floor = emit_scalar(r, number(least), DType.FLOAT32)
    limit = r.reshape(most, newshape=()) if most.rank else most
    rows, count = r.vision.all_class_non_max_suppression(
        boxes, scores, limit, emit_scalar(r, strict_bound(overlap), DType.FLOAT32), floor,
        output_format="onnx", outputs=2,
    )  # fmt: skip
    if number(most) is None:
        some = r.greater(r.reshape(most, newshape=(1,)), emit_scalar(r, 0, DType.INT64))
        count = r.multiply(count, r.cast(some, dtype="int64"))
    return rows, count


@legalizations("ScatterND")
def legalize_scatter_nd(g, x, index, updates, *, reduction: str):
    """One number at the batch and place of each box that NonMaxSuppression chose: a mask.

    Its size is static where that of the list of chosen boxes is not, so that TVM's graph executor
    runs it.
    """
    marks = find_marked(g.producer, index, updates)
    if marks is None or len(marks[0].inputs) != OPERANDS or reduction != "none" or g.is_inner:
        return None
    chosen, mark = marks
    boxes, scores, *_ = chosen.inputs
    assert boxes is not None and scores is not None
    if not (
        boxes.is_static
        and scores.is_static
        and x.ranked_shape == (boxes.static_shape[0], boxes.static_shape[1])
    ):
        return None
    (mask,) = g.foreign(DOMAIN, MASK, (*chosen.inputs, x, mark), {})
    return set_type(mask, x.dtype, x.shape)


@writes(MASK)
def write_mask(r, boxes, scores, most, overlap, least, x, update):
    """``update`` where a box is kept, ``x`` where none is; rows of no box are put behind."""
    rows, count = _suppress_all(r, boxes, scores, most, overlap, least)
    batches, each = x.static_shape
    total = batches * scores.static_shape[1] * each
    batch, box = (
        r.reshape(r.take(rows, r.const([i], DType.INT64), axis=1), newshape=(-1,)) for i in (0, 2)
    )
    place = r.add(r.multiply(batch, emit_scalar(r, each, DType.INT64)), box)
    kept = r.less(r.const(arrays.arange(total)), count)
    place = r.where(kept, place, emit_scalar(r, batches * each, DType.INT64))
    marks = marks_at(r, place, total, batches, each)
    return r.where(marks, r.reshape(update, newshape=(1, 1)), x)


def marks_at(r, places: Value, count: int, batches: int, each: int):
    """Whether each box is at one of ``count`` places; those behind all boxes are of none."""
    marks = r.scatter_elements(
        r.zeros(shape=(batches * each + 1,), dtype="int32"), places,
        r.ones(shape=(count,), dtype="int32"), axis=0, reduction="update",
    )  # fmt: skip
    marks = r.strided_slice(marks, begin=[0], end=[batches * each], strides=[1], axes=[0])
    return r.reshape(r.cast(marks, dtype="bool"), newshape=(batches, each))
