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


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30)  # of even order, from 2 on


def hurwitz_zeta(g, s: int, x: Value):
    """The sum of ``(x + k)**-s`` over all k, for x above 0: Euler and Maclaurin's series."""

    def power(base, exponent):
        return g.Pow(base, g.const(float(exponent), x.type))

    near = [power(g.Add(x, float(k)), -s) for k in range(STEPS)]
    far = g.Add(x, float(STEPS))
    total = g.Add(g.Mul(power(far, 1 - s), 1 / (s - 1)), g.Mul(power(far, -s), 0.5))
    rising = 1.0
    for j, number in enumerate(BERNOULLI, 1):
        rising *= s if j == 1 else (s + 2 * j - 3) * (s + 2 * j - 2)
        share = number * rising / math.factorial(2 * j)
        total = g.Add(total, g.Mul(power(far, 1 - s - 2 * j), share))
    return reduce(g.Add, reversed(near), total)


# Abramowitz and Stegun, 9.8.1 to 9.8.4: |error| < 2e-7 · I0(x), the highest power first.
I0_NEAR = (0.0045813, 0.0360768, 0.2659732, 1.2067492, 3.0899424, 3.5156229, 1.0)
I0_FAR = (0.00392377, -0.01647633, 0.02635537, -0.02057706, 0.00916281, -0.00157565, 0.00225319,
          0.01328592, 0.39894228)  # fmt: skip
I1_NEAR = (0.00032411, 0.00301532, 0.02658733, 0.15084934, 0.51498869, 0.87890594, 0.5)
I1_FAR = (-0.00420059, 0.01787654, -0.02895312, 0.02282967, -0.01031555, 0.00163801, -0.00362018,
          -0.03988024, 0.39894228)  # fmt: skip
I_BOUND = 3.75  # between the two series


def _bessel_parts(g, x: Value, near, far):
    """Whether numbers are near 0, what the first series gives, and e^-|x| times the second."""
    size = g.Abs(x)
    ratio = g.Div(g.Min(size, I_BOUND), I_BOUND)
    outer = g.Max(size, I_BOUND)
    tail = g.Div(horner(g, g.Div(I_BOUND, outer), far), g.Sqrt(outer))
    return g.Less(size, I_BOUND), size, horner(g, g.Mul(ratio, ratio), near), tail


def bessel_i0(g, x: Value):
    """The modified Bessel function of order 0."""
    is_near, size, near, tail = _bessel_parts(g, x, I0_NEAR, I0_FAR)
    return g.Where(is_near, near, g.Mul(g.Exp(size), tail))


def scaled_bessel_i0(g, x: Value):
    is_near, size, near, tail = _bessel_parts(g, x, I0_NEAR, I0_FAR)
    return g.Where(is_near, g.Mul(g.Exp(g.Neg(size)), near), tail)


def bessel_i1(g, x: Value):
    """The modified Bessel function of order 1."""
    is_near, size, near, tail = _bessel_parts(g, x, I1_NEAR, I1_FAR)
    return g.Where(is_near, g.Mul(x, near), g.Mul(g.Sign(x), g.Mul(g.Exp(size), tail)))


def scaled_bessel_i1(g, x: Value):
    is_near, size, near, tail = _bessel_parts(g, x, I1_NEAR, I1_FAR)
    near = g.Mul(x, g.Mul(g.Exp(g.Neg(size)), near))
    return g.Where(is_near, near, g.Mul(g.Sign(x), tail))
