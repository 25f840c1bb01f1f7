"""Numbers of MXNet's distributions, made of uniform and normal noise of a known amount.

Each takes ``draw``, which gives noise of a kind (``uniform`` from 0 to 1, or ``normal``) and of a
shape, and the parameters as float32 tensors that broadcast to the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from serde.ir.graph import DType, Tensor, Value
from serde.spec.expressions import Size

Draw = Callable[[Any, str, Sequence[Size]], Value]
MOST = 1 - 2.0**-24  # of uniform noise: a sum of probabilities may not come nearer to 1
TINY = 1e-30  # instead of a noise of 0, of which the logarithm is infinite
TRIES = 8  # of which one in 20 fails, for the worst of parameters


def uniform(draw, g, sizes, low: Value, high: Value):
    return g.Add(g.Mul(draw(g, "uniform", sizes), g.Sub(high, low)), low)


def normal(draw, g, sizes, loc: Value, scale: Value):
    return g.Add(g.Mul(draw(g, "normal", sizes), scale), loc)


def draw_exponential(draw, g, sizes):
    """Exponential numbers of mean 1."""
    return g.Neg(g.Log(g.Sub(1.0, draw(g, "uniform", sizes))))


def exponential(draw, g, sizes, rate: Value):
    return g.Div(draw_exponential(draw, g, sizes), rate)


def scaled_exponential(draw, g, sizes, scale: Value):
    return g.Mul(draw_exponential(draw, g, sizes), scale)


def gumbel(draw, g, sizes, loc: Value, scale: Value):
    inner = g.Max(draw_exponential(draw, g, sizes), TINY)
    return g.Sub(loc, g.Mul(scale, g.Log(inner)))


def logistic(draw, g, sizes, loc: Value, scale: Value):
    noise = g.Max(draw(g, "uniform", sizes), TINY)
    return g.Add(loc, g.Mul(scale, g.Sub(g.Log(noise), g.Log(g.Sub(1.0, noise)))))


def pareto(draw, g, sizes, a: Value):
    return g.Sub(g.Exp(g.Div(draw_exponential(draw, g, sizes), a)), 1.0)


def power(draw, g, sizes, a: Value):
    return g.Pow(draw(g, "uniform", sizes), g.Reciprocal(a))


def rayleigh(draw, g, sizes, scale: Value):
    return g.Mul(scale, g.Sqrt(g.Mul(draw_exponential(draw, g, sizes), 2.0)))


def weibull(draw, g, sizes, a: Value):
    return g.Pow(draw_exponential(draw, g, sizes), g.Reciprocal(a))


def gamma(draw, g, sizes, alpha: Value, beta: Value):
    """Marsaglia and Tsang (2000): of several tries the first that is accepted.

    Of no eight is none accepted more often than once in 10¹⁰; then the last is taken. A shape below
    1 is raised by 1, and the number multiplied by a power of uniform noise.
    """
    below = g.Less(alpha, 1.0)
    d = g.Sub(g.Where(below, g.Add(alpha, 1.0), alpha), 1 / 3)
    x = draw(g, "normal", [TRIES, *sizes])
    noise = draw(g, "uniform", [TRIES + 1, *sizes])
    root = g.Add(1.0, g.Div(x, g.Sqrt(g.Mul(d, 9.0))))
    v = g.Mul(g.Mul(root, root), root)
    log_v = g.Log(g.Max(v, TINY))
    bound = g.Add(g.Mul(g.Mul(x, x), 0.5), g.Mul(d, g.Add(g.Sub(1.0, v), log_v)))
    log_u = g.Log(g.Max(g.Slice(noise, [0], [TRIES], [0], [1]), TINY))
    accepted = g.And(g.Greater(root, 0.0), g.Less(log_u, bound))
    last = g.ConstantOfShape(g.shape_from([1, *sizes]), value=Tensor.of(np.ones(1, "float32")))
    chances = g.Concat(g.cast(g.Slice(accepted, [0], [TRIES - 1], [0], [1]), DType.FLOAT32), last,
                       axis=0)  # fmt: skip
    place = g.ArgMax(chances, axis=0, keepdims=1)
    chosen = g.Squeeze(g.GatherElements(g.Max(v, 0.0), place, axis=0), [0])
    power = g.Pow(g.Gather(noise, TRIES, axis=0), g.Reciprocal(g.Where(below, alpha, 1.0)))
    return g.Mul(beta, g.Mul(g.Mul(d, chosen), g.Where(below, power, 1.0)))


def poisson(draw, g, sizes, rate: Value):
    """The number at which the sum of the probabilities passes a uniform noise, found one by one."""
    noise = g.cast(g.Min(draw(g, "uniform", sizes), MOST), DType.FLOAT64)
    rate = g.Expand(g.cast(rate, DType.FLOAT64), g.Shape(noise))
    log_rate = g.Log(rate)

    def turn(g, at, _, logs, total, count):
        more = g.GreaterOrEqual(noise, total)
        then = g.Sub(g.Add(logs, log_rate), g.Log(g.cast(g.Add(at, 1), DType.FLOAT64)))
        count = g.Add(count, g.cast(more, DType.FLOAT64))
        return is_any_left(g, more), then, g.Add(total, g.Exp(then)), count

    first = g.Neg(rate)
    zero = g.Mul(noise, g.scalar(0, noise))
    _, _, y = g.loop(turn, None, g.const(True), first, g.Exp(first), zero)
    return g.cast(y, DType.FLOAT32)


def is_any_left(g, more: Value):
    """Whether any element has not been found."""
    flat = g.Reshape(g.cast(more, DType.INT32), [-1])
    return g.Greater(g.ReduceSum(flat, [0], keepdims=0), 0)


def negative_binomial(draw, g, sizes, k: Value, p: Value):
    """How many fail before ``k`` succeed, with chance ``p``: Poisson with a gamma rate."""
    rate = gamma(draw, g, sizes, k, g.Div(g.Sub(1.0, p), p))
    return poisson(draw, g, sizes, rate)


def generalized_negative_binomial(draw, g, sizes, mu: Value, alpha: Value):
    """Of mean ``mu`` and dispersion ``alpha``; Poisson where that is 0."""
    plain = g.Equal(alpha, 0.0)
    alpha = g.Where(plain, 1.0, alpha)
    rate = gamma(draw, g, sizes, g.Reciprocal(alpha), g.Mul(alpha, mu))
    return poisson(draw, g, sizes, g.Where(plain, mu, rate))


def draw_indices(draw, g, sizes, weights: Value, count: int):
    """Places along the last axis of ``weights``, each as likely as its weight.

    ``sizes`` are those of the weights without their last axis, and ``count`` places for each.
    """
    noise = draw(g, "uniform", [*sizes, count])
    ends = g.CumSum(weights, weights.rank - 1)
    passed = g.LessOrEqual(g.Unsqueeze(ends, [ends.rank - 1]), g.Unsqueeze(noise, [ends.rank]))
    indices = g.ReduceSum(g.cast(passed, DType.INT64), [ends.rank], keepdims=0)
    most = g.Sub(g.Shape(ends, start=ends.rank - 1), [1])
    return g.Min(indices, most)
