"""Special functions, by the approximations that all readers share."""

from __future__ import annotations

import math

import numpy as np

from serde.decompositions import special
from serde.errors import require
from serde.ir.graph import DType

from ..promotion import as_type, promote_to_float
from ..rules import reads

SHARED = {
    "digamma": special.digamma, "special_digamma": special.digamma, "special_psi": special.digamma,
    "erfinv": special.erfinv, "special_erfinv": special.erfinv,
    "lgamma": special.gammaln, "special_gammaln": special.gammaln,
    "i0": special.bessel_i0, "special_i0": special.bessel_i0,
    "special_i0e": special.scaled_bessel_i0, "special_i1": special.bessel_i1,
    "special_i1e": special.scaled_bessel_i1,
}  # fmt: skip


@reads.for_each(SHARED)
def read_shared(function, g, x):
    """In float32 at least."""
    (x,) = promote_to_float(g, x)
    computed = x if x.type is DType.FLOAT64 else g.cast(x, DType.FLOAT32)
    return g.cast_like(function(g, computed), x)


@reads("mvlgamma", "special_multigammaln")
def read_multivariate_gamma(g, x, p):
    (x,) = promote_to_float(g, x)
    total = as_type(g, p * (p - 1) / 4 * math.log(math.pi), x.type)
    require(0 < p <= 100, f"p={p}: give one from 1 to 100")
    for k in range(p):
        total = g.Add(total, read_shared(special.gammaln, g, g.Sub(x, as_type(g, k / 2, x.type))))
    return total


@reads("polygamma", "special_polygamma")
def read_polygamma(g, n, x):
    """Derivatives of digamma: to the left of 1 by those of the cotangent, which reflects them."""
    if n == 0:
        return read_shared(special.digamma, g, x)
    require(0 < n <= 8, f"n={n} of polygamma: give one from 0 to 8")
    (x,) = promote_to_float(g, x)
    one, zero, sign = as_type(g, 1.0, x.type), as_type(g, 0.0, x.type), (-1.0) ** (n + 1)
    is_left = g.LessOrEqual(x, zero)
    right = special.hurwitz_zeta(g, n + 1, g.Where(is_left, g.Sub(one, x), x))
    value = g.Mul(right, sign * math.factorial(n))
    angle = g.Mul(g.Sub(x, g.Round(x)), math.pi)
    slope = special.horner(g, g.Div(g.Cos(angle), g.Sin(angle)), differentiate_cotangent(n))
    mirrored = g.Sub(g.Mul(value, (-1.0) ** n), g.Mul(slope, math.pi ** (n + 1)))
    is_pole = g.And(is_left, g.Equal(x, g.Floor(x)))
    mirrored = g.Where(is_pole, as_type(g, sign * math.inf, x.type), mirrored)
    return g.Where(is_left, mirrored, value)


def differentiate_cotangent(n: int) -> tuple[float, ...]:
    """The n-th derivative of the cotangent as a polynomial of it, the highest power first."""
    powers = np.array([1.0, 0.0])
    for _ in range(n):
        powers = np.polymul(np.polyder(powers), [-1.0, 0.0, -1.0])
    return tuple(float(p) for p in powers)


@reads("special_ndtr")
def read_normal_distribution(g, x):
    """The left tail by what is not lost beside 1."""
    (x,) = promote_to_float(g, x)
    half = as_type(g, 0.5, x.type)
    return g.Mul(half, g.Add(as_type(g, 1.0, x.type), g.Erf(g.Mul(x, math.sqrt(0.5)))))


@reads("special_log_ndtr")
def read_log_normal_distribution(g, x):
    """Far to the left by the asymptotic series, where the distribution itself is lost."""
    (x,) = promote_to_float(g, x)
    square = g.Mul(x, x)
    inverse = g.Reciprocal(square)
    series = special.horner(g, inverse, (-945.0, 105.0, -15.0, 3.0, -1.0, 1.0))
    bound = as_type(g, -4.0, x.type)
    far = g.Min(x, bound)
    tail = g.Sub(g.Log(g.Div(series, g.Neg(far))), g.Mul(square, 0.5))
    tail = g.Sub(tail, 0.5 * math.log(2 * math.pi))
    near = g.Log(read_normal_distribution(g, g.Max(x, bound)))
    return g.Where(g.Less(x, bound), tail, near)


@reads("special_ndtri")
def read_normal_quantile(g, x):
    (x,) = promote_to_float(g, x)
    share = g.Sub(g.Mul(x, 2.0), as_type(g, 1.0, x.type))
    return g.Mul(read_shared(special.erfinv, g, share), math.sqrt(2))


@reads("special_entr")
def read_entropy(g, x):
    (x,) = promote_to_float(g, x)
    zero = as_type(g, 0.0, x.type)
    y = g.Where(g.Equal(x, zero), zero, g.Neg(g.Mul(x, g.Log(x))))
    return g.Where(g.Less(x, zero), as_type(g, -math.inf, x.type), y)


@reads("logit", "special_logit")
def read_logit(g, x, eps):
    (x,) = promote_to_float(g, x)
    one = as_type(g, 1.0, x.type)
    if eps is not None:
        x = g.Min(g.Max(x, as_type(g, eps, x.type)), as_type(g, 1 - eps, x.type))
    return g.Log(g.Div(x, g.Sub(one, x)))


@reads("sinc", "special_sinc")
def read_sinc(g, x):
    (x,) = promote_to_float(g, x)
    angle = g.Mul(x, math.pi)
    zero, one = (as_type(g, v, x.type) for v in (0.0, 1.0))
    is_zero = g.Equal(angle, zero)
    return g.Where(is_zero, one, g.Div(g.Sin(angle), g.Where(is_zero, one, angle)))
