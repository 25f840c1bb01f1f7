"""Activations newer than the operators they are made of."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.ir.graph import DType, Value
from serde.rewrite.rules import never

from . import decomposition, downgrades, upgrades
from .common import FLOATS, cast, widen_float


@decomposition(20, "Gelu")
def gelu(g, x: Value, *, approximate: str):
    """The half is a factor of ``x``: ONNX Runtime knows this form, and no weight takes it up."""
    if approximate == "tanh":
        inner = g.Add(x, g.Mul(g.Mul(g.Mul(x, x), x), 0.044715))
        bent = g.Tanh(g.Mul(inner, 0.7978845608028654))  # sqrt(2 / pi)
    else:
        bent = g.Erf(g.Div(x, 1.4142135623730951))
    return g.Mul(g.Mul(x, 0.5), g.Add(bent, 1.0))


@decomposition(9, "Erf")
def erf(g, x: Value):
    """Abramowitz and Stegun 7.1.26: within 2e-7 of erf in float32 and float64 alike."""
    u = widen_float(g, x)
    size = g.Abs(u)
    t = g.Reciprocal(g.Add(g.Mul(size, 0.3275911), 1.0))
    total = g.Mul(t, 1.061405429)
    for c in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        total = g.Mul(g.Add(total, c), t)
    bent = g.Sub(1.0, g.Mul(total, g.Exp(g.Neg(g.Mul(u, u)))))
    return cast(g, g.Mul(g.Sign(u), bent), x.dtype)


def hyperbolic(kind, g, x: Value):
    """In float64, where what two exponentials leave of each other is still exact."""
    u = cast(g, x, DType.FLOAT64)
    up, down = g.Exp(u), g.Exp(g.Neg(u))
    return cast(g, g.Mul(g.Sub(up, down) if kind == "Sinh" else g.Add(up, down), 0.5), x.dtype)


def inverse_hyperbolic(kind, g, x: Value):
    """Logarithms, in float64; Asinh of the size of its operand, which loses nothing."""
    u = cast(g, x, DType.FLOAT64)
    if kind == "Atanh":
        y = g.Mul(g.Log(g.Div(g.Add(u, 1.0), g.Sub(1.0, u))), 0.5)
    elif kind == "Acosh":
        # two roots: below -1 there is no number, and no square overflows
        y = g.Log(g.Add(u, g.Mul(g.Sqrt(g.Sub(u, 1.0)), g.Sqrt(g.Add(u, 1.0)))))
    else:
        size = g.Abs(u)
        # squares of float64 overflow; before opset 12 ONNX Runtime has no Clip of float64
        scale = g.Min(g.Max(size, 1.0), float(np.finfo(np.float64).max))
        part, one = g.Div(size, scale), g.Reciprocal(scale)
        root = g.Sqrt(g.Add(g.Mul(part, part), g.Mul(one, one)))
        y = g.Mul(g.Sign(u), g.Add(g.Log(scale), g.Log(g.Add(part, root))))
    return cast(g, y, x.dtype)


for _op in ("Sinh", "Cosh"):
    decomposition(9, _op)(partial(hyperbolic, _op))
for _op in ("Asinh", "Acosh", "Atanh"):
    decomposition(9, _op)(partial(inverse_hyperbolic, _op))


@downgrades[28]("Celu")
def celu_of_other_floats(g, x: Value, *, alpha: float):
    """Celu took float32 only; a wider one is decomposed, a narrower one promoted."""
    if x.dtype is DType.FLOAT64:
        with g.at_opset(28):
            return celu(g, x, alpha=alpha)
    return g.Celu(x, alpha=alpha)


@decomposition(12, "Celu")
def celu(g, x: Value, *, alpha: float):
    """A quotient by a negative ``alpha`` has the other sign, and Elu the other side."""
    if alpha > 0:
        return g.Mul(g.Elu(g.Div(x, alpha), alpha=1.0), alpha)
    below = g.Mul(g.Sub(g.Exp(g.Div(x, alpha)), 1.0), -alpha)
    return g.Sub(g.Relu(x), g.Relu(below))


@decomposition(10, "ThresholdedRelu")
def thresholded_relu(g, x: Value, *, alpha: float):
    return g.Where(g.Greater(x, alpha), x, 0)


@decomposition(9, "Shrink")
def shrink(g, x: Value, *, bias: float, lambd: float):
    """The first side comes first: with a negative ``lambd`` both hold. NaN has none."""
    u = x if x.dtype in FLOATS else cast(g, x, DType.FLOAT64)
    high = g.Where(g.Greater(u, lambd), g.Sub(u, bias), 0)
    return cast(g, g.Where(g.Less(u, -lambd), g.Add(u, bias), high), x.dtype)


@downgrades[14]("Relu", sizes=never)
def relu_of_integers(g, x: Value):
    """Before opset 14 Relu took floats only."""
    if x.dtype is DType.INT64:
        return g.Max(x, 0)
    return g.Relu(x)


@upgrades[7]("PRelu")
def align_prelu_slope(g, x: Value, slope: Value):
    """Before opset 7 a vector of slopes went with the channels, whatever followed them."""
    if slope.rank == 1 and slope.ranked_shape[0] != 1 and x.rank > 2:
        with g.at_opset(13):
            slope = g.Unsqueeze(slope, list(range(1, x.rank - 1)))
    return g.PRelu(x, slope)
