"""Functions of each element of one tensor."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from serde.decompositions.expressions import cast, scalar
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES

from ..rules import reads
from .widths import widely


def rounded(g, x: Value):
    """Halves go away from zero, as llvm rounds."""
    return g.Mul(g.Sign(x), g.Floor(g.Add(g.Abs(x), 0.5)))


def exponentials(sign: int):
    """Hyperbolic sine or cosine of a double, which ONNX Runtime has no kernel for."""

    def apply(g, x: Value):
        return g.Mul(g[("Sub", "Add")[sign]](g.Exp(x), g.Exp(g.Neg(x))), 0.5)

    return apply


def inverse_hyperbolic(number: float):
    """``log(x + sqrt(x² + number))``."""

    def apply(g, x: Value):
        return g.Log(g.Add(x, g.Sqrt(g.Add(g.Mul(x, x), number))))

    return apply


def inverse_tangent(g, x: Value):
    return g.Mul(g.Log(g.Div(g.Add(x, 1.0), g.Sub(1.0, x))), 0.5)


# Written out for doubles, where ONNX Runtime has the operator for single precision only.
DOUBLES = {
    "acosh": inverse_hyperbolic(-1.0),
    "asinh": inverse_hyperbolic(1.0),
    "atanh": inverse_tangent,
    "cosh": exponentials(1),
    "sinh": exponentials(0),
    "tan": lambda g, x: g.Div(g.Sin(x), g.Cos(x)),
}
FLOATS = {  # Relay's name: ONNX's, or the expression
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "fast_erf": "Erf",
    "fast_exp": "Exp",
    "fast_tanh": "Tanh",
    "log": "Log",
    "log10": lambda g, x: g.Mul(g.Log(x), 1 / math.log(10)),
    "log2": lambda g, x: g.Mul(g.Log(x), 1 / math.log(2)),
    "rsqrt": lambda g, x: g.Reciprocal(g.Sqrt(x)),
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}
ROUNDINGS = {  # which leave integers as they are
    "ceil": "Ceil",
    "floor": "Floor",
    "round": rounded,
    "trunc": lambda g, x: g.Mul(g.Sign(x), g.Floor(g.Abs(x))),
}


def read_float(name, op, g, x: Value):
    if x.type is DType.FLOAT64 and name in DOUBLES:
        return DOUBLES[name](g, x)
    return g[op](x) if isinstance(op, str) else op(g, x)


def read_rounding(op, g, x: Value):
    if x.type.kind != "f":
        return x
    return g[op](x) if isinstance(op, str) else op(g, x)


for _name, _op in FLOATS.items():
    reads(_name)(partial(read_float, _name, _op))
for _name, _op in ROUNDINGS.items():
    reads(_name)(partial(read_rounding, _op))
reads.rename({"debug": "Identity"}, ignore=("debug_func",))
reads.rename({"copy": "Identity", "logical_not": "Not", "bitwise_not": "BitwiseNot"})


@reads("abs")
def read_abs(g, x):
    return x if x.type.kind in "ub" else g.Abs(x)


@reads("sign")
def read_sign(g, x):
    return g.Sign(x)


@reads("negative")
def read_negative(g, x):
    return g.Neg(x) if x.type.kind in "if" else widely(g, lambda g, x: g.Neg(x), x)


@reads("nn.relu")
def read_relu(g, x):
    return x if x.type.kind == "u" else widely(g, lambda g, x: g.Relu(x), x)


@reads("nn.leaky_relu")
def read_leaky_relu(g, x, *, alpha=0.25):
    return g.LeakyRelu(x, alpha=alpha)


@reads("nn.prelu")
def read_prelu(g, x, slope, *, axis=1):
    """A slope for each element along one axis."""
    axis = axis_of(axis, x.rank)
    if slope.rank == 1 and axis != x.rank - 1:
        slope = g.Unsqueeze(slope, list(range(1, x.rank - axis)))
    return g.PRelu(x, slope)


@reads("clip")
def read_clip(g, x, *, a_min: float, a_max: float):
    """The lower bound wins where it is above the other."""
    low, high = bound(g, a_min, x), bound(g, max(a_min, a_max), x)
    if x.type in (DType.FLOAT32, DType.FLOAT16):
        return g.Clip(x, low, high)
    return widely(g, lambda g, x, low, high: g.Min(g.Max(x, low), high), x, low, high)


def bound(g, number: float, x: Value):
    """A bound in the type of ``x``: integers meet it cut off, and within their range."""
    if x.type.kind in "iu":
        limits = np.iinfo(x.type.numpy)
        number = int(min(max(number, limits.min), limits.max))
    return scalar(g, number, x)


@reads("isnan")
def read_isnan(g, x):
    return g.IsNaN(x) if x.type.kind == "f" else g.Not(g.Equal(x, x))


@reads("isinf")
def read_isinf(g, x):
    return g.IsInf(x) if x.type is not DType.FLOAT16 else g.IsInf(cast(g, x, DType.FLOAT32))


@reads("isfinite")
def read_isfinite(g, x):
    return g.Not(g.Or(read_isnan(g, x), read_isinf(g, x)))


@reads("cast")
def read_cast(g, x, *, dtype: DType):
    return casted(g, x, dtype)


@reads("cast_like")
def read_cast_like(g, x, like):
    return casted(g, x, like.type)


def casted(g, x: Value, dtype: DType):
    """Fractions are cut off; integers too wide keep their lowest bits."""
    return x if x.type is dtype else g.Cast(x, to=ELEMENT_CODES[dtype])


@reads("reinterpret")
def read_reinterpret(g, x, *, dtype: DType):
    return g.BitCast(x, to=ELEMENT_CODES[dtype])


@reads("nn.softmax", "nn.fast_softmax")
def read_softmax(g, x, *, axis=-1):
    return g.Softmax(x, axis=axis_of(axis, x.rank))


@reads("nn.log_softmax")
def read_log_softmax(g, x, *, axis=-1):
    return g.LogSoftmax(x, axis=axis_of(axis, x.rank))


@reads("nn.dropout", ignore=("rate",))
def read_dropout(g, x):
    """Nothing is dropped in inference; the mask keeps everything."""
    return x, g.Expand(g.const(1, x.type), g.Shape(x))
