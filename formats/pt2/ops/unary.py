"""Operators of one tensor, element by element."""

from __future__ import annotations

import math

from serde.decompositions.composites import emit_stop_gradient
from serde.ir.graph import DType

from ..promotion import as_type, promote, promote_to_float
from ..rules import reads

IN_FLOATS = {
    "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "log": "Log",
    "sigmoid": "Sigmoid", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan",
    "tanh": "Tanh", "reciprocal": "Reciprocal",
    "special_expit": "Sigmoid", "special_erf": "Erf", "arccos": "Acos", "arccosh": "Acosh",
    "arcsin": "Asin", "arcsinh": "Asinh", "arctan": "Atan", "arctanh": "Atanh",
}  # fmt: skip
KEEPING = {"abs": "Abs", "neg": "Neg", "sign": "Sign", "relu": "Relu", "negative": "Neg",
           "absolute": "Abs", "sgn": "Sign"}  # fmt: skip
ROUNDING = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}
IDENTITIES = (
    "alias", "clone", "contiguous", "lift_fresh_copy", "lift", "positive",
    "_conj", "resolve_conj", "resolve_neg", "lift_fresh",
)  # fmt: skip


@reads("detach")
def read_detach(g, x):
    return emit_stop_gradient(g, x)


@reads.for_each(IN_FLOATS)
def read_float(op, g, x):
    (x,) = promote_to_float(g, x)
    return g[op](x)


@reads.for_each(KEEPING)
def read_kept(op, g, x):
    if op == "Abs" and x.type is DType.BOOL:
        return g.Identity(x)
    if op == "Relu" and x.type.kind != "f":
        return g.Max(x, as_type(g, 0, x.type))
    if op == "Sign" and x.type is DType.BOOL:
        return g.Identity(x)
    return g[op](x)


@reads.for_each(ROUNDING)
def read_rounding(op, g, x):
    return g[op](x) if x.type.kind == "f" else g.Identity(x)


@reads("round.decimals")
def read_round_decimals(g, x, *, decimals):
    if x.type.kind != "f":
        return g.Identity(x)
    scale = as_type(g, 10.0 ** abs(decimals), x.type)
    if decimals < 0:
        return g.Mul(g.Round(g.Div(x, scale)), scale)
    return g.Div(g.Round(g.Mul(x, scale)), scale)


@reads("trunc", "fix")
def read_trunc(g, x):
    if x.type.kind != "f":
        return g.Identity(x)
    return g.Where(g.Less(x, 0.0), g.Ceil(x), g.Floor(x))


@reads("angle")
def read_angle_of_real(g, x):
    """Pi for what is less than zero."""
    (x,) = promote_to_float(g, x)
    others = g.Where(g.IsNaN(x), x, as_type(g, 0.0, x.type))
    return g.Where(g.Less(x, 0.0), as_type(g, math.pi, x.type), others)


@reads("frac")
def read_frac(g, x):
    return g.Sub(x, read_trunc(g, x))


@reads(*IDENTITIES)
def read_identity(g, x):
    return g.Identity(x)


@reads("rsqrt")
def read_rsqrt(g, x):
    (x,) = promote_to_float(g, x)
    return g.Reciprocal(g.Sqrt(x))


@reads.for_each({"log2": 2.0, "log10": 10.0})
def read_log_base(base, g, x):
    (x,) = promote_to_float(g, x)
    return g.Div(g.Log(x), math.log(base))


@reads("exp2", "special_exp2")
def read_exp2(g, x):
    (x,) = promote_to_float(g, x)
    return g.Pow(as_type(g, 2.0, x.type), x)


@reads("expm1", "special_expm1")
def read_expm1(g, x):
    """By tanh near 0, where the difference would lose its digits."""
    (x,) = promote_to_float(g, x)
    half = g.Tanh(g.Mul(x, 0.5))
    near = g.Div(g.Mul(half, 2.0), g.Sub(as_type(g, 1.0, x.type), half))
    return g.Where(g.Less(g.Abs(x), 1.0), near, g.Sub(g.Exp(x), 1.0))


@reads("log1p", "special_log1p")
def read_log1p(g, x):
    """Twice the inverse of tanh near 0, where the sum would lose digits."""
    (x,) = promote_to_float(g, x)
    near = g.Mul(g.Atanh(g.Div(x, g.Add(x, 2.0))), 2.0)
    return g.Where(g.Less(g.Abs(x), 0.5), near, g.Log(g.Add(x, 1.0)))


@reads("erfc", "special_erfc")
def read_erfc(g, x):
    (x,) = promote_to_float(g, x)
    return g.Sub(as_type(g, 1.0, x.type), g.Erf(x))


@reads("square")
def read_square(g, x):
    if x.type is DType.BOOL:
        x = g.cast(x, DType.INT64)
    return g.Mul(x, x)


@reads("logical_not")
def read_logical_not(g, x):
    return g.Not(g.is_true(x))


@reads("bitwise_not")
def read_bitwise_not(g, x):
    return g.Not(x) if x.type is DType.BOOL else g.BitwiseNot(x)


@reads("isnan")
def read_isnan(g, x):
    if x.type.kind != "f":
        return g.full_like(x, 0, DType.BOOL)
    return g.IsNaN(x)


@reads("isinf")
def read_isinf(g, x):
    if x.type.kind != "f":
        return g.full_like(x, 0, DType.BOOL)
    return g.Equal(g.Abs(x), math.inf)


@reads("isfinite")
def read_isfinite(g, x):
    if x.type.kind != "f":
        return g.full_like(x, 1, DType.BOOL)
    return g.Less(g.Abs(x), math.inf)


@reads.for_each({"deg2rad": math.pi / 180, "rad2deg": 180 / math.pi})
def read_angle(factor, g, x):
    (x,) = promote_to_float(g, x)
    return g.Mul(x, factor)


@reads.for_each({"isposinf": math.inf, "isneginf": -math.inf})
def read_infinity(number, g, x):
    return g.full_like(x, 0, DType.BOOL) if x.type.kind != "f" else g.Equal(x, number)


@reads("signbit")
def read_signbit(g, x):
    """That of -0.0 by the infinity it divides 1 to."""
    if x.type.kind != "f":
        return (
            g.Less(g.cast(x, DType.INT64), 0)
            if x.type.kind == "i"
            else g.full_like(x, 0, DType.BOOL)
        )
    return is_negative(g, x)


def is_negative(g, x):
    """Whether floats have a sign."""
    zero, one = (as_type(g, v, x.type) for v in (0.0, 1.0))
    return g.Less(g.Where(g.Equal(x, zero), g.Div(one, x), x), zero)


@reads("clamp", "clip")
def read_clamp(g, x, low, high):
    """PyTorch gives the upper bound where the lower is above it, as the IR's Clip does."""
    bounds = [b for b in (low, high) if b is not None]
    x, *_ = promote(g, x, *bounds)
    if low is not None:
        x = g.Max(x, as_type(g, low, x.type))
    return x if high is None else g.Min(x, as_type(g, high, x.type))


@reads("clamp.Tensor", "clip.Tensor")
def read_clamp_tensor(g, x, low, high):
    return read_clamp(g, x, low, high)


@reads("clamp_min")
def read_clamp_min(g, x, low):
    return read_clamp(g, x, low, None)


@reads("clamp_max")
def read_clamp_max(g, x, high):
    return read_clamp(g, x, None, high)


@reads("nan_to_num")
def read_nan_to_num(g, x, nan, posinf, neginf):
    if x.type.kind != "f":
        return g.Identity(x)
    import ml_dtypes

    most = float(ml_dtypes.finfo(x.type.numpy).max)
    high = as_type(g, most if posinf is None else posinf, x.type)
    low = as_type(g, -most if neginf is None else neginf, x.type)
    y = g.Where(g.IsNaN(x), as_type(g, nan or 0.0, x.type), x)
    y = g.Where(g.Equal(x, math.inf), high, y)
    return g.Where(g.Equal(x, -math.inf), low, y)
