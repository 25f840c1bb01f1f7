"""Operators for NumPy's ufuncs by name: comparisons, logic, bits, extrema and rounding are here."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.ir.graph import DType, Value

from . import arithmetic, transcendental
from .arithmetic import (
    Emit,
    absolute,
    constant,
    copysign,
    for_bools,
    is_float,
    is_zero,
    to_type,
    to_wide,
)  # fmt: skip

# Comparisons and logic


def _compare(op: str) -> Emit:
    def emit(g: Any, a: Value, b: Value) -> Value:
        if a.dtype is b.dtype:
            return g[op](a, b)
        return _compare_mixed(g, op, a, b)

    return emit


def _compare_mixed(g: Any, op: str, a: Value, b: Value) -> Value:
    """int64 with uint64, whose common type has not all of their numbers."""
    flipped = {"Less": "Greater", "Greater": "Less", "LessOrEqual": "GreaterOrEqual"}
    flipped["GreaterOrEqual"] = "LessOrEqual"
    if a.type.kind == "u":
        return _compare_mixed(g, flipped.get(op, op), b, a)
    negative = g.Less(a, constant(g, 0, a))
    test = g[op](to_type(g, a, DType.UINT64), b)
    if op.startswith("Less"):
        return g.Or(negative, test)
    return g.And(g.Not(negative), test)


def _not_equal(g: Any, a: Value, b: Value) -> Value:
    if a.dtype is DType.BOOL:
        return g.Xor(a, b)
    return g.Not(_compare("Equal")(g, a, b))


def _of_truth(op: str) -> Emit:
    return lambda g, *xs: g[op](*(to_type(g, x, DType.BOOL) for x in xs))


def _shift_left(g: Any, a: Value, b: Value) -> Value:
    """A product with a power of two; 0 where all bits leave."""
    bits, shift_dtype = a.type.bits, DType.UINT64
    shifted = g.BitShift(to_type(g, a, shift_dtype), _limit_shift(g, b, bits), direction="LEFT")
    return g.Where(_is_within(g, b, bits), to_type(g, shifted, a.type), constant(g, 0, a))


def _limit_shift(g: Any, b: Value, bits: int) -> Value:
    safe = g.Where(_is_within(g, b, bits), b, constant(g, 0, b))
    return to_type(g, safe, DType.UINT64)


def _is_within(g: Any, b: Value, bits: int) -> Value:
    below = g.Less(b, constant(g, bits, b))
    if b.type.kind == "u":
        return below
    return g.And(below, g.GreaterOrEqual(b, constant(g, 0, b)))


def _shift_right(g: Any, a: Value, b: Value) -> Value:
    """Of a negative number the bits are complemented before and after."""
    bits, shift_dtype = a.type.bits, DType.UINT64
    within = _is_within(g, b, bits)
    zero = constant(g, 0, a)
    if a.type.kind == "u":
        shifted = g.BitShift(
            to_type(g, a, shift_dtype), _limit_shift(g, b, bits), direction="RIGHT"
        )
        return g.Where(within, to_type(g, shifted, a.type), zero)
    negative, full = g.Less(a, zero), to_type(g, a, DType.INT64)
    size = g.Where(negative, g.BitwiseNot(full), full)
    shifted = g.BitShift(to_type(g, size, shift_dtype), _limit_shift(g, b, bits), direction="RIGHT")
    shifted = to_type(g, shifted, DType.INT64)
    shifted = g.Where(within, shifted, g.const(np.int64(0)))
    return to_type(g, g.Where(negative, g.BitwiseNot(shifted), shifted), a.type)


def _gcd(g: Any, a: Value, b: Value) -> Value:
    """Euclid's algorithm in as many steps as any two numbers of the type need."""
    a, b = absolute(g, a), absolute(g, b)
    steps = {8: 12, 16: 23, 32: 46, 64: 92}[a.type.bits]
    for _ in range(steps):
        done = is_zero(g, b)
        rest = g.Mod(a, g.Where(done, constant(g, 1, b), b))
        a, b = g.Where(done, a, b), g.Where(done, b, rest)
    return a


def _lcm(g: Any, a: Value, b: Value) -> Value:
    divisor = _gcd(g, a, b)
    safe = g.Where(is_zero(g, divisor), constant(g, 1, divisor), divisor)
    return g.Mul(g.Div(absolute(g, a), safe), absolute(g, b))


# Extrema, rounding and tests


def _ignore_nan(op: str) -> Emit:
    def emit(g: Any, a: Value, b: Value) -> Value:
        if not is_float(a):
            return for_bools("Or" if op == "Max" else "And", op)(g, a, b)
        extreme = g.Where(g.IsNaN(b), a, g[op](a, b))
        return g.Where(g.IsNaN(a), b, extreme)

    return emit


def _of_floats(op: str) -> Emit:
    return lambda g, x: g[op](x) if is_float(x) else x


def _trunc(g: Any, x: Value) -> Value:
    if not is_float(x):
        return x
    return g.Where(g.Greater(x, constant(g, 0, x)), g.Floor(x), g.Ceil(x))


def _is_nan(g: Any, x: Value) -> Value:
    return g.IsNaN(x) if is_float(x) else _all_false(g, x)


def _is_inf(g: Any, x: Value) -> Value:
    return g.IsInf(to_wide(g, x)) if is_float(x) else _all_false(g, x)


def _all_false(g: Any, x: Value) -> Value:
    return g.Expand(g.const(np.array(False)), g.Shape(x))


def _is_finite(g: Any, x: Value) -> Value:
    return g.Not(g.Or(_is_nan(g, x), _is_inf(g, x)))


def _modf(g: Any, x: Value) -> tuple[Value, Value]:
    integral = _trunc(g, x)
    rest = g.Where(_is_inf(g, x), constant(g, 0, x), g.Sub(x, integral))
    return copysign(g, rest, x), copysign(g, integral, x)


def _clip(g: Any, x: Value, low: Value, high: Value) -> Value:
    return g.Min(g.Max(x, low), high)


EMITTERS: dict[str, Emit] = {
    **arithmetic.EMITTERS,
    **transcendental.EMITTERS,
    "less": _compare("Less"),
    "less_equal": _compare("LessOrEqual"),
    "greater": _compare("Greater"),
    "greater_equal": _compare("GreaterOrEqual"),
    "equal": _compare("Equal"),
    "not_equal": _not_equal,
    "logical_and": _of_truth("And"),
    "logical_or": _of_truth("Or"),
    "logical_xor": _of_truth("Xor"),
    "logical_not": _of_truth("Not"),
    "bitwise_and": for_bools("And", "BitwiseAnd"),
    "bitwise_or": for_bools("Or", "BitwiseOr"),
    "bitwise_xor": for_bools("Xor", "BitwiseXor"),
    "invert": for_bools("Not", "BitwiseNot"),
    "left_shift": _shift_left,
    "right_shift": _shift_right,
    "gcd": _gcd,
    "lcm": _lcm,
    "maximum": for_bools("Or", "Max"),
    "minimum": for_bools("And", "Min"),
    "fmax": _ignore_nan("Max"),
    "fmin": _ignore_nan("Min"),
    "floor": _of_floats("Floor"),
    "ceil": _of_floats("Ceil"),
    "trunc": _trunc,
    "rint": _of_floats("Round"),
    "isnan": _is_nan,
    "isinf": _is_inf,
    "isfinite": _is_finite,
    "modf": _modf,
    "clip": _clip,
}
