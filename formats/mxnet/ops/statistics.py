"""Means, variances and deviations over axes."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import Ints, axes_of
from serde.ir.graph import Value

from ..rules import dtype_of, reads
from .reduction import are_empty, count_of, normalize_axes, reduce_to_vector
from .shared_attributes import with_attributes_of


@reads("moments")
def read_moments(g, x, *, axes: Ints | None = None, keepdims=False):
    """Mean and variance."""
    require(axes, "moments over no axes")
    axes = axes_of(axes, x.rank)
    mean, square = mean_and_squares(g, x, axes)
    variance = reduce_to_vector(g, "ReduceMean", square, axes, keepdims)
    kept = axes[1:] if len(axes) == x.rank else axes
    return mean if keepdims else g.Squeeze(mean, kept), variance


def mean_and_squares(g, x: Value, axes: Ints):
    """The mean, its axes kept, and the squares of the distances from it."""
    mean = g.ReduceMean(x, axes, keepdims=1)
    away = g.Sub(x, mean)
    return mean, g.Mul(away, away)


@reads("_npi_var")
def read_variance(
    g, x, *, axis: Ints | None = None, dtype: str | None = None, ddof=0, keepdims=False
):
    """``ddof`` degrees of freedom are not counted."""
    require(x.type.kind == "f", f"the variance of {x.type.value} numbers")
    x = x if dtype is None else g.cast(x, dtype_of(dtype))
    axes = normalize_axes(x, axis)

    def apply(g, x):
        _, squares = mean_and_squares(g, x, axes)
        if ddof == 0 and not are_empty(x, axes):
            return g.ReduceMean(squares, axes, keepdims=int(keepdims))
        count = g.cast(count_of(g, x, axes), x.type)
        free = g.Squeeze(g.Sub(count, float(ddof)), [0])
        free = g.Where(g.Less(free, 0.0), g.Add(free, 2.0**64), free)  # MXNet's count has no sign
        return g.Div(g.ReduceSum(squares, axes, keepdims=int(keepdims)), free)

    return g.compute_in_float32(apply, x)


@reads("_npi_std")
@with_attributes_of(read_variance)
def read_deviation(g, x, **attrs):
    return g.Sqrt(read_variance(g, x, **attrs))


@reads("_npi_average")
def read_average(g, x, weights=None, *, axis: Ints | None = None, returned=False, weighted=True):
    """A mean with weights of the shape of ``x``, or one for each place along the one axis."""
    axes = normalize_axes(x, axis)
    if not weighted:
        mean = g.ReduceMean(x, axes, keepdims=0)
        count = count_of(g, x, axes)
        return (mean, g.cast_like(g.Squeeze(count, [0]), x)) if returned else mean
    spread, summed = weights, axes
    if weights.rank == 1 and x.rank > 1:
        spread = g.Unsqueeze(weights, list(range(1, x.rank - axes[0])))
        summed = (0,)
    total = g.ReduceSum(weights, summed, keepdims=0)
    mean = g.Div(g.ReduceSum(g.Mul(x, spread), axes, keepdims=0), total)
    return (mean, total) if returned else mean
