"""NonMaxSuppression."""

from __future__ import annotations

from serde.ir.graph import DType, Value

from . import decomposition
from .common import cast, count_range, make_full, scalar, size


def edges_of(g, boxes: Value, center_point_box: int):
    """Lower and upper edges of boxes along both axes: four tensors without the last axis."""
    a, b, c, d = (g.Gather(boxes, i, axis=2) for i in range(4))
    if center_point_box:
        rise, run = (g.Mul(v, 0.5) for v in (c, d))
        return g.Sub(a, rise), g.Sub(b, run), g.Add(a, rise), g.Add(b, run)
    return g.Min(a, c), g.Min(b, d), g.Max(a, c), g.Max(b, d)


def overlaps(g, edges):
    """Intersection over union of every two boxes of a batch."""
    rows, columns = ([g.Unsqueeze(v, [i]) for v in edges] for i in (2, 1))
    nothing = g.const(0.0, DType.FLOAT32)
    sides = [
        g.Max(g.Sub(g.Min(rows[i + 2], columns[i + 2]), g.Max(rows[i], columns[i])), nothing)
        for i in (0, 1)
    ]
    shared = g.Mul(*sides)
    areas = [g.Mul(g.Sub(v[2], v[0]), g.Sub(v[3], v[1])) for v in (rows, columns)]
    return g.Div(shared, g.Sub(g.Add(*areas), shared))


@decomposition(10, "NonMaxSuppression")
def suppress_by_looping(
    g, boxes: Value, scores: Value, most=None, overlap=None, least=None, *, center_point_box: int
):
    """Go through the boxes from the best score down; keep those that no kept one covers."""
    count = size(g, boxes, 1)
    most = g.const(0, DType.INT64) if most is None else most
    overlap = g.const(0.0, DType.FLOAT32) if overlap is None else overlap
    best, order = g.TopK(scores, count, axis=2, outputs=2)
    near = g.Greater(overlaps(g, edges_of(g, boxes, center_point_box)), scalar(g, overlap))
    rows = g.Reshape(cast(g, near, DType.FLOAT32), g.Concat([-1], count, axis=0))
    first = g.Unsqueeze(g.Mul(count_range(g, size(g, boxes, 0)), count), [1])  # row of a batch
    if least is None:
        open_ = make_full(g, True, g.Shape(best), DType.BOOL)
    else:
        open_ = g.Greater(best, scalar(g, least))
    rank = order.rank

    body = g.child("boxes")
    turn, go = body.input("i", DType.INT64, ()), body.input("go", DType.BOOL, ())
    kept = body.input("kept", DType.FLOAT32, scores.shape)  # by box
    here = body.Gather(order, turn, axis=2)  # (batches, classes)
    mine = body.Equal(body.Unsqueeze(here, [2]), body.Range(0, scalar(body, count), 1))
    mine = cast(body, mine, DType.FLOAT32)  # (batches, classes, boxes)
    covered = body.Gather(rows, body.Add(here, first), axis=0)  # (batches, classes, boxes)
    blocked = body.ReduceMax(body.Mul(covered, kept), [rank - 1], keepdims=1)
    full = body.Less(
        body.ReduceSum(kept, [rank - 1], keepdims=1), cast(body, scalar(body, most), DType.FLOAT32)
    )
    allowed = body.Unsqueeze(body.Gather(open_, turn, axis=2), [2])
    hit = body.And(body.And(allowed, full), body.Less(blocked, 0.5))
    grown = body.Add(kept, body.Mul(mine, cast(body, hit, DType.FLOAT32)))
    graph = body.build([body.Identity(go), grown, body.Squeeze(hit, [2])])

    nothing = make_full(g, 0.0, g.Shape(scores), DType.FLOAT32)
    _, hits = g.Loop(scalar(g, count), True, nothing, body=graph, outputs=2)
    indices = g.NonZero(cast(g, g.Transpose(hits, perm=(1, 2, 0)), DType.FLOAT32))
    batch, kind, turns = (g.Gather(indices, [i], axis=0) for i in range(3))
    places = g.Add(g.Mul(g.Add(g.Mul(batch, size(g, scores, 1)), kind), count), turns)
    box = g.Gather(g.Reshape(order, [-1]), places, axis=0)
    return g.Transpose(g.Concat(batch, kind, box, axis=0), perm=(1, 0))
