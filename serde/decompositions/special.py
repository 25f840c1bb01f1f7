"""Special functions, which ONNX lacks, by their usual approximations."""

from __future__ import annotations

import math
from functools import reduce

from serde.ir.graph import Value

# M. Giles, "Approximating the erfinv function" (2010), single precision: |error| < 4e-7 · |erfinv|.
CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
           -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
        -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)  # fmt: skip
# C. Lanczos (1964) with g = 5 and six terms, as in Numerical Recipes: |error| < 2e-10.
LANCZOS = (76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155,
           0.1208650973866179e-2, -0.5395239384953e-5)  # fmt: skip
# The asymptotic series of digamma (Abramowitz and Stegun, 6.3.18), the highest power first.
DIGAMMA = (1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
STEPS = 8


def horner(g, x: Value, coefficients):
    """A polynomial, its highest coefficient first."""
    first, *rest = coefficients
    return reduce(lambda y, c: g.Add(g.Mul(y, x), c), rest, g.const(first, x.type))


def erfinv(g, x: Value):
    """The inverse of erf; infinite at -1 and 1, NaN beyond them."""
    w = g.Neg(g.Log(g.Mul(g.Sub(1.0, x), g.Add(x, 1.0))))
    central = horner(g, g.Sub(w, 2.5), CENTRAL)
    tail = horner(g, g.Sub(g.Sqrt(w), 3.0), TAIL)
    y = g.Mul(g.Where(g.Less(w, 5.0), central, tail), x)
    return g.Where(g.Equal(g.Abs(x), 1.0), g.Mul(x, math.inf), y)


def log_gamma(g, x: Value):
    """The logarithm of the gamma function of positive numbers."""
    high = g.Add(x, 5.5)
    series = g.const(1.000000000190015, x.type)
    for place, c in enumerate(LANCZOS, 1):
        series = g.Add(series, g.Div(c, g.Add(x, float(place))))
    tail = g.Log(g.Div(g.Mul(series, math.sqrt(2 * math.pi)), x))
    return g.Add(g.Sub(g.Mul(g.Add(x, 0.5), g.Log(high)), high), tail)


def reflect(g, x: Value):
    """Whether a number lies left of 1/2, its mirror image right of it, and sin(πx)."""
    left = g.Less(x, 0.5)
    return left, g.Where(left, g.Sub(1.0, x), x), g.Sin(g.Mul(x, math.pi))


def gammaln(g, x: Value):
    """Euler's reflection takes the left half of the line to the right."""
    left, right, sine = reflect(g, x)
    y = log_gamma(g, right)
    return g.Where(left, g.Sub(g.Log(g.Div(math.pi, g.Abs(sine))), y), y)


def gamma(g, x: Value):
    left, right, sine = reflect(g, x)
    y = g.Exp(log_gamma(g, right))
    return g.Where(left, g.Div(math.pi, g.Mul(sine, y)), y)


def digamma(g, x: Value):
    """The derivative of ``gammaln``: the series in 1/x², eight steps to the right."""
    left = g.Less(x, 0.5)
    right = g.Where(left, g.Sub(1.0, x), x)
    steps = [g.Reciprocal(g.Add(right, float(i))) for i in range(STEPS)]
    far = g.Reciprocal(g.Add(right, float(STEPS)))
    series = g.Mul(g.Mul(far, far), horner(g, g.Mul(far, far), DIGAMMA))
    y = g.Sub(g.Neg(g.Log(far)), g.Add(g.Mul(far, 0.5), series))
    y = g.Sub(y, reduce(g.Add, steps))
    angle = g.Mul(x, math.pi)
    return g.Where(left, g.Sub(y, g.Div(g.Mul(g.Cos(angle), math.pi), g.Sin(angle))), y)
