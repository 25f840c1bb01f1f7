"""NonMaxSuppression, by MXNet's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from serde.errors import require
from serde.ir.graph import Graph, Node, Value
from serde.version_converter.adapters.nms import suppress_by_looping

from ..target import number, writes
from .sizes import along
from .spelling import spells

LOWEST = -3.4028234663852886e38  # of float32
MASK = "SuppressionMask"
DOMAIN = "mxnet"
OPERANDS = 5


@spells("NonMaxSuppression")
def spell_suppression(
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


def masked(graph: Graph) -> Graph:
    """The graph with marks put where NonMaxSuppression chose boxes made at once.

    A list of boxes may be empty, which no tensor of MXNet is; the marks never are.
    """
    if not any(node.op == "NonMaxSuppression" for node in graph.nodes):
        return graph
    made = {v: node for node in graph.nodes for v in node.outputs}
    marks = {node: mark for node in graph.nodes if (mark := _mark(node, made)) is not None}
    return replace(graph, nodes=tuple(marks.get(n, n) for n in graph.nodes)) if marks else graph


def _mark(node: Node, made: Mapping[Value, Node]) -> Node | None:
    """What a ScatterND of one number at the batch and place of each chosen box amounts to."""
    if node.op != "ScatterND" or node.domain or node.attrs.get("reduction", "none") != "none":
        return None
    data, at, what = node.inputs
    pairs, spread = made.get(at), made.get(what)
    if pairs is None or spread is None or (pairs.op, spread.op) != ("Gather", "Expand"):
        return None
    (rows, columns), update = pairs.inputs, spread.inputs[0]
    chosen = made.get(rows)
    if chosen is None or chosen.op != "NonMaxSuppression":
        return None
    if update is None or update.known not in ((), (1,)):
        return None
    in_pairs = columns is not None and columns.tensor is not None and columns.ints() == (0, 2)
    operands = (*chosen.inputs, *(None,) * OPERANDS)[:OPERANDS]
    if not in_pairs or pairs.attrs.get("axis") != 1 or not _are_numbers(*operands[3:]):
        return None
    return replace(
        node, op=MASK, domain=DOMAIN, attrs=chosen.attrs, inputs=(*operands, data, update)
    )


@writes("NonMaxSuppression")
def write_suppression(
    s, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    """Rows of batch, class and box, of those that are kept."""
    places, chosen, kept = _kept(s, boxes, scores, most, overlap, least, center_point_box)
    rows = s.Reshape(s.Concat(*places[:2], chosen, dim=3, num_args=3), shape=(-1, 3))
    return s.Cast(s["_contrib_boolean_mask"](rows, s.Reshape(kept, shape=(-1,))), dtype="int64")


@writes(MASK)
def write_mask(s, boxes, scores, most, overlap, least, data, update, *, center_point_box: int):
    """``update`` where a box is kept, ``data`` where none is.

    Where sizes are known, kept boxes are put in their places, and others behind the last.
    """
    (batch, _, place), chosen, kept = _kept(
        s, boxes, scores, most, overlap, least, center_point_box
    )
    rows, count = data.known
    if isinstance(rows, int) and isinstance(count, int):
        batch, whole = (s.Cast(v, dtype="int32") for v in (batch, chosen))
        flat = s.broadcast_add(s["_mul_scalar"](batch, scalar=count), whole)
        behind = s["_full"](shape=(1, 1, 1, 1), value=rows * count, dtype="int32")
        at = s.where(kept, flat, s.broadcast_like(behind, flat))
        ones = s.Reshape(s.ones_like(kept), shape=(-1,))
        hit = s.scatter_nd(ones, s.Reshape(at, shape=(1, -1)), shape=(rows * count + 1,))
        hit = s.Reshape(s.slice_axis(hit, axis=0, begin=0, end=-1), shape=(rows, count))
    else:
        own = s.broadcast_equal(place, s.transpose(chosen, axes=(0, 1, 3, 2)))
        own = s.broadcast_mul(own, s.transpose(kept, axes=(0, 1, 3, 2)))
        hit = s.max(own, axis=(1, 3))
    return s.where(hit, s.broadcast_like(s.Reshape(update, shape=(1, 1)), data), data)


def _kept(s, boxes, scores, most, overlap, least, center_point_box: int):
    """Where each row is (batch, class, rank), the box it is of, and whether it is kept.

    All are (batch, class, count, 1). MXNet's operator gives rows that are kept by falling score,
    and rows of -1 behind them.
    """
    require(most is not None, "no boxes at all: 'max_output_boxes_per_class' is 0")
    form = "center" if center_point_box else "corner"
    if not center_point_box:
        a, b = (s.slice_axis(boxes, axis=2, begin=i, end=i + 2) for i in (0, 2))
        boxes = s.Concat(s.broadcast_minimum(a, b), s.broadcast_maximum(a, b), dim=2, num_args=2)
    if least is None:  # even those of no score take part
        scores = s["_maximum_scalar"](scores, scalar=LOWEST)
    scores = s.expand_dims(scores, axis=3)
    boxes = s.broadcast_like(s.expand_dims(boxes, axis=1), scores, lhs_axes=(1,), rhs_axes=(1,))
    places = [_numbered(s, scores, axis) for axis in range(3)]
    found = s["_contrib_box_nms"](
        s.Concat(places[2], scores, boxes, dim=3, num_args=3),
        overlap_thresh=0.0 if overlap is None else number(overlap),
        valid_thresh="-inf" if least is None else number(least),
        coord_start=2, score_index=1, force_suppress=True, in_format=form, out_format=form,
    )  # fmt: skip
    chosen = s.slice_axis(found, axis=3, begin=0, end=1)
    limit = s.Cast(s.Reshape(most, shape=(1, 1, 1, 1)), dtype="float32")
    within = s.broadcast_lesser(places[2], limit)
    return places, chosen, s.broadcast_mul(s["_greater_equal_scalar"](chosen, scalar=0), within)


def _numbered(s, like, axis: int):
    """The places along an axis, in the shape of ``like``."""
    return s.broadcast_like(along(s, s["_contrib_arange_like"](like, axis=axis), axis, 4), like)
