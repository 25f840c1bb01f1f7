"""Resize to dynamic sizes, or by dynamic scales."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from serde.ir.graph import DType, Value

from .common import FLOATS, cast, count_range, lay_along, size
from .interpolation import cubic_far, cubic_near
from .resize_coordinates import ROUNDING, Sampling


class Axis(NamedTuple):
    """One axis to resize: sizes before and behind, and how much larger it gets, all float32.

    ``length`` is the size behind, not rounded to an integer where a scale gave it.
    """

    at: int
    before: Value
    behind: Value
    length: Value
    scale: Value
    roi: tuple[Value, Value] | None


def resample(g, x: Value, roi, scales, sizes, how: Sampling):
    """Resize, decomposed axis by axis; coordinates are float32, as in the runtimes."""
    kind, u = x.dtype, x if x.dtype in FLOATS else cast(g, x, DType.FLOAT32)
    u = x if how.mode == "nearest" else u
    by_scale = scales is not None and scales.shape != (0,)
    for at in range(x.rank):
        requested, behind = (
            None if v is None else g.Reshape(g.Slice(v, [at], [at + 1], [0], [1]), [1])
            for v in (scales if by_scale else sizes, sizes if by_scale else None)
        )
        axis_length = size(g, x, at)
        if (
            is_unchanged(axis_length, requested, by_scale)
            and how.coordinates != "tf_crop_and_resize"
        ):
            continue
        n, requested = (cast(g, v, DType.FLOAT32) for v in (axis_length, requested))
        length = g.Mul(n, requested) if by_scale else requested
        part = None
        if roi is not None and roi.shape != (0,):
            ends = (g.Slice(roi, [i], [i + 1], [0], [1]) for i in (at, at + x.rank))
            start, end = (cast(g, v, DType.FLOAT32) for v in ends)
            part = start, end
        scale = requested if by_scale else g.Div(requested, n)
        m = g.Floor(length) if behind is None else cast(g, behind, DType.FLOAT32)
        u = resample_axis(g, u, Axis(at, n, m, length, scale, part), how)
    return cast(g, u, kind)


def clamp_index(g, index: Value, last: Value):
    """Between 0 and ``last``."""
    return g.Min(g.Max(index, 0.0), last)


def is_unchanged(length: Value, requested: Value, by_scale: bool) -> bool:
    """Whether an axis is known to stay as large as it is."""
    if by_scale:
        return requested.tensor is not None and float(requested.array()[0]) == 1
    return requested.shape_data is not None and requested.shape_data == length.shape_data


def source_coordinates(g, axis: Axis, mode: str):
    """Where the new elements lie on the old axis."""
    n, m, scale = axis.before, axis.behind, axis.scale
    x = cast(g, count_range(g, cast(g, m, DType.INT64)), DType.FLOAT32)
    last = g.Sub(n, 1.0)
    if mode == "align_corners":
        apart = g.Sub(axis.length, 1.0)
        one = cast(g, g.Equal(apart, 0.0), DType.FLOAT32)
        return g.Mul(g.Div(g.Mul(x, last), g.Add(apart, one)), g.Sub(1.0, one))
    if mode == "asymmetric":
        return g.Div(x, scale)
    one = cast(g, g.Equal(m, 1.0), DType.FLOAT32)
    if mode == "tf_crop_and_resize" and axis.roi is not None:
        start, end = axis.roi
        steps = g.Div(g.Mul(g.Mul(x, g.Sub(end, start)), last), g.Add(g.Sub(m, 1.0), one))
        middle = g.Mul(g.Mul(g.Add(start, end), 0.5), last)
        many = g.Add(g.Mul(start, last), steps)
        return g.Add(g.Mul(many, g.Sub(1.0, one)), g.Mul(middle, one))
    if mode == "half_pixel_symmetric":  # the one that ONNX Runtime computes in float64
        gap = g.Mul(g.Mul(n, 0.5), g.Sub(1.0, g.Div(m, axis.length)))
        x, scale, gap = (cast(g, v, DType.FLOAT64) for v in (x, scale, gap))
        return cast(g, g.Add(gap, g.Sub(g.Div(g.Add(x, 0.5), scale), 0.5)), DType.FLOAT32)
    centred = g.Sub(g.Div(g.Add(x, 0.5), scale), 0.5)
    return g.Mul(centred, g.Sub(1.0, one)) if mode == "pytorch_half_pixel" else centred


def resample_axis(g, x: Value, axis: Axis, how: Sampling):
    """One axis, sampled at its places."""
    at, last = source_coordinates(g, axis, how.coordinates), g.Sub(axis.before, 1.0)
    if how.mode == "nearest":
        rounding, shift = ROUNDING[how.nearest_mode]
        index = clamp_index(g, g[rounding](g.Add(at, shift)), last)
        y = g.Gather(x, cast(g, index, DType.INT64), axis=axis.at)
    elif how.antialias:
        order = (*(a for a in range(x.rank) if a != axis.at), axis.at)
        back = tuple(sorted(range(x.rank), key=order.__getitem__))
        matrix = g.Transpose(antialias_weights(g, at, axis, how), perm=(1, 0))
        flat = g.MatMul(g.Transpose(x, perm=order), cast(g, matrix, x.dtype))
        y = g.Transpose(flat, perm=back)
    else:
        parts = [
            g.Mul(g.Gather(x, cast(g, index, DType.INT64), axis=axis.at),
                  lay_along(g, cast(g, share, x.dtype), axis.at, x.rank))
            for index, share in weighted_neighbors(g, at, last, how)
        ]  # fmt: skip
        y = reduce(g.Add, parts)
    if how.coordinates != "tf_crop_and_resize":
        return y
    outside = lay_along(g, g.Or(g.Less(at, 0.0), g.Greater(at, last)), axis.at, x.rank)
    return g.Where(outside, g.const(how.extrapolation_value, x.dtype), y)


def weighted_neighbors(g, at: Value, last: Value, how: Sampling):
    """The elements around each place, held inside the axis, each with how much it counts."""
    low, taps = g.Floor(at), range(2) if how.mode == "linear" else range(-1, 3)
    indices = [g.Add(low, float(i)) for i in taps]
    shares = [filter_kernel(g, g.Sub(i, at), how) for i in indices]
    if how.exclude_outside:
        inside = [g.Not(g.Or(g.Less(i, 0.0), g.Greater(i, last))) for i in indices]
        shares = [g.Mul(s, cast(g, v, DType.FLOAT32)) for s, v in zip(shares, inside, strict=True)]
        total = reduce(g.Add, shares)
        shares = [g.Div(s, total) for s in shares]
    return list(zip([clamp_index(g, i, last) for i in indices], shares, strict=True))


def antialias_weights(g, at: Value, axis: Axis, how: Sampling):
    """How much each element counts at each place where an axis shrinks: a row for each place.

    The axis is continued on both sides as far as the widened kernel reaches; what lies there
    counts for the ends.
    """
    n, last = axis.before, g.Sub(axis.before, 1.0)
    shrink = g.Min(axis.scale, 1.0)
    more = g.Ceil(g.Div(g.const([1.0 if how.mode == "linear" else 2.0], DType.FLOAT32), shrink))
    count = cast(g, g.Add(n, g.Mul(more, 2.0)), DType.INT64)
    index = g.Sub(cast(g, count_range(g, count), DType.FLOAT32), more)
    near = g.Min(g.Max(at, g.Neg(more)), g.Add(last, more))
    distance = g.Sub(g.Unsqueeze(index, [0]), g.Unsqueeze(near, [1]))
    share = filter_kernel(g, g.Mul(distance, shrink), how)
    if how.exclude_outside:
        inside = g.Not(g.Or(g.Less(index, 0.0), g.Greater(index, last)))
        share = g.Mul(share, g.Unsqueeze(cast(g, inside, DType.FLOAT32), [0]))
    share = g.Div(share, g.ReduceSum(share, [1], keepdims=1))
    counted = cast(g, clamp_index(g, index, last), DType.INT64)
    positions = count_range(g, cast(g, n, DType.INT64))
    folded = g.Equal(g.Unsqueeze(counted, [1]), g.Unsqueeze(positions, [0]))
    return g.MatMul(share, cast(g, folded, DType.FLOAT32))


def filter_kernel(g, distance: Value, how: Sampling):
    """The weight of an element at a distance: a triangle, or Keys' cubic."""
    d, a = g.Abs(distance), how.cubic_coeff_a
    if how.mode == "linear":
        return g.Max(g.Sub(1.0, d), 0.0)
    near, far = cubic_near(g, d, a), cubic_far(g, d, a)
    one, two = (cast(g, g.Not(g.Greater(d, edge)), DType.FLOAT32) for edge in (1.0, 2.0))
    return g.Add(g.Mul(near, one), g.Mul(far, g.Sub(two, one)))
