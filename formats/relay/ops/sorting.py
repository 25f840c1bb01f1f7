"""Order along an axis."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value
from serde.spec.expressions import number
from serde.spec.schema import ELEMENT_CODES

from ..rules import reads
from ..target import legalizations, writes
from .shape import axis_size

SORTED = {  # types TVM does not sort, and those that do for them
    DType.FLOAT16: DType.FLOAT32,
    DType.INT8: DType.INT32,
    DType.INT16: DType.INT32,
    DType.UINT8: DType.INT32,
    DType.UINT16: DType.INT32,
    DType.UINT32: DType.INT64,
    DType.UINT64: DType.INT64,
}


def sort_along(g, x: Value, axis: int, count, ascending: bool):
    """The first ``count`` values in order, and where they were; equal ones as they stood."""
    work = x
    if x.type.kind in "iub" and x.type not in (DType.INT32, DType.INT64):
        work = g.cast(x, DType.INT64)
    values, where = g.TopK(work, count, axis=axis, largest=int(not ascending), sorted=1, outputs=2)
    return g.cast(values, x.type), where


@reads("sort", ignore=("dtype",))
def read_sort(g, x, *, axis=-1, is_ascend=True):
    axis = axis_of(axis, x.rank)
    return sort_along(g, x, axis, axis_size(g, x, axis), is_ascend)[0]


@reads("argsort")
def read_argsort(g, x, *, axis=-1, is_ascend=True, dtype: DType | None = None):
    axis = axis_of(axis, x.rank)
    return g.cast(sort_along(g, x, axis, axis_size(g, x, axis), is_ascend)[1], dtype or DType.INT32)


@reads("topk")
def read_topk(
    g, x, *, k: int = 1, axis=-1, ret_type="both", is_ascend=False, dtype: DType | None = None
):
    axis = axis_of(axis, x.rank)
    count = axis_size(g, x, axis) if k < 1 else g.const([k], DType.INT64)
    return select_results(g, sort_along(g, x, axis, count, is_ascend), ret_type, dtype)


@reads("dyn.topk", ignore=("k",))
def read_dyn_topk(
    g, x, k, *, axis=-1, ret_type="both", is_ascend=False, dtype: DType | None = None
):
    axis = axis_of(axis, x.rank)
    count = g.Reshape(g.cast(k, DType.INT64), [1])
    return select_results(g, sort_along(g, x, axis, count, is_ascend), ret_type, dtype)


def select_results(g, both, ret_type: str, dtype: DType | None):
    require(ret_type in ("both", "values", "indices"), f"ret_type={ret_type!r} is unknown")
    values, where = both[0], g.cast(both[1], dtype or DType.INT32)
    return {"both": (values, where), "values": values, "indices": where}[ret_type]


@reads("unique")
def read_unique(g, x, *, sorted=True, return_counts=False):
    """The values lead as many places as there are; TVM leaves the rest as it happens to be."""
    work = x if x.type.kind == "f" or x.type is DType.INT8 else g.cast(x, DType.INT64)
    values, first, inverse, counts = g.Unique(work, axis=0, sorted=int(sorted), outputs=4)
    total = g.cast(g.Shape(values), DType.INT32)
    size = axis_size(g, x, 0)

    def fill(v, dtype):
        zeros = g.Expand(g.const([0], v.type), size)
        ends = g.Slice(g.Concat(v, zeros, axis=0), [0], size, [0], [1])
        return g.cast(ends, dtype)

    outputs = (fill(values, x.type), fill(first, DType.INT32), g.cast(inverse, DType.INT32),
               total)  # fmt: skip
    return (*outputs, fill(counts, DType.INT32)) if return_counts else outputs


@reads("searchsorted")
def read_searchsorted(g, rows, values, *, right=False, dtype: DType | None = None):
    """How many of a row, sorted, lie before each value (or are equal to it, with ``right``)."""
    columns = g.Unsqueeze(values, [values.rank])
    if rows.rank > 1:
        rows = g.Unsqueeze(rows, [rows.rank - 1])
    before = g.LessOrEqual(rows, columns) if right else g.Less(rows, columns)
    total = g.ReduceSum(g.cast(before, DType.INT32), [values.rank], keepdims=0)
    return g.cast(total, dtype or DType.INT32)


@legalizations("TopK")
def legalize_top_k(g, x, k, *, axis: int, largest: int, sorted: int, outputs: int = 1):
    """Of the types TVM sorts; the order of unsigned numbers is that of signed ones half as far.

    TVM takes a ``k`` of 0 for all.
    """
    if k.tensor is not None and k.ints() == (0,):
        none = g.Slice(x, [0], [0], [axis], [1])
        return (none, g.cast(none, DType.INT64)) if outputs > 1 else none
    kind = SORTED.get(x.type)
    if kind is None:
        return None
    form = {"axis": axis, "largest": largest, "sorted": sorted, "outputs": 2}
    if x.type is not DType.UINT64:
        values, at = g.TopK(g.cast(x, kind), k, **form)
        values = g.cast_like(values, x)
        return (values, at) if outputs > 1 else values
    half = g.const(np.array(1 << 63, np.uint64))
    signed = g.BitCast(g.BitwiseXor(x, half), to=ELEMENT_CODES[kind])
    values, at = g.TopK(signed, k, **form)
    values = g.BitwiseXor(g.BitCast(values, to=ELEMENT_CODES[x.type]), half)
    return (values, at) if outputs > 1 else values


@writes("TopK", ignore=("sorted",))
def write_top_k(r, x, k, *, axis: int, largest: int):
    count = number(k)
    form = {"axis": axis, "is_ascend": not largest, "dtype": "int64", "outputs": 2}
    if count is None:
        return r.dyn.topk(x, r.reshape(k, newshape=(1,)), **form)
    return r.topk(x, k=count, **form)
