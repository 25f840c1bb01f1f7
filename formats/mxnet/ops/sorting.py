"""Sorting and the largest elements; of equal ones the first is first, in MXNet not always."""

from __future__ import annotations

from serde.decompositions.expressions import cast, full_like, scalar, shape_from, size_of
from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import Value

from ..rules import dtype_of, reads


def ordered(g, x: Value, axis: int | None, k: int, ascending):
    """The ``k`` extreme elements along an axis (of the flattened tensor where it is None), the most
    extreme first, and where they are; all elements where ``k`` is not above 0.
    """
    x = g.Reshape(x, [-1]) if axis is None else x
    at = 0 if axis is None else axis_of(axis, x.rank)
    count = shape_from(g, [size_of(g, x, at)]) if k <= 0 else [k]
    return g.TopK(x, count, axis=at, largest=int(not ascending), outputs=2)


@reads("sort")
def read_sort(g, x, *, axis: int | None = -1, is_ascend=True):
    return ordered(g, x, axis, 0, is_ascend)[0]


@reads("argsort")
def read_argsort(g, x, *, axis: int | None = -1, is_ascend=True, dtype="float32"):
    return cast(g, ordered(g, x, axis, 0, is_ascend)[1], dtype_of(dtype))


@reads("topk")
def read_topk(
    g, x, *, axis: int | None = -1, k=1, ret_typ="indices", is_ascend=False, dtype="float32"
):
    """Values, their places, both, or a mask of ones where they are."""
    values, places = ordered(g, x, axis, k, is_ascend)
    if ret_typ == "mask":
        flat = g.Reshape(x, [-1]) if axis is None else x
        at = 0 if axis is None else axis_of(axis, x.rank)
        ones = g.Expand(scalar(g, 1, x), g.Shape(places))
        mask = g.ScatterElements(full_like(g, flat, 0), places, ones, axis=at)
        return g.Reshape(mask, g.Shape(x))
    places = cast(g, places, dtype_of(dtype))
    found = {"value": values, "indices": places, "both": (values, places)}
    require(ret_typ in found, f"ret_typ={ret_typ!r} is unknown")
    return found[ret_typ]
