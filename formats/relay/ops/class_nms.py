"""Non-maximum suppression of boxes that bear their class, without an axis of classes.

ONNX's operator has such an axis. Its size is dynamic where the classes are numbers in the data,
and TVM's graph executor runs static shapes only; ``vision.non_max_suppression`` reads the class of
each box.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serde.ir import arrays
from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.dce import drop_dead
from serde.passes.suppression import ClassMarks, find_class_marks, strict_bound
from serde.spec.expressions import number

from ..target import DOMAIN, emit_scalar, writes
from .nms import marks_at

CLASS_MASK = "ClassSuppressionMask"


def mark_by_class(graph: Graph) -> Graph:
    """Make one node of a NonMaxSuppression of boxes by class and the mask of those it keeps."""
    makers = {v: n for n in graph.nodes for v in n.outputs}
    nodes = tuple(_as_mask(n, find_class_marks(makers.get, n)) for n in graph.nodes)
    if all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return graph
    return drop_dead(replace(graph, nodes=nodes))


def _as_mask(node: Node, marks: ClassMarks | None) -> Node:
    if marks is None:
        return node
    return replace(node, op=CLASS_MASK, domain=DOMAIN, inputs=marks[:-1], attrs=marks.attrs)


@writes(CLASS_MASK)
def write_class_mask(r, boxes, scores, ids, overlap, least, x, update, *, center_point_box: int):
    """``update`` where a box is kept, ``x`` where none is.

    TVM takes scores above 0 only, as which the places in order serve; it keeps boxes of others,
    and compares none of a class below 0.
    """
    batches, each = x.static_shape
    falling = np.broadcast_to(arrays.arange(each, 0, -1, dtype=np.float32), (batches, each))
    order = r.argsort(scores, axis=1, is_ascend=False, dtype="int32")
    ranks = r.scatter_elements(
        r.zeros(shape=(batches, each), dtype="float32"), order, r.const(falling), axis=1,
        reduction="update",
    )  # fmt: skip
    ids = r.cast(ids, dtype="float32")
    is_int = r.equal(ids, r.floor(ids))
    valid = r.logical_and(is_int, r.greater(scores, emit_scalar(r, number(least), scores.type)))
    key = r.where(valid, ranks, emit_scalar(r, 0, DType.FLOAT32))
    kind = r.subtract(ids, r.min(ids))
    parts = (r.expand_dims(v, axis=2) for v in (kind, key))
    rows = r.concatenate(*parts, _corners(r, boxes) if center_point_box else boxes, axis=2)
    places, _ = r.vision.non_max_suppression(
        rows, r.const(arrays.full(batches, each, np.int32)),
        r.const(arrays.tile(arrays.arange(each, dtype=np.int32), (batches, 1))),
        emit_scalar(r, -1, DType.INT32), emit_scalar(r, strict_bound(overlap), DType.FLOAT32),
        outputs=2, force_suppress=False, top_k=-1, coord_start=2, score_index=1, id_index=0,
        return_indices=True, invalid_to_bottom=False,
    )  # fmt: skip
    places = r.cast(places, dtype="int64")
    before = r.const(arrays.arange(batches, dtype=np.int64)[:, None] * each)
    is_kept = r.greater_equal(places, emit_scalar(r, 0, DType.INT64))
    behind = emit_scalar(r, batches * each, DType.INT64)
    place = r.where(is_kept, r.add(places, before), behind)
    marks = marks_at(r, r.reshape(place, newshape=(-1,)), batches * each, batches, each)
    return r.where(r.logical_and(marks, valid), r.reshape(update, newshape=(1, 1)), x)


def _corners(r, boxes: Value):
    """Corners of boxes given by their middle and size; one of a size below zero has no area."""
    middle, size = (
        r.strided_slice(boxes, begin=[at], end=[at + 2], strides=[1], axes=[2]) for at in (0, 2)
    )
    half = r.multiply(
        r.maximum(size, emit_scalar(r, 0, DType.FLOAT32)), emit_scalar(r, 0.5, DType.FLOAT32)
    )
    return r.concatenate(r.subtract(middle, half), r.add(middle, half), axis=2)
