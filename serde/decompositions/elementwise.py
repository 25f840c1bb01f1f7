"""Arithmetic and activations, element by element, and products of matrices."""

from __future__ import annotations

import math

import numpy as np

from serde.decompositions.table import decompositions
from serde.errors import require
from serde.ir.graph import DType, Value


@decompositions("Mean")
def mean(g, *xs: Value):
    return g.Div(g.Sum(*xs), float(len(xs)))


@decompositions("Pow")
def power(g, x: Value, y: Value):
    """Of floats of one type, in which an exponent is taken; integers are computed as float64."""
    power_dtype = x.type if x.type.kind == "f" else DType.FLOAT64
    if power_dtype is x.type is y.type:
        return None
    return g.cast_like(g.Pow(g.cast(x, power_dtype), g.cast(y, power_dtype)), x)


@decompositions("Selu")
def selu(g, x: Value, *, alpha: float, gamma: float):
    return g.Mul(g.Elu(x, alpha=alpha), gamma)


@decompositions("PRelu")
def prelu(g, x: Value, slope: Value):
    return g.Where(g.Less(x, g.const(0, x.type)), g.Mul(x, slope), x)


def is_power_of_two(y: Value) -> bool:
    """Whether the reciprocals of constants are exact."""
    return y.tensor is not None and bool((np.abs(np.frexp(y.array())[0]) == 0.5).all())


def choose_booleans(g, condition: Value, x: Value, y: Value):
    """Where of booleans, by logic; None of other elements."""
    if x.type is not DType.BOOL:
        return None
    return g.Or(g.And(condition, x), g.And(g.Not(condition), y))


@decompositions("Elu")
def elu(g, x: Value, *, alpha: float):
    """Without a bound of what is exponentiated, which may leave out NaN."""
    return g.Where(g.Greater(x, 0.0), x, g.Mul(g.Sub(g.Exp(x), 1.0), alpha))


@decompositions("HardSigmoid")
def hard_sigmoid(g, x: Value, *, alpha: float, beta: float):
    return g.Clip(g.Add(g.Mul(x, alpha), beta), 0.0, 1.0)


@decompositions("Reciprocal")
def reciprocal(g, x: Value):
    return g.Div(1.0, x)


@decompositions("Softplus")
def stable_softplus(g, x: Value):
    """A sum of what is above 0 and of a logarithm between 0 and log 2: no power overflows."""
    return g.Add(g.Relu(x), g.Log(g.Add(g.Exp(g.Neg(g.Abs(x))), 1.0)))


@decompositions("Softsign")
def softsign(g, x: Value):
    return g.Div(x, g.Add(g.Abs(x), 1.0))


def tangent(g, x: Value):
    """Tan: not in the table, as targets without it mostly lack these as well."""
    return g.Div(g.Sin(x), g.Cos(x))


def arctan2(g, y: Value, x: Value):
    """The angle of the point (x, y) by its quadrant, which the signs of zeros tell too."""
    zero, one, half_turn = (g.scalar(n, x) for n in (0, 1, math.pi))
    height, width = g.Abs(y), g.Abs(x)
    is_origin = g.Equal(g.Max(height, width), zero)
    is_diagonal = g.Or(is_origin, g.Equal(height, width))  # infinities have no quotient
    ratio = g.Where(is_diagonal, one, g.Div(height, g.Where(is_diagonal, one, width)))
    angle = g.Where(is_origin, zero, g.Atan(ratio))
    angle = g.Where(is_negative(g, x), g.Sub(half_turn, angle), angle)
    return g.Mul(angle, g.Where(is_negative(g, y), g.Neg(one), one))  # keeps the sign of a zero


def is_negative(g, x: Value):
    """Whether numbers are below 0 or a zero with a sign."""
    zero = g.scalar(0, x)
    return g.Less(g.Where(g.Equal(x, zero), g.Div(g.scalar(1, x), x), x), zero)


@decompositions("Gemm")
def gemm(g, a: Value, b: Value, c=None, *, alpha: float, beta: float, transA: int, transB: int):
    """A product and a sum; integers have no factors."""
    if a.type.kind != "f":
        require(alpha == 1 and beta == 1, f"alpha={alpha}, beta={beta} of {a.type.value} elements")
    a, b = (g.Transpose(v, perm=(1, 0)) if t else v for v, t in ((a, transA), (b, transB)))
    y = g.MatMul(a, b)
    y = y if alpha == 1 else g.Mul(y, alpha)
    if c is None or beta == 0:
        return y
    return g.Add(y, c if beta == 1 else g.Mul(c, beta))
