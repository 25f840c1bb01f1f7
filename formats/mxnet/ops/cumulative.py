"""Sums and differences along an axis, polynomials and percentiles."""

from __future__ import annotations

from functools import reduce

import numpy as np

from serde.errors import ConversionError, require
from serde.ir.geometry import Ints, axes_of, axis_of, other_axes
from serde.ir.graph import BYTES, Dim, DType, Value
from serde.spec.expressions import END, Size

from ..rules import dtype_of, reads
from ..target import legalizations, writes
from .slicing import FAR, flatten_without_axis


@reads("_np_cumsum", "_npi_cumsum")
def read_cumsum(g, x, *, axis: int | None = None, dtype: str | None = None):
    """Booleans are counted in int64; without an axis the tensor is flattened."""
    kind = dtype_of(dtype) if dtype else DType.INT64 if x.dtype is DType.BOOL else x.type
    x, at = flatten_without_axis(g, x, axis)
    sum_dtype = DType.INT32 if kind in BYTES else kind
    return g.cast(g.CumSum(g.cast(x, sum_dtype), at), kind)


def difference(g, x: Value, axis: int):
    """Each element less the one before it."""
    return g.Sub(g.slice_axis(x, axis, 1, FAR), g.slice_axis(x, axis, 0, -1))


@reads("_npi_diff", only={"n": (1,)})
def read_diff(g, x, *, axis=-1):
    return difference(g, x, axis_of(axis, x.rank))


@reads("_npi_ediff1d", ignore=("to_begin_arr_given", "to_end_arr_given"))
def read_ediff1d(
    g, x, first=None, second=None, *, to_begin_arr_given=False, to_end_arr_given=False,
    to_begin_scalar: float | None = None, to_end_scalar: float | None = None,
):  # fmt: skip
    """Differences of the flattened tensor, between what is to stand before and behind them."""
    operands = [v for v in (first, second) if v is not None]
    begin = operands.pop(0) if to_begin_arr_given else None
    end = operands.pop(0) if to_end_arr_given else None
    twice = (begin, to_begin_scalar), (end, to_end_scalar)
    require(all(None in pair for pair in twice), "a tensor and a number for one end")
    if to_begin_scalar is not None:
        begin = g.scalar(to_begin_scalar, x)
    if to_end_scalar is not None:
        end = g.scalar(to_end_scalar, x)
    parts = [begin, difference(g, g.Reshape(x, [-1]), 0), end]
    return g.Concat(*(g.Reshape(p, [-1]) for p in parts if p is not None), axis=0)


@reads("_npi_polyval")
def read_polyval(g, p, x):
    """The coefficients stand along the only axis of ``p``, the highest first."""
    count = p.ranked_shape[0]
    require(isinstance(count, int), "needs to know the degree of the polynomial")
    zero = g.Mul(x, g.scalar(0, x))
    return reduce(lambda y, i: g.Add(g.Mul(y, x), g.Gather(p, i, axis=0)), range(count), zero)


@reads("_npi_percentile")
def read_percentile(
    g, x, q=None, *, axis: Ints | None = None, interpolation="linear", keepdims=False,
    q_scalar: float | None = None,
):  # fmt: skip
    """The numbers below which a part of the sorted elements lies, several along a first axis."""
    known = ("linear", "lower", "higher", "midpoint", "nearest")
    require(interpolation in known, f"interpolation={interpolation!r} is unknown")
    axes = tuple(range(x.rank)) if axis is None else axes_of(axis, x.rank)
    require(0 not in x.ranked_shape, "a percentile of no numbers")
    kept = other_axes(axes, x.rank)
    sizes = g.sizes_of(x)
    moved = g.Transpose(as_float(g, x), perm=(*kept, *axes))
    flat = g.Reshape(moved, g.shape_from([*(sizes[a] for a in kept), -1]))
    count = g.multiply_sizes([sizes[a] for a in axes])
    ordered = g.TopK(flat, g.shape_from([count]), axis=len(kept), largest=0, outputs=2)[0]
    share = g.cast(q, flat.type) if q_scalar is None else g.const(q_scalar, flat.type)
    y = interpolate(g, ordered, percentile_position(g, share, count, flat), interpolation)
    last = y.rank - 1
    y = g.Transpose(y, perm=(last, *range(last))) if share.rank else y
    return g.Unsqueeze(y, [a + share.rank for a in axes]) if keepdims else y


def as_float(g, x: Value):
    return x if x.dtype is DType.FLOAT64 else g.cast(x, DType.FLOAT32)


def percentile_position(g, share: Value, count: Size, like: Value):
    """Where a share of 100 lies among ``count`` places, as a float."""
    most = g.cast(g.Squeeze(g.shape_from([count]), [0]), like.type)
    return g.Div(g.Mul(share, g.Sub(most, 1.0)), 100.0)


def interpolate(g, ordered: Value, at: Value, interpolation):
    """The elements at places that lie between two along the last axis."""

    def gather(where):
        return g.Gather(ordered, g.cast(where, DType.INT64), axis=ordered.rank - 1)

    low, high = g.Floor(at), g.Ceil(at)
    if interpolation in ("lower", "higher"):
        return gather(low if interpolation == "lower" else high)
    if interpolation == "nearest":
        return gather(g.Round(at))
    part = g.Sub(at, low) if interpolation == "linear" else g.Mul(g.Ceil(g.Sub(at, low)), 0.5)
    return g.Add(gather(low), g.Mul(g.Sub(gather(high), gather(low)), part))


@reads("_npi_interp", only={"period": ("None",)})
def read_interp(
    g, xp, fp, x=None, *, left: float | None = None, right: float | None = None, x_scalar=0.0,
    x_is_scalar=False,
):  # fmt: skip
    """Values between neighbours among rising places; beyond the ends those of the ends."""
    at = g.const(x_scalar, xp.type) if x_is_scalar else x
    count = g.shape_from([g.size_of(xp, 0)])
    below = g.LessOrEqual(xp, g.Unsqueeze(at, [at.rank]))
    place = g.Sub(g.ReduceSum(g.cast(below, DType.INT64), [at.rank], keepdims=0), 1)
    place = g.Clip(place, 0, g.Squeeze(g.Sub(count, 2), [0]))
    x0, y0, x1, y1 = (g.Gather(v, i, axis=0) for i in (place, g.Add(place, 1)) for v in (xp, fp))
    y = g.Add(y0, g.Mul(g.Div(g.Sub(y1, y0), g.Sub(x1, x0)), g.Sub(at, x0)))
    for end, outside, number in ((0, "Less", left), (-1, "Greater", right)):
        edge = g.Gather(fp, end, axis=0) if number is None else g.const(number, fp.type)
        y = g.Where(g[outside](at, g.Gather(xp, end, axis=0)), edge, y)
    return y


@writes("CumSum", only={"exclusive": (0,), "reverse": (0,)})
def write_cum_sum(s, x, axis):
    (along,) = axis.ints()
    return emit_cumsum(s, x, along % x.rank, x.ranked_shape[along])


def emit_cumsum(s, x, axis: int, size: Dim):
    """Sums of growing parts: before MXNet 1.6 each step adds as many more as there were."""
    if s.release.has("_np_cumsum"):
        return s["_np_cumsum"](x, axis=axis)
    if not isinstance(size, int):
        raise ConversionError(s.release.missing_reason("_np_cumsum", {}))
    reach = 1
    while reach < size:
        none = s.zeros_like(s.slice_axis(x, axis=axis, begin=0, end=reach))
        before = s.slice_axis(x, axis=axis, begin=0, end=-reach)
        x = s.broadcast_add(x, s.Concat(none, before, dim=axis, num_args=2))
        reach *= 2
    return x


@legalizations("CumSum")
def legalize_cum_sum(g, x, axis, *, exclusive, reverse):
    """Forwards, each with its own; an operand before it is a zero in front and one less behind."""
    (along,) = (int(i) % x.rank for i in axis.ints())
    if not exclusive and not reverse:
        return None
    if reverse:
        x = g.slice_axis(x, along, -1, -END, -1)
    if exclusive:
        sizes = g.sizes_of(x)
        sizes[along] = 1
        zero = g.Expand(g.const(np.zeros((), x.type.numpy)), g.shape_from(sizes))
        x = g.Concat(zero, g.slice_axis(x, along, 0, -1), axis=along)
    sums = g.CumSum(x, g.const(along, DType.INT64))
    return g.slice_axis(sums, along, -1, -END, -1) if reverse else sums
