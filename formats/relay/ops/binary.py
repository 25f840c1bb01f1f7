"""Arithmetic, comparison and logic of two tensors of one type, broadcast as in NumPy."""

from __future__ import annotations

from functools import partial

from serde.decompositions.expressions import cast
from serde.ir.graph import DType, Value

from ..rules import reads
from .widths import in_float, widely

IGNORED = ("lhs_axis", "rhs_axis")  # of BroadcastAttrs, which only qnn operators read


def floor_divided(g, a: Value, b: Value):
    """Rounded towards minus infinity."""
    if a.type.kind == "f":
        return g.Floor(g.Div(a, b))
    if a.type.kind == "u":
        return g.Div(a, b)
    return widely(g, lambda g, a, b: g.Div(g.Sub(a, g.Mod(a, b)), b), a, b)


def floor_mod(g, a: Value, b: Value):
    """With the divisor's sign."""
    if a.type.kind == "f":
        return g.Sub(a, g.Mul(g.Floor(g.Div(a, b)), b))
    return widely(g, lambda g, a, b: g.Mod(a, b), a, b)


def trunc_mod(g, a: Value, b: Value):
    """With the dividend's sign."""
    return widely(g, lambda g, a, b: g.Mod(a, b, fmod=1), a, b)


def trunc_divided(g, a: Value, b: Value):
    """Rounded towards zero."""
    if a.type.kind != "f":
        return g.Div(a, b)
    quotient = g.Div(a, b)
    return g.Mul(g.Sign(quotient), g.Floor(g.Abs(quotient)))


def power(g, a: Value, b: Value):
    return in_float(g, lambda g, a, b: g.Pow(a, b), a, b)


def extreme(op):
    return lambda g, a, b: widely(g, lambda g, a, b: g[op](a, b), a, b)


def bits_moved(direction):
    return lambda g, a, b: widely(g, lambda g, a, b: g.BitShift(a, b, direction=direction), a, b)


FUNCTIONS = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "floor_divide": floor_divided,
    "floor_mod": floor_mod,
    "trunc_divide": trunc_divided,
    "trunc_mod": trunc_mod,
    "mod": trunc_mod,
    "power": power,
    "maximum": extreme("Max"),
    "minimum": extreme("Min"),
    "equal": "Equal",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "not_equal": lambda g, a, b: g.Not(g.Equal(a, b)),
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "left_shift": bits_moved("LEFT"),
    "right_shift": bits_moved("RIGHT"),
}
OF_TRUTHS = {  # what arithmetic and comparison of booleans comes to
    "add": "Or",
    "multiply": "And",
    "maximum": "Or",
    "minimum": "And",
    "bitwise_and": "And",
    "bitwise_or": "Or",
    "bitwise_xor": "Xor",
}


def read_binary(name, op, g, a: Value, b: Value):
    if a.type is DType.BOOL and name in OF_TRUTHS:
        op = OF_TRUTHS[name]
    elif a.type is DType.BOOL and name not in ("equal", "not_equal") and "logical" not in name:
        a, b = cast(g, a, DType.INT32), cast(g, b, DType.INT32)
    return g[op](a, b) if isinstance(op, str) else op(g, a, b)


for _name, _op in FUNCTIONS.items():
    reads(_name, ignore=IGNORED)(partial(read_binary, _name, _op))


@reads("where")
def read_where(g, condition, x, y):
    """Any number but 0 is true."""
    return g.Where(cast(g, condition, DType.BOOL), x, y)
