"""Exponentials, logarithms and trigonometry, in forms that keep their digits.

ONNX Runtime has half of the functions in float32 only: for float64 they are made of what it has.
"""

from __future__ import annotations

import math
from typing import Any

from serde.ir.graph import DType, Value

from .arithmetic import Emit, constant, is_zero, node_of, signbit, to_type, to_wide, with_sign

F4, F8 = DType.FLOAT32, DType.FLOAT64


def _expm1(g: Any, x: Value) -> Value:
    if x.dtype is F8:
        half = g.Tanh(g.Mul(x, constant(g, 0.5, x)))
        two = constant(g, 2, x)
        near = g.Div(g.Mul(two, half), g.Sub(constant(g, 1, x), half))
        far = g.Sub(g.Exp(x), constant(g, 1, x))
        return g.Where(g.GreaterOrEqual(x, constant(g, 1, x)), far, near)
    return to_type(g, _expm1(g, to_type(g, x, F8)), x.type)


def _log1p(g: Any, x: Value) -> Value:
    if x.dtype is not F8:
        return to_type(g, _log1p(g, to_type(g, x, F8)), x.type)
    one = constant(g, 1, x)
    u = g.Add(one, x)
    rest = g.Sub(u, one)
    plain = g.Or(is_zero(g, rest), g.IsInf(u, detect_negative=0))  # the result is x itself
    return g.Mul(x, g.Where(plain, one, g.Div(g.Log(u), g.Where(plain, one, rest))))


def _scaled_log(base: float) -> Emit:
    def emit(g: Any, x: Value) -> Value:
        if x.dtype is not F8:
            return to_type(g, emit(g, to_type(g, x, F8)), x.type)
        return g.Div(g.Log(x), constant(g, math.log(base), x))

    return emit


def _logaddexp(exp: Emit, log1p: Emit) -> Emit:
    def emit(g: Any, a: Value, b: Value) -> Value:
        largest = g.Max(a, b)
        difference = g.Neg(g.Abs(g.Sub(a, b)))
        difference = g.Where(g.Equal(a, b), constant(g, 0, a), difference)  # of infinities
        return g.Add(largest, log1p(g, exp(g, difference)))

    return emit


def _log2_1p(g: Any, x: Value) -> Value:
    return g.Div(_log1p(g, x), constant(g, math.log(2), x))


def _exp2(g: Any, x: Value) -> Value:
    return g.Pow(constant(g, 2, x), x)


def _cbrt(g: Any, x: Value) -> Value:
    if x.dtype is not F8:
        return to_type(g, _cbrt(g, to_type(g, x, F8)), x.type)
    size = g.Abs(x)
    root = g.Pow(size, constant(g, 1 / 3, x))
    three = constant(g, 3, x)
    plain = g.Or(is_zero(g, root), g.IsInf(root))
    safe = g.Where(plain, constant(g, 1, x), root)
    step = g.Div(g.Sub(safe, g.Div(size, g.Mul(safe, safe))), three)
    root = g.Where(plain, root, g.Sub(safe, step))
    return _keep_zeros(g, g.Where(g.Less(x, constant(g, 0, x)), g.Neg(root), root), x)


# Trigonometry. ONNX Runtime has half of it in float32 only: the rest are made of what it has.


def _with_doubles(op: str, emit: Emit) -> Emit:
    """The operator, but for float64 a formula in others."""
    return lambda g, *xs: emit(g, *xs) if xs[0].dtype is F8 else g[op](*xs)


def _tan(g: Any, x: Value) -> Value:
    return g.Div(g.Sin(x), g.Cos(x))


def _atan(g: Any, x: Value) -> Value:
    """One Newton step from the result in float32, which has then twice its digits."""
    one = constant(g, 1, x)
    outside = g.Greater(g.Abs(x), one)
    inner = g.Where(outside, g.Div(one, g.Where(outside, x, one)), x)
    guess = to_type(g, g.Atan(to_type(g, inner, F4)), F8)
    sin, cos = g.Sin(guess), g.Cos(guess)
    step = g.Div(g.Sub(g.Mul(inner, cos), sin), g.Add(cos, g.Mul(inner, sin)))
    angle = g.Add(guess, step)
    quarter = g.Where(g.Less(x, constant(g, 0, x)), constant(g, -math.pi / 2, x),
                      constant(g, math.pi / 2, x))  # fmt: skip
    angle = g.Where(outside, g.Sub(quarter, angle), angle)
    return _keep_zeros(g, angle, x)


def _asin(g: Any, x: Value) -> Value:
    one = constant(g, 1, x)
    root = g.Sqrt(g.Mul(g.Sub(one, x), g.Add(one, x)))
    return _atan(g, g.Div(x, root))


def _acos(g: Any, x: Value) -> Value:
    one = constant(g, 1, x)
    ratio = g.Sqrt(g.Div(g.Sub(one, x), g.Add(one, x)))
    return g.Mul(constant(g, 2, x), _atan(g, ratio))


def _sinh(g: Any, x: Value) -> Value:
    half = constant(g, 0.5, x)
    tanh = g.Tanh(g.Mul(x, half))
    near = g.Div(g.Mul(constant(g, 2, x), tanh), g.Sub(constant(g, 1, x), g.Mul(tanh, tanh)))
    # the factor inside of the exponential keeps the largest results finite
    root = g.Exp(g.Mul(g.Abs(x), half))
    far = g.Sub(g.Mul(g.Mul(half, root), root), g.Div(g.Div(half, root), root))
    far = g.Where(g.Less(x, constant(g, 0, x)), g.Neg(far), far)
    return g.Where(g.GreaterOrEqual(g.Abs(x), constant(g, 1, x)), far, near)


def _cosh(g: Any, x: Value) -> Value:
    half = constant(g, 0.5, x)
    root = g.Exp(g.Mul(g.Abs(x), half))
    return g.Add(g.Mul(g.Mul(half, root), root), g.Div(g.Div(half, root), root))


def _asinh(g: Any, x: Value) -> Value:
    size, one = g.Abs(x), constant(g, 1, x)
    root = g.Sqrt(g.Add(g.Mul(size, size), one))
    near = _log1p(g, g.Add(size, g.Div(g.Mul(size, size), g.Add(one, root))))
    far = g.Add(g.Log(size), constant(g, math.log(2), x))
    value = g.Where(g.Greater(size, constant(g, 1e9, x)), far, near)
    value = g.Where(g.Less(x, constant(g, 0, x)), g.Neg(value), value)
    return _keep_zeros(g, value, x)


def _acosh(g: Any, x: Value) -> Value:
    one = constant(g, 1, x)
    above = g.Sub(x, one)
    near = _log1p(g, g.Add(above, g.Sqrt(g.Mul(above, g.Add(x, one)))))
    far = g.Add(g.Log(x), constant(g, math.log(2), x))
    return g.Where(g.Greater(x, constant(g, 1e9, x)), far, near)


def _atanh(g: Any, x: Value) -> Value:
    one, size = constant(g, 1, x), g.Abs(x)
    value = g.Mul(constant(g, 0.5, x), _log1p(g, g.Div(g.Mul(constant(g, 2, x), size),
                                                      g.Sub(one, size))))  # fmt: skip
    value = g.Where(g.Less(x, constant(g, 0, x)), g.Neg(value), value)
    return _keep_zeros(g, value, x)


def _keep_zeros(g: Any, value: Value, x: Value) -> Value:
    """``x`` itself where it is a zero, with its sign.

    ONNX Runtime's Where takes a zero of its second operand for a positive one, of its third not;
    Where of a Not is turned around by its optimizer.
    """
    return g.Where(g.Greater(g.Abs(x), constant(g, 0, x)), value, x)


def _arctan2(g: Any, y: Value, x: Value) -> Value:
    if x.dtype is not F8:
        angle_float64 = _arctan2(g, to_type(g, y, F8), to_type(g, x, F8))
        return to_type(g, angle_float64, x.type)
    one = constant(g, 1, x)
    infinite = g.And(g.IsInf(x), g.IsInf(y))
    a = g.Where(infinite, one, g.Abs(y))
    b = g.Where(infinite, one, g.Abs(x))
    swap = g.Greater(a, b)
    largest, smallest = g.Max(a, b), g.Min(a, b)
    both_zero = is_zero(g, largest)
    ratio = g.Div(smallest, g.Where(both_zero, one, largest))
    angle = _atan(g, ratio)
    angle = g.Where(swap, g.Sub(constant(g, math.pi / 2, x), angle), angle)
    angle = g.Where(signbit(g, x), g.Sub(constant(g, math.pi, x), angle), angle)
    angle = with_sign(g, angle, signbit(g, y))
    nan = g.Or(g.IsNaN(x), g.IsNaN(y))
    return g.Where(nan, g.Add(x, y), angle)  # third, as in _keep_zeros


def _hypot(g: Any, a: Value, b: Value) -> Value:
    a, b = g.Abs(a), g.Abs(b)
    largest, smallest = g.Max(a, b), g.Min(a, b)
    one = constant(g, 1, a)
    plain = g.Or(is_zero(g, largest), g.IsInf(to_wide(g, largest)))
    ratio = g.Div(smallest, g.Where(plain, one, largest))
    length = g.Mul(largest, g.Sqrt(g.Add(one, g.Mul(ratio, ratio))))
    infinite = g.Or(g.IsInf(to_wide(g, a)), g.IsInf(to_wide(g, b)))
    length = g.Where(is_zero(g, largest), constant(g, 0, a), length)
    return g.Where(infinite, constant(g, math.inf, a), length)


def _multiply_by(factor: float) -> Emit:
    return lambda g, x: g.Mul(x, constant(g, factor, x))


EMITTERS: dict[str, Emit] = {
    "cbrt": _cbrt,
    "exp": node_of("Exp"),
    "exp2": _exp2,
    "expm1": _expm1,
    "log": node_of("Log"),
    "log2": _scaled_log(2),
    "log10": _scaled_log(10),
    "log1p": _log1p,
    "logaddexp": _logaddexp(node_of("Exp"), _log1p),
    "logaddexp2": _logaddexp(_exp2, _log2_1p),
    "sin": node_of("Sin"),
    "cos": node_of("Cos"),
    "tan": _with_doubles("Tan", _tan),
    "arcsin": _with_doubles("Asin", _asin),
    "arccos": _with_doubles("Acos", _acos),
    "arctan": _with_doubles("Atan", _atan),
    "arctan2": _arctan2,
    "sinh": _with_doubles("Sinh", _sinh),
    "cosh": _with_doubles("Cosh", _cosh),
    "tanh": node_of("Tanh"),
    "arcsinh": _with_doubles("Asinh", _asinh),
    "arccosh": _with_doubles("Acosh", _acosh),
    "arctanh": _with_doubles("Atanh", _atanh),
    "hypot": _hypot,
    "deg2rad": _multiply_by(math.pi / 180),
    "radians": _multiply_by(math.pi / 180),
    "rad2deg": _multiply_by(180 / math.pi),
    "degrees": _multiply_by(180 / math.pi),
}
