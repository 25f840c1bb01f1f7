"""Operators on elements, those of two operands, and activations."""

from __future__ import annotations

import numpy as np

from serde.decompositions.elementwise import elu, hard_sigmoid, tangent
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES, ELEMENT_TYPES

from ..target import TfliteBuilder, derive, is_weight, legalizations, writes

FAR = 1e4  # where x and the root of its square and 1 are the same to a float
BELOW_ONE = 1 - 2.0**-20  # which keeps a quotient of floats below that of integers
UNARY = {
    "Abs": "ABS", "Ceil": "CEIL", "Cos": "COS", "Exp": "EXP", "Floor": "FLOOR",
    "HardSwish": "HARD_SWISH", "Log": "LOG", "Neg": "NEG", "Not": "LOGICAL_NOT",
    "Round": "ROUND", "Sigmoid": "LOGISTIC", "Sign": "SIGN", "Sin": "SIN", "Sqrt": "SQRT",
    "Tanh": "TANH",
}  # fmt: skip
BINARY = {
    "Add": "ADD", "And": "LOGICAL_AND", "Div": "DIV", "Equal": "EQUAL", "Greater": "GREATER",
    "GreaterOrEqual": "GREATER_EQUAL", "Less": "LESS", "LessOrEqual": "LESS_EQUAL",
    "Max": "MAXIMUM", "Min": "MINIMUM", "Mul": "MUL", "Or": "LOGICAL_OR", "Pow": "POW",
    "Sub": "SUB",
}  # fmt: skip
TYPES = {
    DType.FLOAT32: 0, DType.INT32: 2, DType.UINT8: 3, DType.INT64: 4, DType.BOOL: 6,
    DType.INT16: 7, DType.INT8: 9, DType.FLOAT16: 1, DType.FLOAT64: 10, DType.UINT32: 15,
    DType.UINT16: 16,
}  # fmt: skip


def broadcast_shape(values):
    """The shape that operands are repeated to: a size by name may be 1 beside a number."""
    rank = max(v.rank for v in values)
    shapes = [(*[1] * (rank - v.rank), *v.ranked_shape) for v in values]
    several = [[d for d in dims if d != 1] for dims in zip(*shapes, strict=True)]
    return tuple([next((d for d in dims if isinstance(d, int)), (*dims, 1)[0]) for dims in several])


@writes.for_each(UNARY)
def write_unary(code: str, t: TfliteBuilder, x: Value):
    return t.make(code, [x], x.dtype, x.shape)


@writes.for_each(BINARY)
def write_binary(code: str, t: TfliteBuilder, x: Value, y: Value):
    is_test = code.startswith(("EQUAL", "GREATER", "LESS", "LOGICAL"))
    return t.make(code, [x, y], DType.BOOL if is_test else x.dtype, broadcast_shape((x, y)))


@writes("Relu")
def write_relu(t: TfliteBuilder, x: Value):
    """RELU is of floats."""
    if x.type.kind == "f":
        return t.make("RELU", [x], x.dtype, x.shape)
    return t.make("MAXIMUM", [x, t.const(np.zeros((), x.type.numpy))], x.dtype, x.shape)


@writes("Identity")
def write_identity(t: TfliteBuilder, x: Value):
    return x


@writes("Where")
def write_where(t: TfliteBuilder, condition: Value, x: Value, y: Value):
    return t.make("SELECT_V2", [condition, x, y], x.dtype, broadcast_shape((condition, x, y)))


@writes("Cast", ignore=("saturate", "round_mode"))
def write_cast(t: TfliteBuilder, x: Value, *, to: int):
    """Weights of float16 stay so in the file: their numbers are dequantized in units of 1."""
    dtype = ELEMENT_TYPES[to]
    if x.tensor is not None and (x.dtype, dtype) == (DType.FLOAT16, DType.FLOAT32) and x.rank > 0:
        return t.make("DEQUANTIZE", [x, t.const(np.float32(1)), None], dtype, x.shape)
    return cast(t, x, dtype)


def cast(t: TfliteBuilder, x: Value, dtype: DType) -> Value:
    """The elements in another type; constants at once."""
    if x.dtype is dtype:
        return x
    if x.tensor is not None:
        return derive(t, x, lambda a: a.astype(dtype.numpy), x.static_shape, dtype)
    options = {"in_data_type": TYPES[x.type], "out_data_type": TYPES[dtype]}
    return t.make("CAST", [x], dtype, x.shape, **options)


@writes("LeakyRelu")
def write_leaky_relu(t: TfliteBuilder, x: Value, *, alpha: float):
    return t.make("LEAKY_RELU", [x], x.dtype, x.shape, alpha=alpha)


@writes("Gelu")
def write_gelu(t: TfliteBuilder, x: Value, *, approximate: str):
    return t.make("GELU", [x], x.dtype, x.shape, approximate=int(approximate == "tanh"))


@legalizations("HardSigmoid")
def legalize_hard_sigmoid(g, x: Value, *, alpha: float, beta: float):
    """A sum up to 6, which is one operator, also of integers, and a product."""
    if x.dtype is not DType.FLOAT32 or abs(6 * alpha - 1) > 1e-6:
        return hard_sigmoid(g, x, alpha=alpha, beta=beta)
    return g.Mul(g.Clip(g.Add(x, 6 * beta), 0.0, 6.0), alpha)


@legalizations("Elu")
def legalize_elu(g, x: Value, *, alpha: float):
    """ELU has no alpha."""
    return None if alpha == 1 else elu(g, x, alpha=alpha)


@writes("Elu", only={"alpha": (1.0,)})
def write_elu(t: TfliteBuilder, x: Value):
    return t.make("ELU", [x], x.dtype, x.shape)


@legalizations("Pow")
def legalize_pow(g, x: Value, y: Value):
    """A square is a product, which has kernels of integers.

    POW takes operands of one type; a power with a fraction is of a float.
    """
    is_number = y.tensor is not None and y.tensor.size == 1 and y.rank <= x.rank
    if x.type.kind == "f" and is_number and y.array().item() == 2:
        return g.Mul(x, x)
    if x.type is y.type:
        return None
    if x.type.kind == "f" or y.type.kind != "f":
        return g.Pow(x, g.cast_like(y, x))
    return g.cast_like(g.Pow(g.cast_like(x, y), y), x)


@legalizations("Xor")
def legalize_xor(g, x: Value, y: Value):
    return g.Not(g.Equal(x, y))


@legalizations("Mod")
def legalize_mod(g, x: Value, y: Value, *, fmod: int):
    """FLOOR_MOD has the sign of the divisor."""
    if not fmod:
        return None
    rest, zero = g.Mod(x, y), g.const(0, x.type)
    is_other = g.Xor(g.Less(x, zero), g.Less(rest, zero))
    return g.Where(g.And(is_other, g.Not(g.Equal(rest, zero))), g.Sub(rest, y), rest)


@legalizations("Div")
def legalize_div(g, x: Value, y: Value):
    """A quotient of int64, which DIV does not have, is summed of quotients of floats.

    Without the rest of the division ``left`` is a multiple of ``y``. Each turn takes all but a
    millionth of it away, and the last what is left, of few enough bits to be exact.
    """
    if x.type is not DType.INT64:
        return None
    divisor, left = g.cast(y, DType.FLOAT32), g.Sub(x, g.Mod(x, y, fmod=1))
    total = g.const(0, DType.INT64)
    for _ in range(3):
        part = g.Mul(g.Div(g.cast(left, DType.FLOAT32), divisor), BELOW_ONE)  # within 64 bits
        quotient = g.cast(part, DType.INT64)
        total, left = g.Add(total, quotient), g.Sub(left, g.Mul(quotient, y))
    rest = g.Round(g.Div(g.cast(left, DType.FLOAT32), divisor))
    return g.Add(total, g.cast(rest, DType.INT64))


@writes("Mod", only={"fmod": (0,)})
def write_mod(t: TfliteBuilder, x: Value, y: Value):
    return t.make("FLOOR_MOD", [x, y], x.dtype, broadcast_shape((x, y)))


@writes("Clip")
def write_clip(t: TfliteBuilder, x: Value, low: Value | None = None, high: Value | None = None):
    bounds = [None if v is None else float(v.array()) for v in (low, high)]
    if bounds == [0.0, 6.0] and x.type is DType.FLOAT32:
        return t.make("RELU6", [x], x.dtype, x.shape)
    for code, bound in (("MAXIMUM", low), ("MINIMUM", high)):
        if bound is not None:
            number = t.const(np.asarray(bound.array()).reshape(()))
            x = t.make(code, [x, number], x.dtype, x.shape)
    return x


@legalizations("PRelu")
def legalize_prelu(g, x: Value, slope: Value):
    """A slope that is computed or of integers, or one for each sample, is a factor."""
    is_shared = x.rank > max(slope.rank, 1) or (x.rank > 1 and slope.ranked_shape[0] == 1)
    if is_weight(g, slope) and is_shared and x.type is DType.FLOAT32:
        return None
    return g.Add(g.Relu(x), g.Mul(slope, g.Min(x, g.const(0, x.type))))


@writes("PRelu")
def write_prelu(t: TfliteBuilder, x: Value, slope: Value):
    wanted = (1,) * (x.rank - slope.rank) + slope.static_shape
    return t.make("PRELU", [x, t.reshape(slope, wanted[1:])], x.dtype, x.shape)


# Inverse functions, of the two that there are: of a quotient, and Log


@writes("Atan")
def write_atan(t: TfliteBuilder, x: Value):
    return t.make("ATAN2", [x, full_like(t, x, 1.0)], x.dtype, x.shape)


@writes("Asin")
def write_asin(t: TfliteBuilder, x: Value):
    return t.make("ATAN2", [x, other_side(t, x)], x.dtype, x.shape)


@writes("Acos")
def write_acos(t: TfliteBuilder, x: Value):
    return t.make("ATAN2", [other_side(t, x), x], x.dtype, x.shape)


def full_like(t: TfliteBuilder, x: Value, number: float) -> Value:
    """A constant of one number, in the shape of ``x``."""
    return t.const(np.full(x.static_shape, number, np.float32))


def other_side(t: TfliteBuilder, x: Value) -> Value:
    """``sqrt((1 - x) * (1 + x))``."""
    one = t.const(np.float32(1))
    factors = [t.make(code, [one, x], x.dtype, x.shape) for code in ("SUB", "ADD")]
    return t.make("SQRT", [t.make("MUL", factors, x.dtype, x.shape)], x.dtype, x.shape)


legalizations("Tan")(tangent)


def log_of_more_than_one(g, x: Value):
    """``log(1 + x)``, also of a small ``x``, by what the rounding of the sum has changed."""
    total = g.Add(x, 1.0)
    more = g.Sub(total, 1.0)
    return g.Where(g.Equal(more, 0.0), x, g.Mul(g.Log(total), g.Div(x, more)))


def log_of_double(g, x: Value, small: Value):
    """``small`` of numbers below ``FAR``, beyond which their squares may be infinite."""
    return g.Where(g.Less(x, FAR), small, g.Add(g.Log(g.Max(x, 1.0)), float(np.log(2))))


@legalizations("Asinh")
def legalize_asinh(g, x: Value):
    size = g.Abs(x)
    near = g.Min(size, FAR)
    squares = g.Mul(near, near)
    root = g.Sqrt(g.Add(squares, 1.0))
    small = log_of_more_than_one(g, g.Add(near, g.Div(squares, g.Add(root, 1.0))))
    return g.Mul(g.Sign(x), log_of_double(g, size, small))


@legalizations("Acosh")
def legalize_acosh(g, x: Value):
    near = g.Min(x, FAR)
    more = g.Sub(near, 1.0)
    roots = g.Mul(g.Sqrt(more), g.Sqrt(g.Add(near, 1.0)))
    return log_of_double(g, x, log_of_more_than_one(g, g.Add(more, roots)))


@legalizations("Atanh")
def legalize_atanh(g, x: Value):
    """Half of two logarithms, of which one is infinite at the ends."""
    sides = [log_of_more_than_one(g, side) for side in (x, g.Neg(x))]
    return g.Mul(g.Sub(*sides), 0.5)


@legalizations("Cosh")
def legalize_cosh(g, x: Value):
    """Half of both powers, of which none is larger than the result."""
    half = float(np.log(2))
    return g.Add(g.Exp(g.Sub(x, half)), g.Exp(g.Neg(g.Add(x, half))))


@legalizations("Sinh")
def legalize_sinh(g, x: Value):
    """The same difference, but near 0 by a power less 1, which loses nothing."""
    half = float(np.log(2))
    near = g.Clip(x, -1.0, 1.0)
    power = g.Exp(near)
    less = g.Sub(power, 1.0)
    exact = g.Where(g.Equal(less, 0.0), near, g.Mul(less, g.Div(near, g.Log(power))))
    small = g.Mul(g.Add(exact, g.Div(exact, g.Add(exact, 1.0))), 0.5)
    large = g.Sub(g.Exp(g.Sub(x, half)), g.Exp(g.Neg(g.Add(x, half))))
    return g.Where(g.Less(g.Abs(x), 1.0), small, large)


# Bits


@writes("BitwiseXor")
def write_bitwise_xor(t: TfliteBuilder, a: Value, b: Value):
    return t.make("BITWISE_XOR", [a, b], a.dtype, broadcast_shape((a, b)))


def of_bits(g, kind: DType, join, a: Value, b: Value):
    """An operator on the halves of 32 bits: the sum of bits less those that differ is even."""
    parts = []
    for unit in (1, 1 << 16):
        p, q = (take_half(g, g.Cast(v, to=ELEMENT_CODES[DType.INT32]), unit) for v in (a, b))
        parts.append(g.Mul(join(g, g.Add(p, q), g.BitwiseXor(p, q)), unit))
    return g.Cast(g.Add(*parts), to=ELEMENT_CODES[kind])


def take_half(g, x: Value, unit: int):
    """The low 16 bits, or the others, which have the sign."""
    low = g.Mod(x, g.const(1 << 16, x.type))
    return low if unit == 1 else g.Div(g.Sub(x, low), g.const(unit, x.type))


@legalizations("BitwiseAnd")
def legalize_bitwise_and(g, a: Value, b: Value):
    """The bits that both have."""
    if a.type.bits > 32:
        return None
    return of_bits(g, a.type, lambda g, total, rest: g.Div(g.Sub(total, rest), 2), a, b)


@legalizations("BitwiseOr")
def legalize_bitwise_or(g, a: Value, b: Value):
    """The bits that one has at least."""
    if a.type.bits > 32:
        return None
    return of_bits(g, a.type, lambda g, total, rest: g.Div(g.Add(total, rest), 2), a, b)


@writes("BitCast")
def write_bit_cast(t: TfliteBuilder, x: Value, *, to: int):
    return t.make("BITCAST", [x], ELEMENT_TYPES[to], x.shape)
