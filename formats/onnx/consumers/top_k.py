"""TopK for runtimes that return equal elements in any order."""

from __future__ import annotations

from serde.ir.graph import DType
from serde.version_converter.adapters.common import size

from .illegal_forms import INT32


def rank_equal_elements(g, x, k, *, axis: int, largest: int, outputs: int):
    """TopK in the runtime, and where places are asked for, those of equal elements in order.

    All elements are ranked, each gets the number of the run of equal ones that it is in, and then
    pairs of that and the place are, as integers. Where these exceed 32 bits places stay as the
    runtime has them.
    """
    n = x.ranked_shape[axis]
    form = {"axis": axis, "largest": largest, "sorted": 1}
    values, places = g.as_is("TopK", (x, k), form, outputs=2)
    if outputs == 1:
        return values
    if isinstance(n, int) and n < 2:
        return values, places
    count = size(g, x, axis)
    most = g.Min(count, k)  # later runs are not returned
    is_narrow = g.LessOrEqual(count, g.Div(INT32.max, g.Add(most, 1)))
    if is_narrow.tensor is not None and not is_narrow.array().all():
        return values, places
    every, where = g.as_is("TopK", (x, count), form, outputs=2)
    later, earlier = g.Slice(every, [1], [INT32.max], [axis]), g.Slice(every, [0], [-1], [axis])
    is_new = g.cast(g.Not(g.Equal(later, earlier)), DType.INT32)
    order = g.cast(where, DType.INT32)
    first = g.Mul(g.Slice(order, [0], [1], [axis]), 0)
    runs = g.CumSum(g.Concat(first, is_new, axis=axis), g.const(axis, DType.INT32))
    most, count = g.cast(most, DType.INT32), g.cast(count, DType.INT32)
    pairs = g.Add(g.Mul(g.Min(runs, most), count), order)
    ranked = g.as_is("TopK", (pairs, k), {**form, "largest": 0}, outputs=2)[1]
    exact = g.GatherElements(where, ranked, axis=axis)
    return values, exact if is_narrow.tensor is not None else g.Where(is_narrow, exact, places)
