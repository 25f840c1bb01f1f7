"""Running sums and products along an axis."""

from __future__ import annotations

from typing import Any

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value
from serde.spec.expressions import number

from ..rules import reads
from ..target import legalizations, writes


def running_sum(g, x: Value, axis: int, exclusive: bool):
    return g.CumSum(x, axis, exclusive=int(exclusive))


def running_product(g, x: Value, axis: int, exclusive: bool):
    """Products of 2, 4, 8, … neighbours, until they reach from end to end."""
    size: Any = x.ranked_shape[axis]
    require(isinstance(size, int), "cumprod along an axis of unknown size")
    one, reach = g.scalar(1, x), 1
    if exclusive:
        x = shift_along(g, x, axis, 1, one)
    while reach < size:
        x = g.Mul(x, shift_along(g, x, axis, reach, one))
        reach *= 2
    return x


def shift_along(g, x: Value, axis: int, by: int, fill: Value):
    pads = [0] * 2 * x.rank
    pads[axis] = by
    return g.slice_axis(g.Pad(x, pads, fill), axis, 0, x.ranked_shape[axis])


@reads.for_each({"cumsum": running_sum, "cumprod": running_product})
def read_scan(
    running, g, x, *, axis: int | None = None, dtype: DType | None = None, exclusive=False
):
    """Without an axis the tensor is taken as one row."""
    if axis is None:
        x, axis = g.Reshape(x, [-1]), 0
    target = dtype or x.type
    work = target if target.kind == "f" else DType.INT64
    y = running(g, g.cast(x, work), axis_of(axis, x.rank), bool(exclusive))
    return g.cast(y, target)


@legalizations.for_each(("CumSum", "CumProd"))
def legalize_running(op, g, x, axis, **how):
    """Along a dynamic axis: along each axis, of which one is taken."""
    if number(axis) is not None:
        return None
    at = g.Reshape(g.cast(axis, DType.INT64), [])
    at = g.Where(g.Less(at, 0), g.Add(at, x.rank), at)
    y = x
    for along in range(x.rank):
        y = g.Where(g.Equal(at, along), g[op](x, g.const(along, DType.INT64), **how), y)
    return y


@writes.for_each({"CumSum": "cumsum", "CumProd": "cumprod"})
def write_running(name, r, x, axis, *, exclusive: int, reverse: int):
    along = number(axis)
    require(along is not None, "a running sum along a dynamic axis")
    along, dtype = along % x.rank, x.type.value
    y = r[name](
        reverse_axis(r, x, along) if reverse else x, axis=along, exclusive=exclusive, dtype=dtype
    )
    return reverse_axis(r, y, along) if reverse else y


def reverse_axis(r, x: Value, axis: int) -> Value:
    """The elements along one axis from the last to the first."""
    ends = {"begin": (-1,), "end": (-(2**31) + 1,), "strides": (-1,), "axes": (axis,)}
    return r.reverse(x, axis=axis) if x.is_static else r.strided_slice(x, **ends)
