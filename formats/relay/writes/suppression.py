"""Non-maximum suppression by TVM's own operator, where it computes what ONNX asks for."""

from __future__ import annotations

import numpy as np

from serde.decompositions.expressions import number
from serde.decompositions.loops import turning
from serde.ir.graph import DType, Node, Value

from ..target import DOMAIN, scalar, typed, writes
from .recast import recasts

MASK = "SuppressionMask"
OPERANDS = 5


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
        return g.decompose(
            "NonMaxSuppression", 10, boxes, scores, most, overlap, least,
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
    """As many rows as TVM counts."""
    rows, count = _all_rows(r, boxes, scores, most, overlap, least)
    end = r.concatenate(count, r.const([3], DType.INT64), axis=0)
    zeros, ones = (r.const([v, v], DType.INT64) for v in (0, 1))
    return r.dyn.strided_slice(rows, zeros, end, ones)


def _all_rows(r, boxes, scores, most, overlap, least) -> tuple[Value, Value]:
    """A row for each box of each class, those that are kept in front, and how many these are.

    No limit is TVM's limit of 0.
    """
    floor = scalar(r, number(least), DType.FLOAT32)
    limit = r.reshape(most, newshape=()) if most.rank else most
    rows, count = r.vision.all_class_non_max_suppression(
        boxes, scores, limit, scalar(r, strict_bound(overlap), DType.FLOAT32), floor,
        output_format="onnx", outputs=2,
    )  # fmt: skip
    if number(most) is None:
        some = r.greater(r.reshape(most, newshape=(1,)), scalar(r, 0, DType.INT64))
        count = r.multiply(count, r.cast(some, dtype="int64"))
    return rows, count


def strict_bound(overlap: Value | None) -> np.float32:
    """TVM's bound of an overlap: ONNX suppresses what overlaps more, TVM what overlaps as much."""
    bound = np.float32(number(overlap) or 0)
    return max(np.nextafter(bound, np.float32(np.inf)), np.finfo(np.float32).tiny)


@recasts("ScatterND")
def recast_scatter_nd(g, x, index, updates, *, reduction: str):
    """One number at the batch and place of each box that NonMaxSuppression chose: a mask.

    Its size is static where that of the list of chosen boxes is not, so that TVM's graph executor
    runs it.
    """
    chosen, number_ = _choice_of(g, index), _spread_number(g, updates)
    if chosen is None or number_ is None or reduction != "none" or g.is_inner:
        return None
    boxes, scores, *_ = chosen.inputs
    assert boxes is not None and scores is not None
    if not (boxes.is_static and scores.is_static and x.known == (boxes.dims[0], boxes.dims[1])):
        return None
    (mask,) = g.foreign(DOMAIN, MASK, (*chosen.inputs, x, number_), {})
    return typed(mask, x.dtype, x.shape)


def _choice_of(g, index: Value) -> Node | None:
    """The NonMaxSuppression of whose rows ``index`` has the batch and the box."""
    pairs = g.made(index)
    if pairs is None or pairs.op != "Gather" or pairs.attrs.get("axis") != 1:
        return None
    rows, columns = pairs.inputs
    chosen = g.made(rows)
    picked = columns.tensor is not None and columns.ints() == (0, 2)
    found = chosen is not None and not chosen.domain and chosen.op == "NonMaxSuppression"
    return chosen if picked and found and len(chosen.inputs) == OPERANDS else None


def _spread_number(g, updates: Value) -> Value | None:
    """The one number that ``updates`` holds throughout."""
    spread = g.made(updates)
    given = spread.inputs[0] if spread is not None and spread.op == "Expand" else None
    return given if given is not None and given.known in ((), (1,)) else None


@writes(MASK)
def write_mask(r, boxes, scores, most, overlap, least, x, update):
    """``update`` where a box is kept, ``x`` where none is; rows of no box are put behind."""
    rows, count = _all_rows(r, boxes, scores, most, overlap, least)
    batches, each = x.dims
    total = batches * scores.dims[1] * each
    batch, box = (
        r.reshape(r.take(rows, r.const([i], DType.INT64), axis=1), newshape=(-1,)) for i in (0, 2)
    )
    place = r.add(r.multiply(batch, scalar(r, each, DType.INT64)), box)
    kept = r.less(r.const(np.arange(total)), count)
    place = r.where(kept, place, scalar(r, batches * each, DType.INT64))
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
