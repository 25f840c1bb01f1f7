"""Sorting and the largest elements; of equal ones the first is first, in MXNet not always."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint

from ..rules import dtype_of, reads, reads_second
from ..target import TYPES, scalar_value, writes
from .cumulative import emit_cumsum
from .dynamic_shapes import Sizes, align_to_axis, emit_arange, emit_iterations
from .reduction import FARTHEST
from .slicing import flatten_without_axis

# Types of places that releases have, the best first, and what those releases sort.
SORTED = {"int64": TYPES, "int32": TYPES - {DType.FLOAT16}, None: {DType.FLOAT32}}


def sort_along(g, x: Value, axis: int | None, k: int, ascending):
    """The ``k`` extreme elements along an axis (of the flattened tensor where it is None), the most
    extreme first, and where they are; all elements where ``k`` is not above 0.
    """
    x, at = flatten_without_axis(g, x, axis)
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


@reads_second("argsort")
def read_second_argsort(
    g, x, *, axis: int | None = -1, is_ascend: bool | None = None, is_ascend_s: bool | None = None,
    dtype="float32",
):  # fmt: skip
    ascending = False not in (is_ascend, is_ascend_s)
    return read_argsort(g, x, axis=axis, is_ascend=ascending, dtype=dtype)


@reads("topk")
def read_topk(
    g, x, *, axis: int | None = -1, k=1, ret_typ="indices", is_ascend=False, dtype="float32"
):
    """Values, their places, both, or a mask of ones where they are."""
    values, places = sort_along(g, x, axis, k, is_ascend)
    if ret_typ == "mask":
        flat, at = flatten_without_axis(g, x, axis)
        ones = g.Expand(g.scalar(1, x), g.Shape(places))
        mask = g.ScatterElements(g.full_like(flat, 0), places, ones, axis=at)
        return g.Reshape(mask, g.Shape(x))
    places = g.cast(places, dtype_of(dtype))
    choices = {"value": values, "indices": places, "both": (values, places)}
    require(ret_typ in choices, f"ret_typ={ret_typ!r} is unknown")
    return choices[ret_typ]


@writes("TopK", ignore=("sorted",))
def write_top_k(s, x, k=None, *, axis, largest, sizes: Hint[Sizes | None] = None):
    """MXNet's order of equal elements is any: all are sorted, and the places of equal ones again.

    A place gets the number of its run of equal elements in front, so that no two are equal.
    """
    count = scalar_value(k) if sizes is None else sizes[0]
    if x.ranked_shape[axis] == 1 and count is not None:
        return x, s.Cast(s.zeros_like(x), dtype="int64")
    frame = {"axis": axis, "k": 0, "is_ascend": not largest}
    kind, farthest = ordering_type(s, x, axis)
    values, places = emit_topk(s, x, kind, **frame)
    before = emit_roll(s, values, axis)
    changes = s.Cast(s.broadcast_not_equal(values, before), dtype=kind)
    sums = emit_cumsum(s, changes, axis, x.ranked_shape[axis])
    runs = s["_mul_scalar"](sums, scalar=farthest)
    ordered = s.sort(s.broadcast_add(runs, places), axis=axis, is_ascend=True)
    first = s.broadcast_sub(ordered, runs)
    parts = values, first if kind == "int64" else s.Cast(first, dtype="int64")
    if x.ranked_shape[axis] == count and count is not None:
        return parts
    if isinstance(count, int):
        return tuple(s.slice_axis(v, axis=axis, begin=0, end=count) for v in parts)
    turns = (
        emit_arange(s, count) if count is not None else emit_iterations(s, s.Reshape(k, shape=(1,)))
    )
    like = align_to_axis(s, turns, axis % x.rank, x.rank)
    return tuple(s.slice_like(v, like, axes=(axis,)) for v in parts)


def ordering_type(s, x, axis: int) -> tuple[str, int]:
    """What places are sorted as, and what is more than any: MXNet 1.2 sorts float32 only."""
    if s.release.has("topk", dtype="int32"):
        return "int64", FARTHEST
    size = x.ranked_shape[axis]
    few = isinstance(size, int) and size**2 <= 1 << 24
    require(few, f"MXNet {s.release.name} sorts float32 only, which cannot order {size} places")
    return "float32", size


def emit_topk(s, x, kind: str, **frame):
    """All elements in their order, and where they were as numbers of a type."""
    place_dtype = next((k for k in SORTED if s.release.has("topk", dtype=k)), None)
    narrow = x.type not in SORTED[place_dtype] and x.type in (
        DType.FLOAT16,
        DType.INT8,
        DType.UINT8,
    )
    require(
        narrow or x.type in SORTED[place_dtype], f"MXNet {s.release.name} sorts no {x.type.value}"
    )
    keys = s.Cast(x, dtype="float32") if narrow else x
    values, places = s.topk(keys, ret_typ="both", dtype=place_dtype, outputs=2, **frame)
    values = s.Cast(values, dtype=x.type.value) if narrow else values
    return values, places if kind == place_dtype else s.Cast(places, dtype=kind)


def emit_roll(s, x, axis: int):
    """Each element one further, and the last one first."""
    if s.release.has("_np_roll"):
        return s["_np_roll"](x, shift=(1,), axis=(axis,))
    ends = ((-1, "None"), (0, -1))
    parts = [s.slice_axis(x, axis=axis, begin=begin, end=end) for begin, end in ends]
    return s.Concat(*parts, dim=axis, num_args=2)
