"""Densities of distributions at samples, or their logarithms.

The parameters have fewer axes than the samples: one distribution for each row of them.
"""

from __future__ import annotations

import math
from functools import partial

from serde.decompositions.special import gammaln
from serde.errors import require
from serde.ir.graph import DType, Value

from ...rules import reads


def uniform(g, x, low, high):
    """MXNet does not ask whether the sample lies between."""
    return g.Sub(g.Neg(g.Log(g.Sub(high, low))), g.Mul(x, 0.0))


def normal(g, x, mu, sigma):
    away = g.Div(g.Sub(x, mu), sigma)
    return g.Sub(g.Mul(g.Mul(away, away), -0.5), g.Log(g.Mul(sigma, math.sqrt(2 * math.pi))))


def gamma(g, x, alpha, beta):
    return g.Sub(
        g.Add(g.Mul(alpha, g.Log(beta)), g.Mul(g.Sub(alpha, 1.0), g.Log(x))),
        g.Add(g.Mul(beta, x), gammaln(g, alpha)),
    )


def exponential(g, x, lam):
    return g.Sub(g.Log(lam), g.Mul(lam, x))


def poisson(g, x, lam):
    return g.Sub(g.Sub(g.Mul(x, g.Log(lam)), gammaln(g, g.Add(x, 1.0))), lam)


def negative_binomial(g, x, limit, prob):
    ways = g.Sub(gammaln(g, g.Add(x, limit)), gammaln(g, g.Add(x, 1.0)))
    ways = g.Sub(ways, gammaln(g, limit))
    return g.Add(ways, g.Add(g.Mul(limit, g.Log(prob)), g.Mul(x, g.Log(g.Sub(1.0, prob)))))


def generalized_negative_binomial(g, x, mu, alpha):
    limit = g.Reciprocal(alpha)
    return negative_binomial(g, x, limit, g.Reciprocal(g.Add(g.Mul(mu, alpha), 1.0)))


def density(function, g, x, parameters, is_log):
    require(x.type.kind == "f", f"the density at {x.type.value} numbers")
    behind = [g.Unsqueeze(p, list(range(p.rank, x.rank))) for p in parameters]
    logs = function(g, *(widen_float16(g, v) for v in (x, *behind)))
    return g.cast_like(logs if is_log else g.Exp(logs), x)


def widen_float16(g, x: Value):
    """Halves are too coarse to compute in."""
    return g.cast(x, DType.FLOAT32) if x.dtype is DType.FLOAT16 else x


def read_density_one(function, g, sample, a, *, is_log=False):
    return density(function, g, sample, (a,), is_log)


def read_density_two(function, g, sample, a, b, *, is_log=False):
    return density(function, g, sample, (a, b), is_log)


ONE = {"exponential": exponential, "poisson": poisson}
TWO = {
    "uniform": uniform, "normal": normal, "gamma": gamma, "negative_binomial": negative_binomial,
    "generalized_negative_binomial": generalized_negative_binomial,
}  # fmt: skip
for _rule, _functions in ((read_density_one, ONE), (read_density_two, TWO)):
    for _name, _function in _functions.items():
        reads(f"_random_pdf_{_name}")(partial(_rule, _function))


@reads("_random_pdf_dirichlet")
def read_dirichlet(g, sample, alpha, *, is_log=False):
    """The last axis holds the parts of a sample."""
    last, like = sample.rank - 1, sample
    sample, alpha = widen_float16(g, sample), widen_float16(g, alpha)
    alpha = g.Unsqueeze(alpha, list(range(alpha.rank - 1, last)))
    total = g.ReduceSum(alpha, [last], keepdims=0)
    parts = g.Sub(g.Mul(g.Sub(alpha, 1.0), g.Log(sample)), gammaln(g, alpha))
    logs = g.Add(g.ReduceSum(parts, [last], keepdims=0), gammaln(g, total))
    logs = g.Reshape(logs, [1]) if last == 0 else logs
    return g.cast_like(logs if is_log else g.Exp(logs), like)
