"""Operators of two tensors, element by element, with PyTorch's promotion."""

from __future__ import annotations

import math

from serde.decompositions.elementwise import arctan2
from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value

from ..promotion import as_type, promote, promote_to_float, result_type
from ..rules import reads
from .unary import is_negative, read_log1p

PRODUCTS = {"mul.Tensor": "Mul", "mul.Scalar": "Mul", "multiply.Tensor": "Mul",
            "multiply.Scalar": "Mul"}  # fmt: skip
COMPARISONS = {
    "eq": "Equal", "gt": "Greater", "ge": "GreaterOrEqual", "lt": "Less", "le": "LessOrEqual",
    "greater": "Greater", "greater_equal": "GreaterOrEqual", "less": "Less",
    "less_equal": "LessOrEqual",
}  # fmt: skip
LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
BITWISE = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "__and__": "And",
           "__or__": "Or", "__xor__": "Xor"}  # fmt: skip
SHIFTS = {"__lshift__": "LEFT", "__rshift__": "RIGHT", "bitwise_left_shift": "LEFT",
          "bitwise_right_shift": "RIGHT"}  # fmt: skip


def overloads(names):
    """The overloads of operators for tensors and for numbers."""
    return {f"{name}.{kind}": op for name, op in names.items() for kind in ("Tensor", "Scalar")}


@reads.for_each(PRODUCTS)
def read_product(op, g, x, y):
    x, y = promote(g, x, y)
    return g.And(x, y) if x.type is DType.BOOL else g.Mul(x, y)


@reads.for_each({"add.Tensor": "Add", "add.Scalar": "Add", "sub.Tensor": "Sub", "sub.Scalar": "Sub",
                 "subtract.Tensor": "Sub", "subtract.Scalar": "Sub"})  # fmt: skip
def read_sum(op, g, x, y, alpha):
    x, y = promote(g, x, y)
    if x.type is DType.BOOL:
        require(op == "Add" and alpha == 1, "a difference of booleans: cast them to integers")
        return g.Or(x, y)
    if alpha != 1:
        y = g.Mul(y, as_type(g, alpha, y.type))
    return g[op](x, y)


@reads("rsub.Scalar", "rsub.Tensor")
def read_rsub(g, x, y, alpha):
    x, y = promote(g, x, y)
    return g.Sub(y, x if alpha == 1 else g.Mul(x, as_type(g, alpha, x.type)))


@reads("div.Tensor", "div.Scalar", "true_divide.Tensor", "true_divide.Scalar", "divide.Tensor",
       "divide.Scalar")  # fmt: skip
def read_div(g, x, y):
    x, y = promote_to_float(g, x, y)
    return g.Div(x, y)


@reads("div.Tensor_mode", "div.Scalar_mode", "divide.Tensor_mode", "divide.Scalar_mode")
def read_div_mode(g, x, y, rounding_mode):
    if rounding_mode is None:
        return read_div(g, x, y)
    if rounding_mode == "floor":
        return read_floor_divide(g, x, y)
    x, y = promote(g, x, y)
    quotient = g.Div(x, y)
    if x.type.kind != "f":
        return quotient
    return g.Where(g.Less(quotient, 0.0), g.Ceil(quotient), g.Floor(quotient))


@reads("floor_divide", "floor_divide.Scalar", "floor_divide.Tensor")
def read_floor_divide(g, x, y):
    x, y = promote(g, x, y)
    if x.type.kind == "u":
        return g.Div(x, y)
    rest = g.Mod(x, y, fmod=1)
    zero = as_type(g, 0, x.type)
    differs = g.And(g.Not(g.Equal(rest, zero)), g.Xor(g.Less(rest, zero), g.Less(y, zero)))
    if x.type.kind != "f":
        return g.Sub(g.Div(x, y), g.cast(differs, x.type))
    quotient = g.Sub(g.Div(g.Sub(x, rest), y), g.cast(differs, x.type))
    low = g.Floor(quotient)
    low = g.Add(low, g.cast(g.Greater(g.Sub(quotient, low), 0.5), x.type))
    return g.Where(g.Equal(y, zero), g.Div(x, y), low)


@reads("remainder.Tensor", "remainder.Scalar")
def read_remainder(g, x, y):
    x, y = promote(g, x, y)
    if x.type.kind != "f":
        return g.Mod(x, y)
    rest = g.Mod(x, y, fmod=1)
    zero = as_type(g, 0, x.type)
    differs = g.And(g.Not(g.Equal(rest, zero)), g.Xor(g.Less(rest, zero), g.Less(y, zero)))
    return g.Where(differs, g.Add(rest, y), rest)


@reads("fmod.Tensor", "fmod.Scalar")
def read_fmod(g, x, y):
    x, y = promote(g, x, y)
    return g.Mod(x, y, fmod=1)


@reads("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def read_pow(g, x, y):
    x, y = promote(g, x, y)
    require(x.type is not DType.BOOL, "a power of booleans: cast them to integers")
    if x.type.kind != "f":
        return g.cast(g.Pow(g.cast(x, DType.INT64), g.cast(y, DType.INT64)), x.type)
    return g.Pow(x, y)


@reads.for_each({"maximum": "Max", "minimum": "Min", "max.other": "Max", "min.other": "Min"})
def read_extreme(op, g, x, y):
    x, y = promote(g, x, y)
    if x.type is DType.BOOL:
        return (g.Or if op == "Max" else g.And)(x, y)
    return g[op](x, y)


@reads("atan2", "arctan2")
def read_atan2(g, y, x):
    return arctan2(g, *promote_to_float(g, y, x))


@reads.for_each(overloads(COMPARISONS))
def read_comparison(op, g, x, y):
    x, y = promote(g, x, y)
    if x.type is DType.BOOL and op != "Equal":
        x, y = g.cast(x, DType.INT32), g.cast(y, DType.INT32)
    return g[op](x, y)


@reads("ne.Tensor", "ne.Scalar", "not_equal.Tensor", "not_equal.Scalar")
def read_ne(g, x, y):
    return g.Not(read_comparison("Equal", g, x, y))


@reads.for_each(LOGICAL)
def read_logical(op, g, x, y):
    return g[op](g.is_true(x), g.is_true(y))


@reads.for_each(overloads(BITWISE))
def read_bitwise(op, g, x, y):
    x, y = promote(g, x, y)
    return g[op](x, y) if x.type is DType.BOOL else g["Bitwise" + op](x, y)


@reads.for_each({**overloads(SHIFTS), "bitwise_left_shift.Tensor_Scalar": "LEFT",
                 "bitwise_right_shift.Tensor_Scalar": "RIGHT"})  # fmt: skip
def read_shift(direction, g, x, y):
    """A shift of signed integers, by powers of two."""
    x, y = promote(g, x, y)
    if x.type.kind == "u":
        return g.BitShift(x, y, direction=direction)
    power = g.cast(g.Pow(as_type(g, 2, DType.INT64), g.cast(y, DType.INT64)), x.type)
    return g.Mul(x, power) if direction == "LEFT" else read_floor_divide(g, x, power)


@reads("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def read_where(g, condition, x, y):
    x, y = promote(g, x, y)
    return g.Where(g.is_true(condition), x, y)


@reads("masked_fill.Scalar", "masked_fill.Tensor")
def read_masked_fill(g, x, mask, value):
    return g.Where(mask, as_type(g, value, x.type), x)


@reads("addcmul")
def read_addcmul(g, x, a, b, *, value):
    x, a, b = promote(g, x, a, b)
    return g.Add(x, g.Mul(g.Mul(a, b), as_type(g, value, x.type)))


@reads("addcdiv")
def read_addcdiv(g, x, a, b, *, value):
    x, a, b = promote_to_float(g, x, a, b)
    return g.Add(x, g.Mul(g.Div(a, b), as_type(g, value, x.type)))


@reads("lerp.Scalar", "lerp.Tensor")
def read_lerp(g, x, end, weight):
    weight = as_type(g, weight, x.type) if not isinstance(weight, Value) else weight
    return g.Add(x, g.Mul(weight, g.Sub(end, x)))


@reads("copy")
def read_copy(g, x, source):
    return g.Expand(g.cast(source, x.type), g.Shape(x))


@reads("fill.Scalar", "fill.Tensor")
def read_fill(g, x, value):
    return g.Expand(as_type(g, value, x.type), g.Shape(x))


@reads("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self", "special_xlogy",
       "special_xlogy.other_scalar", "special_xlogy.self_scalar")  # fmt: skip
def read_xlogy(g, x, y):
    x, y = promote_to_float(g, x, y)
    zero = as_type(g, 0.0, x.type)
    product = g.Where(g.Equal(x, zero), zero, g.Mul(x, g.Log(y)))
    return g.Where(g.IsNaN(y), y, product)


@reads("hypot")
def read_hypot(g, x, y):
    x, y = promote(g, x, y)
    return g.Sqrt(g.Add(g.Mul(x, x), g.Mul(y, y)))


@reads("isclose")
def read_isclose(g, x, y, rtol, atol):
    dtype = result_type(x, y)
    x, y = as_type(g, x, dtype), as_type(g, y, dtype)
    allowed = g.Add(g.Mul(g.Abs(y), as_type(g, rtol, dtype)), as_type(g, atol, dtype))
    return g.Or(g.Equal(x, y), g.LessOrEqual(g.Abs(g.Sub(x, y)), allowed))


@reads.for_each({"fmax": "Max", "fmin": "Min"})
def read_extreme_number(op, g, x, y):
    """The number where one of two is NaN."""
    x, y = promote(g, x, y)
    if x.type.kind != "f":
        return read_extreme(op, g, x, y)
    return g.Where(g.IsNaN(x), y, g.Where(g.IsNaN(y), x, g[op](x, y)))


@reads("float_power.Tensor_Scalar", "float_power.Tensor_Tensor", "float_power.Scalar")
def read_float_power(g, x, y):
    return g.Pow(as_type(g, x, DType.FLOAT64), as_type(g, y, DType.FLOAT64))


@reads("copysign.Tensor", "copysign.Scalar")
def read_copysign(g, x, y):
    x, y = promote_to_float(g, x, y)
    size = g.Abs(x)
    return g.Where(is_negative(g, y), g.Neg(size), size)


@reads("heaviside")
def read_heaviside(g, x, at_zero):
    zero, one = (as_type(g, v, x.type) for v in (0, 1))
    return g.Where(g.Equal(x, zero), at_zero, g.Where(g.Less(x, zero), zero, one))


@reads("logaddexp")
def read_logaddexp(g, x, y):
    return add_exponents(g, *promote_to_float(g, x, y))


@reads("logaddexp2")
def read_logaddexp2(g, x, y):
    x, y = (g.Mul(v, math.log(2)) for v in promote_to_float(g, x, y))
    return g.Div(add_exponents(g, x, y), math.log(2))


def add_exponents(g, x, y):
    """The logarithm of a sum of exponentials; infinite ones of one sign have no difference."""
    high = g.Max(x, y)
    difference = g.Where(g.Equal(x, y), as_type(g, 0.0, x.type), g.Abs(g.Sub(x, y)))
    return g.Add(high, read_log1p(g, g.Exp(g.Neg(difference))))


@reads("ldexp.Tensor")
def read_ldexp(g, x, y):
    x, y = promote_to_float(g, x, y)
    return g.Mul(x, g.Pow(as_type(g, 2.0, x.type), y))


@reads("special_xlog1py", "special_xlog1py.other_scalar", "special_xlog1py.self_scalar")
def read_xlog1py(g, x, y):
    x, y = promote_to_float(g, x, y)
    zero = as_type(g, 0.0, x.type)
    product = g.Where(g.Equal(x, zero), zero, g.Mul(x, read_log1p(g, y)))
    return g.Where(g.IsNaN(y), y, product)


@reads("isin.Tensor_Tensor", "isin.Scalar_Tensor", "isin.Tensor_Scalar", ignore=("assume_unique",))
def read_isin(g, x, choices, *, invert):
    x, choices = promote(g, x, choices)
    is_same = g.Equal(g.Unsqueeze(x, [x.rank]), g.Reshape(choices, [-1]))
    is_there = g.is_true(g.ReduceMax(g.cast(is_same, DType.INT32), [x.rank], keepdims=0))
    return g.Not(is_there) if invert else is_there


@reads("cross", "linalg_cross")
def read_cross(g, x, y, *, dim):
    """The product of vectors of three; without ``dim`` along the first axis of three."""
    x, y = promote(g, x, y)
    rank = max(x.rank, y.rank)
    axis = x.ranked_shape.index(3) if dim is None else axis_of(dim, rank)
    along = axis - rank
    turns = [[g.Gather(v, g.const(order), axis=along + v.rank) for v in (x, y)]
             for order in ([1, 2, 0], [2, 0, 1])]  # fmt: skip
    return g.Sub(g.Mul(turns[0][0], turns[1][1]), g.Mul(turns[1][0], turns[0][1]))
