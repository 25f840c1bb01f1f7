"""Operators that draw random numbers.

They are in a table of their own, as nothing is read of them unless asked for. Each takes ``draw``
first, see ``serde.decompositions.random_source``.
"""

from __future__ import annotations

from serde.ir.graph import DType

from ..promotion import as_type
from ..rules import AtenTable

KINDS = {"rand": "uniform", "randn": "normal"}

draws = AtenTable("aten → ir")


@draws.for_each(KINDS)
def read_drawn(kind, draw, g, sizes, *, dtype):
    return g.cast(draw(g, kind, list(sizes)), dtype or DType.FLOAT32)


@draws.for_each({f"{name}_like": kind for name, kind in KINDS.items()})
def read_drawn_like(kind, draw, g, x, *, dtype):
    return g.cast(draw(g, kind, g.sizes_of(x)), dtype or x.type)


@draws("randint")
def read_integers(draw, g, high, sizes, *, dtype):
    return draw_integers(draw, g, 0, high, list(sizes), dtype)


@draws("randint.low")
def read_integers_from(draw, g, low, high, sizes, *, dtype):
    return draw_integers(draw, g, low, high, list(sizes), dtype)


@draws("randint_like")
def read_integers_like(draw, g, x, high, *, dtype):
    return draw_integers(draw, g, 0, high, g.sizes_of(x), dtype or x.type)


@draws("randint_like.low_dtype")
def read_integers_like_from(draw, g, x, low, high, *, dtype):
    return draw_integers(draw, g, low, high, g.sizes_of(x), dtype or x.type)


def draw_integers(draw, g, low, high, sizes, dtype):
    """From ``low`` to below ``high``, which a product may be rounded to."""
    share = g.cast(draw(g, "uniform", sizes), DType.FLOAT64)
    steps = g.Floor(g.Mul(share, as_type(g, float(high - low), DType.FLOAT64)))
    steps = g.Min(steps, as_type(g, float(high - low - 1), DType.FLOAT64))
    y = g.Add(steps, as_type(g, float(low), DType.FLOAT64))
    return g.cast(y, dtype if isinstance(dtype, DType) else DType.INT64)


@draws("bernoulli")
def read_bernoulli(draw, g, x):
    return g.cast(g.Less(draw_like(draw, g, "uniform", x), x), x.type)


@draws("bernoulli.p", "bernoulli.float")
def read_bernoulli_of(draw, g, x, p):
    share = draw(g, "uniform", g.sizes_of(x))
    return g.cast(g.Less(share, as_type(g, float(p), DType.FLOAT32)), x.type)


@draws("normal.Tensor_Tensor")
def read_normal(draw, g, mean, std):
    both = g.Add(mean, std)
    return g.Add(g.Mul(draw_like(draw, g, "normal", both), std), mean)


@draws("normal.Tensor_float")
def read_normal_around(draw, g, mean, std):
    noise = draw_like(draw, g, "normal", mean)
    return g.Add(g.Mul(noise, as_type(g, float(std), mean.type)), mean)


@draws("normal.float_Tensor")
def read_normal_of(draw, g, mean, std):
    noise = draw_like(draw, g, "normal", std)
    return g.Add(g.Mul(noise, std), as_type(g, float(mean), std.type))


@draws("normal.float_float")
def read_normal_of_numbers(draw, g, mean, std, sizes, *, dtype):
    noise = g.Mul(draw(g, "normal", list(sizes)), float(std))
    return g.cast(g.Add(noise, float(mean)), dtype or DType.FLOAT32)


@draws("normal_functional", "normal")
def read_normal_like(draw, g, x, mean, std):
    noise = g.Mul(draw_like(draw, g, "normal", x), as_type(g, float(std), x.type))
    return g.Add(noise, as_type(g, float(mean), x.type))


@draws("uniform")
def read_uniform_like(draw, g, x, low, high):
    share = g.Mul(draw_like(draw, g, "uniform", x), as_type(g, float(high - low), x.type))
    return g.Add(share, as_type(g, float(low), x.type))


@draws("exponential")
def read_exponential(draw, g, x, rate):
    share = g.Sub(as_type(g, 1.0, x.type), draw_like(draw, g, "uniform", x))
    return g.Div(g.Neg(g.Log(share)), as_type(g, float(rate), x.type))


@draws("randperm")
def read_permutation(draw, g, n, *, dtype):
    """The places of noise in order."""
    noise = draw(g, "uniform", [n])
    _, places = g.TopK(noise, g.shape_from([n]), axis=0, outputs=2)
    return g.cast(places, dtype if isinstance(dtype, DType) else DType.INT64)


@draws("multinomial")
def read_multinomial(draw, g, x, count, replacement):
    """Those that come first where each waits by what it is worth; or again and again."""
    axis = x.rank - 1
    if not replacement:
        wait = read_exponential(draw, g, x, 1.0)
        worth = g.Div(x, g.Max(wait, as_type(g, 1e-30, x.type)))
        return g.TopK(worth, g.shape_from([count]), axis=axis, outputs=2)[1]
    below = g.CumSum(x, g.const(axis))
    total = g.slice_axis(below, axis, -1, 2**63 - 1)
    share = g.cast(draw(g, "uniform", [*g.sizes_of(x)[:-1], count]), x.type)
    is_past = g.LessOrEqual(
        g.Unsqueeze(below, [axis]), g.Unsqueeze(g.Mul(share, total), [axis + 1])
    )
    return g.ReduceSum(g.cast(is_past, DType.INT64), [axis + 1], keepdims=0)


def draw_like(draw, g, kind, x):
    """Noise in the shape and of the type of a tensor."""
    return g.cast(draw(g, kind, g.sizes_of(x)), x.type)
