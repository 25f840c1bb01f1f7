"""Operators for NumPy's arithmetic: functions of a builder and operands in the types of the loop.

Floats follow IEEE 754 as NumPy does, NaN and signed zero included. Integers wrap around; a division
by zero gives 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES

Emit = Callable[..., Any]
F4, F8 = DType.FLOAT32, DType.FLOAT64
BITS = 8  # of an exponent that is not known while the code is traced


def constant(g: Any, number: Any, like: Value) -> Value:
    """A number in the element type of ``like``."""
    with np.errstate(all="ignore"):
        return g.const(np.array(number).astype(like.type.numpy))


def to_type(g: Any, x: Value, dtype: DType) -> Value:
    """``x`` in another element type."""
    return g.Cast(x, to=ELEMENT_CODES[dtype])


def to_wide(g: Any, x: Value) -> Value:
    """float16 as float32: IsInf has no kernel for it."""
    return to_type(g, x, F4) if x.dtype is DType.FLOAT16 else x


def is_float(x: Value) -> bool:
    """Whether the elements are floats."""
    return x.type.kind == "f"


def node_of(op: str) -> Emit:
    """One operator."""
    return lambda g, *xs: g[op](*xs)


def for_bools(logical: str, op: str) -> Emit:
    """One operator, and another one for booleans."""
    return lambda g, *xs: g[logical if xs[0].dtype is DType.BOOL else op](*xs)


# Arithmetic


def is_zero(g: Any, x: Value) -> Value:
    """Whether each element is 0."""
    return g.Equal(x, constant(g, 0, x))


def signbit(g: Any, x: Value) -> Value:
    """Whether each element is negative, as -0 is."""
    if not is_float(x):
        return g.Less(x, constant(g, 0, x))
    zero = constant(g, 0, x)
    return g.Or(g.Less(x, zero), g.Less(g.Reciprocal(x), zero))


def copysign(g: Any, x: Value, y: Value) -> Value:
    """The size of ``x`` with the sign of ``y``."""
    return with_sign(g, g.Abs(x), signbit(g, y))


def with_sign(g: Any, size: Value, negative: Value) -> Value:
    """The negative of ``size`` where it is to be negative, a zero too."""
    return g.Mul(size, g.Where(negative, constant(g, -1, size), constant(g, 1, size)))


def _is_constant(x: Value) -> bool:
    return x.tensor is not None and x.tensor.size <= 1024


def _divide_integers(g: Any, a: Value, b: Value) -> tuple[Value, Value]:
    """The quotient rounded down, and the remainder, both 0 where the divisor is 0."""
    safe, zero = b, None
    signed = b.type.kind == "i"
    if not _is_constant(b) or not b.array().all() or (signed and (b.array() == -1).any()):
        zero = is_zero(g, b)
        odd = g.Or(zero, g.Equal(b, constant(g, -1, b))) if signed else zero
        safe = g.Where(odd, constant(g, 1, b), b)
    rest = g.Mod(a, safe)
    quotient = g.Div(g.Sub(a, rest), safe) if signed else g.Div(a, safe)
    if zero is None:
        return quotient, rest
    none = constant(g, 0, a)
    if signed:
        quotient = g.Where(g.Equal(b, constant(g, -1, b)), g.Neg(a), quotient)
    return g.Where(zero, none, quotient), g.Where(zero, none, rest)


def _divide_floats(g: Any, a: Value, b: Value) -> tuple[Value, Value]:
    """Python's floor division, as NumPy rounds it."""
    rest = g.Mod(a, b, fmod=1)
    zero, one = constant(g, 0, a), constant(g, 1, a)
    other_sign = g.Xor(g.Less(b, zero), g.Less(rest, zero))
    moves = g.And(g.Not(is_zero(g, rest)), other_sign)
    quotient = g.Div(g.Sub(a, rest), b)
    quotient = g.Where(moves, g.Sub(quotient, one), quotient)
    floor = g.Floor(quotient)
    up = g.Greater(g.Sub(quotient, floor), constant(g, 0.5, a))
    floor = g.Where(up, g.Add(floor, one), floor)
    moved = copysign(g, g.Where(moves, g.Add(rest, b), rest), b)
    ratio, by_zero = g.Div(a, b), is_zero(g, b)
    floor = copysign(g, floor, ratio)
    return g.Where(by_zero, ratio, floor), g.Where(by_zero, rest, moved)


def _divmod(g: Any, a: Value, b: Value) -> tuple[Value, Value]:
    return (_divide_floats if is_float(a) else _divide_integers)(g, a, b)


def _fmod(g: Any, a: Value, b: Value) -> Value:
    if is_float(a):
        return g.Mod(a, b, fmod=1)
    rest = _divide_integers(g, a, b)[1]
    if a.type.kind == "u":
        return rest
    zero = constant(g, 0, a)
    wrong = g.And(g.Not(is_zero(g, rest)), g.Xor(g.Less(a, zero), g.Less(b, zero)))
    return g.Where(wrong, g.Sub(rest, b), rest)


def _power(g: Any, a: Value, b: Value) -> Value:
    if is_float(a):
        known = (
            b.array().reshape(-1).tolist() if b.tensor is not None and b.tensor.size == 1 else []
        )
        return g.Mul(a, a) if known == [2] else g.Pow(a, b)
    if b.tensor is not None and b.type.kind == "i" and (b.array() < 0).any():
        raise ValueError("Integers to negative integer powers are not allowed.")
    return _power_of_integers(g, a, b)


def _power_of_integers(g: Any, a: Value, b: Value) -> Value:
    """By squaring, exact modulo the range of the type."""
    if b.tensor is not None:
        bits = int(b.array().max()).bit_length() if b.tensor.size else 0
    else:
        value_bits = b.type.bits - (b.type.kind == "i")
        bits = min(BITS, value_bits)
        if value_bits > bits:  # what is even is 0 by then, and 1, 0 and -1 are right
            most = (1 << bits) - 2
            odd = g.Mod(b, constant(g, 2, b))
            large = g.Greater(b, constant(g, most + 1, b))
            b = g.Where(large, g.Add(constant(g, most, b), odd), b)
    one, result, square = constant(g, 1, a), None, a
    for bit in range(bits):
        power = g.Div(b, constant(g, 1 << bit, b)) if bit else b
        is_set = g.Not(is_zero(g, g.Mod(power, constant(g, 2, b))))
        factor = g.Where(is_set, square, one)
        result = factor if result is None else g.Mul(result, factor)
        square = g.Mul(square, square) if bit + 1 < bits else square
    if result is None:
        return g.Add(g.Mul(a, constant(g, 0, a)), g.Add(g.Mul(b, constant(g, 0, b)), one))
    return result


def absolute(g: Any, x: Value) -> Value:
    """The size of each element."""
    return x if x.type.kind in "ub" else g.Abs(x)


def _positive(g: Any, x: Value) -> Value:
    return x


def _reciprocal(g: Any, x: Value) -> Value:
    if is_float(x):
        return g.Reciprocal(x)
    zero, one = is_zero(g, x), constant(g, 1, x)
    # of 0 what x86 makes of an infinite double
    undefined = np.iinfo(x.type.numpy).min if x.dtype in (DType.INT32, DType.INT64) else 0
    return g.Where(zero, constant(g, undefined, x), g.Div(one, g.Where(zero, one, x)))


def _heaviside(g: Any, x: Value, h: Value) -> Value:
    step = to_type(g, g.Greater(x, constant(g, 0, x)), x.type)
    value = g.Where(is_zero(g, x), h, step)
    return g.Where(g.IsNaN(x), x, value)


def _nextafter(g: Any, a: Value, b: Value) -> Value:
    """The neighbour of ``a`` towards ``b``: a step of a little more than half of the last place."""
    info = np.finfo(a.type.numpy)
    unit, least, most = (float(n) for n in (info.eps / 2, info.smallest_subnormal, info.max))
    x, y = to_type(g, a, F8), to_type(g, b, F8)
    size = g.Abs(x)
    one = constant(g, 1, x)
    tiny = g.Less(size, constant(g, 2.0**-969, x))  # float64's steps there need more exponent
    up, down = (g.Where(tiny, constant(g, n, x), one) for n in (2.0**200, 2.0**-200))
    width = g.Max(g.Mul(g.Mul(size, up), constant(g, unit * (1 + 2 * unit), x)),
                  g.Mul(up, constant(g, least, x)))  # fmt: skip
    step = g.Where(g.Greater(y, x), width, g.Neg(width))
    moved = g.Mul(g.Add(g.Mul(x, up), step), down)
    size = g.Where(g.IsInf(x), constant(g, most, x), g.Abs(moved))
    equal = g.Equal(x, y)
    size = g.Where(equal, g.Abs(y), size)
    size = g.Where(g.Or(g.IsNaN(x), g.IsNaN(y)), constant(g, np.nan, x), size)
    negative = g.Where(is_zero(g, x), g.Less(step, constant(g, 0, x)), signbit(g, x))
    same = signbit(g, x if a.dtype is DType.FLOAT16 else y)  # of zeros: as NumPy's types do
    return to_type(g, with_sign(g, size, g.Where(equal, same, negative)), a.dtype)


EMITTERS: dict[str, Emit] = {
    "add": for_bools("Or", "Add"),
    "subtract": node_of("Sub"),
    "multiply": for_bools("And", "Mul"),
    "divide": node_of("Div"),
    "floor_divide": lambda g, a, b: _divmod(g, a, b)[0],
    "remainder": lambda g, a, b: _divmod(g, a, b)[1],
    "divmod": _divmod,
    "fmod": _fmod,
    "power": _power,
    "float_power": _power,
    "negative": node_of("Neg"),
    "positive": _positive,
    "absolute": absolute,
    "fabs": node_of("Abs"),
    "sign": node_of("Sign"),
    "square": lambda g, x: for_bools("And", "Mul")(g, x, x),
    "sqrt": node_of("Sqrt"),
    "reciprocal": _reciprocal,
    "heaviside": _heaviside,
    "conjugate": _positive,
    "signbit": signbit,
    "copysign": copysign,
    "nextafter": _nextafter,
}
