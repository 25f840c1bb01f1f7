"""Sorting and the largest elements; of equal ones the first is first, in MXNet not always."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import Value
from serde.rewrite.rules import Hint

from ..rules import dtype_of, reads, reads_second
from ..target import scalar_value, writes
from .dynamic_shapes import Sizes, align_to_axis, emit_arange, emit_iterations
from .reduction import FARTHEST


def sort_along(g, x: Value, axis: int | None, k: int, ascending):
    """The ``k`` extreme elements along an axis (of the flattened tensor where it is None), the most
    extreme first, and where they are; all elements where ``k`` is not above 0.
    """
    x = g.Reshape(x, [-1]) if axis is None else x
    at = 0 if axis is None else axis_of(axis, x.rank)
    count = g.shape_from([g.size_of(x, at)]) if k <= 0 else [k]
    return g.TopK(x, count, axis=at, largest=int(not ascending), outputs=2)


@reads("sort")
def read_sort(g, x, *, axis: int | None = -1, is_ascend=True):
    return sort_along(g, x, axis, 0, is_ascend)[0]


@reads_second("sort")
def read_second_sort(
    g, x, *, axis: int | None = -1, is_ascend: bool | None = None, is_ascend_s: bool | None = None
):
    """``np.sort`` of MXNet 2.0 writes ``is_ascend`` under another name."""
    return read_sort(g, x, axis=axis, is_ascend=False not in (is_ascend, is_ascend_s))


@reads("argsort")
def read_argsort(g, x, *, axis: int | None = -1, is_ascend=True, dtype="float32"):
    return g.cast(sort_along(g, x, axis, 0, is_ascend)[1], dtype_of(dtype))


@reads("topk")
def read_topk(
    g, x, *, axis: int | None = -1, k=1, ret_typ="indices", is_ascend=False, dtype="float32"
):
    """Values, their places, both, or a mask of ones where they are."""
    values, places = sort_along(g, x, axis, k, is_ascend)
    if ret_typ == "mask":
        flat = g.Reshape(x, [-1]) if axis is None else x
        at = 0 if axis is None else axis_of(axis, x.rank)
        ones = g.Expand(g.scalar(1, x), g.Shape(places))
        mask = g.ScatterElements(g.full_like(flat, 0), places, ones, axis=at)
        return g.Reshape(mask, g.Shape(x))
    places = g.cast(places, dtype_of(dtype))
    found = {"value": values, "indices": places, "both": (values, places)}
    require(ret_typ in found, f"ret_typ={ret_typ!r} is unknown")
    return found[ret_typ]


@writes("TopK", ignore=("sorted",))
def write_top_k(s, x, k=None, *, axis, largest, sizes: Hint[Sizes | None] = None):
    """MXNet's order of equal elements is any: all are sorted, and the places of equal ones again.

    A place gets the number of its run of equal elements in front, so that no two are equal.
    """
    count = scalar_value(k) if sizes is None else sizes[0]
    if x.ranked_shape[axis] == 1 and count is not None:
        return x, s.Cast(s.zeros_like(x), dtype="int64")
    frame = {"axis": axis, "k": 0, "is_ascend": not largest}
    values, places = s.topk(x, ret_typ="both", dtype="int64", outputs=2, **frame)
    before = s["_np_roll"](values, shift=(1,), axis=(axis,))
    changes = s.Cast(s.broadcast_not_equal(values, before), dtype="int64")
    runs = s["_mul_scalar"](s["_np_cumsum"](changes, axis=axis), scalar=FARTHEST)
    ordered = s.sort(s.broadcast_add(runs, places), axis=axis, is_ascend=True)
    parts = values, s.broadcast_sub(ordered, runs)
    if x.ranked_shape[axis] == count and count is not None:
        return parts
    if isinstance(count, int):
        return tuple(s.slice_axis(v, axis=axis, begin=0, end=count) for v in parts)
    turns = (
        emit_arange(s, count) if count is not None else emit_iterations(s, s.Reshape(k, shape=(1,)))
    )
    like = align_to_axis(s, turns, axis % x.rank, x.rank)
    return tuple(s.slice_like(v, like, axes=(axis,)) for v in parts)
