"""Functions of each element of one tensor."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from serde.errors import require
from serde.graph import DType, Value
from serde.idioms import cast, cast_like, scalar

from ..rules import reads


def times(factor: float):
    return lambda g, x: g.Mul(x, factor)


def logarithm(base: float):
    return lambda g, x: g.Mul(g.Log(x), 1 / math.log(base))


def cube_root(g, x):
    return g.Mul(g.Sign(x), g.Pow(g.Abs(x), 1 / 3))


def truncated(g, x):
    return g.Mul(g.Sign(x), g.Floor(g.Abs(x)))


FLOATS = {  # MXNet's name: ONNX's, or the expression
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctanh": "Atanh",
    "cbrt": cube_root,
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "degrees": times(180 / math.pi),
    "erf": "Erf",
    "exp": "Exp",
    "expm1": lambda g, x: g.Sub(g.Exp(x), 1.0),
    "fix": truncated,
    "floor": "Floor",
    "log": "Log",
    "log10": logarithm(10),
    "log1p": lambda g, x: g.Log(g.Add(x, 1.0)),
    "log2": logarithm(2),
    "radians": times(math.pi / 180),
    "rcbrt": lambda g, x: g.Reciprocal(cube_root(g, x)),
    "reciprocal": "Reciprocal",
    "rint": lambda g, x: g.Ceil(g.Sub(x, 0.5)),  # halves go down
    "round": lambda g, x: g.Mul(g.Sign(x), g.Floor(g.Add(g.Abs(x), 0.5))),  # halves go away from 0
    "rsqrt": lambda g, x: g.Reciprocal(g.Sqrt(x)),
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sinh": "Sinh",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
    "trunc": truncated,
}
NUMBERS = {
    "abs": "Abs",
    "negative": lambda g, x: g.Sub(scalar(g, 0, x), x) if x.type.kind == "u" else g.Neg(x),
    "relu": lambda g, x: g.Relu(x) if x.type.kind == "f" else g.Max(x, 0),
    "sign": "Sign",
    "square": lambda g, x: g.Mul(x, x),
}
# Operators of other namespaces that compute the same.
TWINS = {
    "_contrib_round_ste": "round",
    "_contrib_sign_ste": "sign",
    "_npi_absolute": "abs",
    "_npx_relu": "relu",
    "_npx_sigmoid": "sigmoid",
} | {
    f"_npi_{name}": name
    for name in "arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees exp expm1 "
    "fix floor log log10 log1p log2 negative radians reciprocal rint sign sin sinh sqrt square tan "
    "tanh trunc".split()
}


def read_unary(op, g, x: Value):
    return g[op](x) if isinstance(op, str) else op(g, x)


def in_float(function, g, x: Value):
    """Apply a function of floats; MXNet takes integers as float32 and cuts the fraction off."""
    if x.type.kind == "f":
        return function(g, x)
    return cast_like(g, function(g, cast(g, x, DType.FLOAT32)), x)


RULES = {name: partial(read_unary, op) for name, op in NUMBERS.items()} | {
    name: partial(in_float, partial(read_unary, op)) for name, op in FLOATS.items()
}
for _name, _rule in RULES.items():
    reads(_name, *(twin for twin, name in TWINS.items() if name == _name))(_rule)


@reads("_npi_around")
def read_around(g, x, *, decimals=0):
    """Halves go to the even number, as in NumPy."""
    if x.type.kind != "f":
        require(decimals >= 0, f"decimals={decimals} of whole numbers, which MXNet cuts off")
        return x
    factor = 10.0**decimals
    return g.Round(x) if decimals == 0 else g.Div(g.Round(g.Mul(x, factor)), factor)


@reads("clip")
def read_clip(g, x, *, a_min: float, a_max: float):
    require(a_min <= a_max, f"a_min={a_min} above a_max={a_max}")
    return g.Clip(x, bound(g, a_min, x), bound(g, a_max, x))


def bound(g, number: float, x: Value):
    """A bound in the type of ``x``: integers meet it cut off, and within their range."""
    if x.type.kind != "f":
        limits = np.iinfo(x.type.numpy)
        number = int(min(max(number, limits.min), limits.max))
    return scalar(g, number, x)


@reads("smooth_l1")
def read_smooth_l1(g, x, *, scalar=1.0):
    """A parabola up to ``1 / scalar²``, beyond it a line."""
    bound = scalar**-2
    size = g.Abs(x)
    square = g.Mul(g.Mul(x, x), scalar**2 / 2)
    return g.Where(g.Less(size, bound), square, g.Sub(size, bound / 2))


@reads("_contrib_quadratic")
def read_quadratic(g, x, *, a=0.0, b=0.0, c=0.0):
    return in_float(lambda g, x: g.Add(g.Mul(g.Add(g.Mul(x, a), b), x), c), g, x)
