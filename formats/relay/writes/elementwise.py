"""Operators that compute each element for itself, and activations."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.decompositions.expressions import cast as cast_to
from serde.decompositions.expressions import cast_like, number
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_TYPES

from ..target import TYPES, cast, lifted, scalar, typed, writes
from .recast import recasts

UNARY = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "BitwiseNot": "bitwise_not",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Exp": "exp",
    "Floor": "floor",
    "Identity": "copy",
    "IsNaN": "isnan",
    "Log": "log",
    "Neg": "negative",
    "Not": "logical_not",
    "Relu": "nn.relu",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
BINARY = {
    "Add": "add",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Div": "divide",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "Max": "maximum",
    "Min": "minimum",
    "Mul": "multiply",
    "Sub": "subtract",
}


def write_unary(op, r, x):
    return r[UNARY[op]](x)


for _op in UNARY:
    writes(_op)(partial(write_unary, _op))


def by_half(g, x: Value):
    """The tangent of half an angle, and its square."""
    tangent = g.Tan(g.Mul(x, 0.5))
    return tangent, g.Mul(tangent, tangent)


def open_sine(g, x: Value):
    tangent, square = by_half(g, x)
    return g.Div(g.Mul(tangent, 2.0), g.Add(square, 1.0))


def open_cosine(g, x: Value):
    _, square = by_half(g, x)
    return g.Div(g.Sub(1.0, square), g.Add(square, 1.0))


def hyperbolic(sign: str):
    return lambda g, x: g.Mul(g[sign](g.Exp(x), g.Exp(g.Neg(x))), 0.5)


# What stands for operators that TVM has for tensors of known sizes only
OPEN = {
    "Abs": lambda g, x: g.Max(x, g.Neg(x)),
    "Cos": open_cosine,
    "Cosh": hyperbolic("Add"),
    "IsNaN": lambda g, x: g.Not(g.Equal(x, x)),
    "Sign": lambda g, x: g.Sub(cast_like(g, g.Greater(x, 0), x), cast_like(g, g.Less(x, 0), x)),
    "Sin": open_sine,
    "Sinh": hyperbolic("Sub"),
}
ORDERS = frozenset("Equal Greater GreaterOrEqual Less LessOrEqual".split())


def recast_open(op, g, x):
    """Unsigned elements are their own size; sizes that stand open want other operators."""
    if op in ("Abs", "Relu") and x.type.kind in "ub":
        return g.Identity(x)
    return OPEN[op](g, x) if op in OPEN and not x.is_static else None


for _op in (*OPEN, "Relu"):
    recasts(_op)(partial(recast_open, _op))


@recasts("Not")
def recast_not(g, x):
    """TVM makes the opposite comparison of what is not so, which is no less untrue of NaN."""
    return g.Less(cast_to(g, x, DType.FLOAT32), 0.5) if compares_floats(g, x) else None


def compares_floats(g, x: Value) -> bool:
    """Whether a comparison of floats is in what is computed for ``x`` from booleans."""
    found, seen = [x], {x}
    while found:
        node = g.made(found.pop())
        inputs = [v for v in node.inputs if v is not None] if node is not None else []
        if node is not None and node.op in ORDERS and inputs[0].type.kind == "f":
            return True
        found += [v for v in inputs if v.dtype is DType.BOOL and v not in seen]
        seen.update(inputs)
    return False


@writes("Erf")
def write_erf(r, x):
    """The approximation, of single precision's accuracy, for sizes that stand open."""
    if x.is_static or x.type is DType.FLOAT64:
        return r.erf(x)
    return cast(r, r.fast_erf(cast(r, x, DType.FLOAT32)), x.type)


def write_binary(name, r, a, b):
    return r[name](*lifted(r, a, b))


for _op, _name in BINARY.items():
    writes(_op)(partial(write_binary, _name))


def recast_variadic(op, g, first, *rest):
    """Two operands at a time."""
    if op == "Sum" and not rest:
        return g.Identity(first)
    if op != "Sum" and len(rest) < 2:
        return None if rest else g.Identity(first)
    two = "Add" if op == "Sum" else op
    for other in rest:
        first = g[two](first, other)
    return first


for _op in ("Max", "Min", "Sum"):
    recasts(_op)(partial(recast_variadic, _op))


@recasts("Mean")
def recast_mean(g, *xs):
    return g.Div(g.Sum(*xs), float(len(xs)))


@recasts("Equal")
def recast_equal(g, a, b):
    """Of booleans: not different."""
    return g.Not(g.Xor(a, b)) if a.type is DType.BOOL else None


@recasts("Reciprocal")
def recast_reciprocal(g, x):
    return g.Div(1.0, x)


@recasts("Round")
def recast_round(g, x):
    """Halves go to the even neighbour; Relay's ``round`` takes them away from zero."""
    down = g.Floor(x)
    rest = g.Sub(x, down)
    odd = g.Sub(down, g.Mul(g.Floor(g.Mul(down, 0.5)), 2.0))
    up = g.Or(g.Greater(rest, 0.5), g.And(g.Equal(rest, 0.5), g.Equal(odd, 1.0)))
    return g.Add(down, cast_like(g, up, x))


@recasts("Mod")
def recast_mod(g, a, b, *, fmod: int):
    """Of floats with the divisor's sign: the rest, and once the divisor where the signs differ."""
    if fmod or a.type.kind != "f":
        return None
    rest = g.Mod(a, b, fmod=1)
    other = g.Xor(g.Less(rest, 0.0), g.Less(b, 0.0))
    return g.Where(g.And(other, g.Not(g.Equal(rest, 0.0))), g.Add(rest, b), rest)


@writes("Mod")
def write_mod(r, a, b, *, fmod: int):
    """The sign is the divisor's, or with fmod the dividend's, as it is of ``mod``."""
    return r.mod(a, b) if fmod or a.type.kind == "u" else r.floor_mod(a, b)


@recasts("Pow")
def recast_pow(g, x, y):
    """Of floats of one type; integers are computed as doubles."""
    if x.type.kind == "f":
        return None if x.type is y.type else g.Pow(x, cast_like(g, y, x))
    wide = DType.FLOAT64
    made = g.Pow(cast_to(g, x, wide), cast_to(g, y, wide))
    return cast_like(g, made, x)


@writes("Pow")
def write_pow(r, x, y):
    return r.power(*lifted(r, x, y))


@writes("BitShift")
def write_bit_shift(r, x, y, *, direction: str):
    """By so many bits that none are left, or by less than none: only the sign is."""
    shift = r.left_shift if direction == "LEFT" else r.right_shift
    held = y.array() if y.tensor is not None else None
    if held is not None and held.size and 0 <= held.min() <= held.max() < x.type.bits:
        return shift(x, y)
    zero = scalar(r, 0, x.type)
    within = r.less(y, scalar(r, x.type.bits, y.type))
    sign = zero
    if x.type.kind == "i":
        within = r.logical_and(within, r.greater_equal(y, zero))
        if direction == "RIGHT":
            sign = r.where(r.less(x, zero), scalar(r, -1, x.type), zero)
    return r.where(within, shift(x, r.where(within, y, zero)), sign)


@recasts("IsInf")
def recast_is_inf(g, x, *, detect_negative: int, detect_positive: int):
    if detect_negative and detect_positive:
        if x.is_static:
            return None
        return g.Or(*(g.IsInf(x, detect_negative=i, detect_positive=1 - i) for i in (0, 1)))
    if not detect_negative and not detect_positive:
        return g.And(g.IsNaN(x), g.Not(g.IsNaN(x)))
    end = np.array(np.inf if detect_positive else -np.inf, x.type.numpy)
    return g.Equal(x, g.const(end))


@writes("IsInf", ignore=("detect_negative", "detect_positive"))
def write_is_inf(r, x):
    return r.isinf(x)


@writes("Where")
def write_where(r, condition, x, y):
    return r.where(*lifted(r, condition, x, y))


@writes("Cast", ignore=("saturate", "round_mode"))
def write_cast(r, x, *, to: int):
    dtype = ELEMENT_TYPES[to]
    require(dtype in TYPES, f"Relay computes nothing with {dtype.value} elements")
    require(x.type in TYPES, f"Relay computes nothing with {x.type.value} elements")
    return cast(r, x, dtype)


@writes("BitCast")
def write_bit_cast(r, x, *, to: int):
    dtype = ELEMENT_TYPES[to]
    require(dtype in TYPES, f"Relay computes nothing with {dtype.value} elements")
    if x.type is DType.BOOL:  # a byte each
        x = cast(r, x, DType.UINT8)
    if dtype is DType.BOOL:
        return cast(r, x, dtype)
    return r.reinterpret(x, dtype=dtype.value)


@recasts("Clip")
def recast_clip(g, x, low=None, high=None):
    """Integers, and bounds that are computed or the wrong way round, as comparisons."""
    ends = [number(low), number(high)]
    computed = any(v is not None and n is None for v, n in zip((low, high), ends, strict=True))
    crossed = None not in ends and ends[0] > ends[1]
    if x.type.kind == "f" and not computed and not crossed:
        return g.Identity(x) if low is None and high is None else None
    x = x if low is None else g.Max(x, low)
    return x if high is None else g.Min(x, high)


@writes("Clip")
def write_clip(r, x, low=None, high=None):
    """One bound alone is a comparison: an infinite one is written in few forms of the text."""
    least, most = number(low), number(high)
    if most is None:
        return r.maximum(x, scalar(r, least, x.type))
    if least is None:
        return r.minimum(x, scalar(r, most, x.type))
    return r.clip(x, a_min=float(least), a_max=float(most))


# Activations


@recasts("Softplus")
def recast_softplus(g, x):
    """``log(1 + e^x)``, without an exponential that overflows."""
    return g.Add(g.Relu(x), g.Log(g.Add(g.Exp(g.Neg(g.Abs(x))), 1.0)))


@recasts("Softsign")
def recast_softsign(g, x):
    return g.Div(x, g.Add(g.Abs(x), 1.0))


@recasts("Elu")
def recast_elu(g, x, *, alpha: float):
    return g.Where(g.Greater(x, 0.0), x, g.Mul(g.Sub(g.Exp(g.Min(x, 0.0)), 1.0), alpha))


@recasts("Selu")
def recast_selu(g, x, *, alpha: float, gamma: float):
    return g.Mul(g.Elu(x, alpha=alpha), gamma)


@recasts("HardSigmoid")
def recast_hard_sigmoid(g, x, *, alpha: float, beta: float):
    return g.Clip(g.Add(g.Mul(x, alpha), beta), 0.0, 1.0)


@writes("LeakyRelu")
def write_leaky_relu(r, x, *, alpha: float):
    return r.nn.leaky_relu(x, alpha=alpha)


@recasts("PRelu")
def recast_prelu(g, x, slope):
    """A slope for each channel stays, as Relay has it; others are spelled out."""
    if per_channel(x, slope):
        return None
    return g.Where(g.Less(x, 0), g.Mul(x, slope), x)


def per_channel(x: Value, slope: Value) -> bool:
    """Whether ``slope`` has one number for each channel of ``x``, which has some."""
    dims = slope.dims if slope.is_static else (0, 0)
    wide = [at - len(dims) + x.rank for at, d in enumerate(dims) if d != 1]
    return x.type.kind == "f" and x.rank > 1 and wide == [1] and x.known[1] == dims[1 - x.rank]


@writes("PRelu")
def write_prelu(r, x, slope):
    flat = r.reshape(slope, newshape=(-1,)) if slope.rank != 1 else slope
    return r.nn.prelu(x, typed(flat, x.dtype, (x.known[1],)))
