"""Rows that are taken together by numbers of segments."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value

from ..rules import reads
from .shapes import long

REDUCTIONS = {
    "UNSORTED_SEGMENT_MAX": "max", "UNSORTED_SEGMENT_MIN": "min", "UNSORTED_SEGMENT_PROD": "mul",
    "UNSORTED_SEGMENT_SUM": "add",
}  # fmt: skip


@reads.for_each(REDUCTIONS)
def read_unsorted_segment(reduction, g, x, ids, count):
    """Rows of segments below 0 are left out: they go to one more segment, which is cut off."""
    return reduce_segments(g, x, ids, count.ints()[0], reduction)


@reads("SEGMENT_SUM")
def read_segment_sum(g, x, ids):
    require(ids.tensor is not None, "computed numbers of segments. Make them constants")
    return reduce_segments(g, x, ids, int(ids.array().max(initial=-1)) + 1, "add")


def first_number(reduction: str, dtype: DType) -> float:
    """What changes nothing in a reduction; of extremes the end of the type's range."""
    if reduction in ("add", "mul"):
        return float(reduction == "mul")
    info = np.finfo(dtype.numpy) if dtype.kind == "f" else np.iinfo(dtype.numpy)
    return float(info.min if reduction == "max" else info.max)


def reduce_segments(g, x: Value, ids: Value, count: int, reduction: str):
    rest = g.sizes_of(x)[ids.rank :]
    start = g.scalar(first_number(reduction, x.type), x)
    whole = g.Expand(start, g.shape_from([count + 1, *rest]))
    numbers = long(g, ids)
    is_outside = g.Less(numbers, g.const(0, DType.INT64))
    places = g.Unsqueeze(g.Where(is_outside, g.const(count, DType.INT64), numbers), [ids.rank])
    return g.slice_axis(g.ScatterND(whole, places, x, reduction=reduction), 0, 0, count)
