"""Non-maximum suppression, by a kernel that takes the boxes of one class.

NON_MAX_SUPPRESSION_V4 takes boxes of one score in any order, and those that do not overlap
themselves again and again. So ranks stand for scores, and boxes without an area are put elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.decompositions import loops
from serde.errors import require
from serde.ir import arrays
from serde.ir.builder import Builder, set_type
from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.dce import drop_dead
from serde.passes.suppression import ClassMarks, find_class_marks, find_marked, strict_bound
from serde.rewrite.driver import again
from serde.rewrite.rules import RuleTable
from serde.spec.expressions import number
from serde.spec.onnx_builder import OnnxBuilder
from serde.version_converter.adapters.nms import edges_of

from ..target import DOMAIN, TfliteBuilder, legalizations, writes

KEPT = "KeptBoxes"
FAR = 2.0**80  # beyond all boxes of images
LONGEST_SIDE = 2.0**60  # whose areas can be added


def mark_kept_boxes(graph: Graph) -> Graph:
    """The graph with masks of kept boxes made of kernels, which have no list of their places."""
    if "NonMaxSuppression" not in graph.operators():
        return graph
    return drop_dead(RuleTable("boxes", fallback=_mark).rewrite(graph, OnnxBuilder(graph.name)))


def _mark(g: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    assert isinstance(g, OnnxBuilder)
    if node.op != "ScatterND" or node.domain or node.attrs.get("reduction", "none") != "none":
        return again(g, node, inputs)
    by_class = find_class_marks(g.producer, Node(node.op, inputs, node.outputs, node.attrs))
    if by_class is not None and number(by_class.overlap) is not None:
        return _mark_by_class(g, by_class)
    marked = find_marked(g.producer, *inputs[1:])
    if marked is None:
        return again(g, node, inputs)
    (chosen, mark), x = marked, inputs[0]
    boxes, scores, *limits = (*chosen.inputs, None, None, None)[:5]
    assert boxes is not None and scores is not None and x is not None
    fits = boxes.is_static and scores.is_static and x.shape == boxes.static_shape[:2]
    if not fits or number(limits[0]) is None or None in map(number, limits[1:2]):
        return again(g, node, inputs)
    kept, _ = keep_boxes(g, boxes, scores, *limits, **chosen.attrs)
    return g.Where(g.Greater(g.ReduceMax(kept, [1], keepdims=0), 0.5), mark, x)


def keep_boxes(
    g, boxes: Value, scores: Value, most, overlap=None, least=None, *, center_point_box: int,
    by_rank: bool = False,
):  # fmt: skip
    """Which boxes are kept, as 1 and 0, in each class of each batch, and the boxes by rank.

    They are marked at their places, or at their ranks.
    """
    batches, classes, count = scores.static_shape
    order, keys = (g.Reshape(v, [-1, count]) for v in rank_boxes(g, scores, least))
    boxes = move_empty_boxes(g, boxes, center_point_box)
    ranks = g.const(arrays.arange(count, dtype=np.int32))
    inner, (turn, on) = loops.loop_body(g, [])
    these = inner.Gather(boxes, inner.Div(turn, classes), axis=0)
    places, key = (inner.Gather(v, turn, axis=0) for v in (order, keys))
    ranked = inner.Gather(these, places, axis=0)
    kept = mark_kept(inner, ranked, key, ranks if by_rank else places, most, overlap)
    trips = g.const(batches * classes, DType.INT64)
    all_kept = g.Loop(trips, True, body=inner.build([on, kept]))
    return g.Reshape(all_kept, [batches, classes, count]), order


@legalizations("NonMaxSuppression")
def legalize_non_max_suppression(
    g, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    """Rows of batch, class and box: the ranks that are kept in their order, and their boxes."""
    require(boxes.is_static and scores.is_static, "boxes of dynamic sizes. Give numbers (--static, "
            "--input)")  # fmt: skip
    limits = (most, g.const(0.0, DType.FLOAT32) if overlap is None else overlap)
    is_known = all(v is not None and number(v) is not None for v in limits)
    require(is_known and number(most) > 0, "limits that are computed, or of no boxes. "
            "Give positive numbers")  # fmt: skip
    kept, order = keep_boxes(
        g, boxes, scores, *limits, least, center_point_box=center_point_box, by_rank=True
    )
    ranks = g.Transpose(g.NonZero(kept), perm=(1, 0))
    places = g.GatherND(g.Reshape(order, list(scores.static_shape)), ranks)
    column = g.cast(g.Unsqueeze(places, [1]), DType.INT64)
    return g.Concat(g.slice_axis(ranks, 1, 0, 2), column, axis=1)


def rank_boxes(g, scores: Value, least: Value | None):
    """The boxes by falling score, and numbers that fall with their scores; 0 for lower scores."""
    count = scores.static_shape[-1]
    best, order = g.TopK(scores, [count], axis=-1, outputs=2)
    keys = g.const(arrays.arange(count, 0, -1, dtype=np.float32))
    if least is None:
        keys = g.Expand(keys, list(scores.static_shape))
    else:
        keys = g.Where(g.Greater(best, g.Reshape(least, [])), keys, 0.0)
    return g.cast(order, DType.INT32), keys


def move_empty_boxes(g, boxes: Value, center: int) -> Value:
    """Corners of boxes; those without an area each at a place of its own, far away."""
    edges = edges_of(g, boxes, center)
    sides = [g.Max(g.Sub(edges[at + 2], edges[at]), 0.0) for at in (0, 1)]
    is_box = g.And(g.Greater(g.Mul(*sides), 0.0), g.Less(g.Max(*sides), LONGEST_SIDE))
    corners = g.Concat(*(g.Unsqueeze(v, [2]) for v in edges), axis=2)
    far = make_far_boxes(boxes.static_shape[1])
    return g.Where(g.Unsqueeze(is_box, [2]), corners, far)  # type: ignore[no-any-return]


def make_far_boxes(count: int) -> np.ndarray[Any, Any]:
    """Boxes that cover neither one another nor others."""
    turns = arrays.arange(count, dtype=np.float32)[:, None]
    return turns * np.float32([2 * FAR, 0, 2 * FAR, 0]) + np.float32([FAR, 0, 2 * FAR, 1])


def mark_kept(
    g, boxes: Value, keys: Value, places: Value, most: Value | None, overlap: Value | None
) -> Value:  # fmt: skip
    """1 at the places of those of one class that are kept; those of the key 0 take no part."""
    limits = {"most": int(number(most) or 0), "overlap": float(strict_bound(overlap))}
    if limits["overlap"] > 1:  # no box covers another
        boxes, limits["overlap"] = g.const(make_far_boxes(keys.static_shape[0])), 1.0
    (kept,) = g.foreign(DOMAIN, KEPT, (boxes, keys, places), limits)
    return set_type(kept, DType.FLOAT32, keys.shape)


def _mark_by_class(g, marks: ClassMarks):
    """Boxes that bear their class: a turn for each number from the least of them to the largest."""
    count = marks.scores.static_shape[1]
    order, keys = rank_boxes(g, marks.scores, marks.least)
    boxes = move_empty_boxes(g, marks.boxes, marks.attrs["center_point_box"])
    classes = g.cast(marks.ids, DType.INT64)
    first, last = (g[op](classes, [0, 1], keepdims=0) for op in ("ReduceMin", "ReduceMax"))
    kept = []
    for at in range(marks.scores.static_shape[0]):
        places, ids, key = (g.Gather(v, at, axis=0) for v in (order, marks.ids, keys))
        ranked = g.Gather(g.Gather(boxes, at, axis=0), places, axis=0)
        of = g.Gather(ids, places, axis=0)
        none = g.const(np.zeros(count, np.float32))
        inner, (turn, on, before) = loops.loop_body(g, [none])
        is_one = inner.Equal(of, inner.cast_like(inner.Add(turn, first), of))
        keys_of_one = inner.Where(is_one, key, 0.0)
        some = mark_kept(inner, ranked, keys_of_one, places, g.const(count), marks.overlap)
        body = inner.build([on, inner.Max(before, some)])
        kept.append(g.Loop(g.Add(g.Sub(last, first), 1), True, none, body=body))
    mask = g.Concat(*(g.Unsqueeze(v, [0]) for v in kept), axis=0)
    return g.Where(g.Greater(mask, 0.5), marks.mark, marks.rest)


@writes(KEPT)
def write_kept_boxes(
    t: TfliteBuilder, boxes: Value, keys: Value, places: Value, *, most: int, overlap: float
):  # fmt: skip
    """The places of what the kernel lists as a mask; the list is filled up with one behind it."""
    (size,) = keys.static_shape
    count = min(most, size)
    chosen, total = t.emit("NON_MAX_SUPPRESSION_V4", [
        boxes, keys, t.const(np.asarray(count, np.int32)), t.const(np.asarray(overlap, np.float32)),
        t.const(np.asarray(0, np.float32)),
    ], {}, 2)  # fmt: skip
    set_type(chosen, DType.INT32, (count,))
    set_type(total, DType.INT32, ())
    is_chosen = t.make("LESS", [t.ints(range(count)), total], DType.BOOL, (count,))
    at = t.make("GATHER", [places, chosen], DType.INT32, (count,), axis=0)
    at = t.make("SELECT_V2", [is_chosen, at, t.const(np.asarray(size, np.int32))], DType.INT32,
                (count,))  # fmt: skip
    ones = t.const(np.ones(count, np.float32))
    marks = t.make("SCATTER_ND", [t.reshape(at, (count, 1)), ones, t.ints([size + 1])],
                   DType.FLOAT32, (size + 1,))  # fmt: skip
    return t.make("SLICE", [marks, t.ints([0]), t.ints([size])], DType.FLOAT32, (size,))
