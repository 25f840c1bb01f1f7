"""Operators on elements, those of two operands, and activations."""

from __future__ import annotations

import numpy as np

from serde.decompositions.elementwise import arctan2
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint

from ..rules import activate, reads

RENAMED = {
    "ABS": "Abs", "CEIL": "Ceil", "COS": "Cos", "EXP": "Exp", "FLOOR": "Floor", "LOG": "Log",
    "LOGICAL_AND": "And", "LOGICAL_NOT": "Not", "LOGICAL_OR": "Or", "LOGISTIC": "Sigmoid",
    "HARD_SWISH": "HardSwish", "NEG": "Neg", "PRELU": "PRelu", "ROUND": "Round", "SIGN": "Sign",
    "SIN": "Sin", "SQRT": "Sqrt", "TANH": "Tanh", "ELU": "Elu", "MAXIMUM": "Max", "MINIMUM": "Min",
    "POW": "Pow", "EQUAL": "Equal", "GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less", "LESS_EQUAL": "LessOrEqual", "BITWISE_XOR": "BitwiseXor",
}  # fmt: skip
reads.rename(RENAMED)
FUSABLE = ("pot_scale_int16",)


@reads.for_each({"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}, ignore=FUSABLE)
def read_arithmetic(op, g, x, y):
    return g[op](x, y)


@reads.for_each({"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3})
def read_activation(kind, g, x):
    return activate(g, kind, x)


@reads("RELU_0_TO_1")
def read_relu_0_to_1(g, x):
    return g.Clip(x, g.scalar(0, x), g.scalar(1, x))


@reads("NOT_EQUAL")
def read_not_equal(g, x, y):
    return g.Not(g.Equal(x, y))


@reads("ADD_N")
def read_add_n(g, *xs):
    return g.Sum(*xs) if xs[0].type.kind == "f" else _add_all(g, xs)


def _add_all(g, xs):
    total = xs[0]
    for x in xs[1:]:
        total = g.Add(total, x)
    return total


@reads("SQUARE")
def read_square(g, x):
    return g.Mul(x, x)


@reads("SQUARED_DIFFERENCE")
def read_squared_difference(g, x, y):
    difference = g.Sub(x, y)
    return g.Mul(difference, difference)


@reads("RSQRT")
def read_rsqrt(g, x):
    return g.Reciprocal(g.Sqrt(x))


@reads("GELU")
def read_gelu(g, x, *, approximate: bool = False):
    return g.Gelu(x, approximate="tanh" if approximate else "none")


@reads("LEAKY_RELU")
def read_leaky_relu(g, x, *, alpha: float = 0.0):
    return g.LeakyRelu(x, alpha=alpha)


def has_other_sign(g, rest, y):
    """Whether a rest that is not 0 and its divisor have different signs."""
    zero = g.scalar(0, y)
    differs = g.Xor(g.Less(rest, zero), g.Less(y, zero))
    return g.And(g.Not(g.Equal(rest, zero)), differs)


@reads("FLOOR_DIV")
def read_floor_div(g, x, y):
    if x.type.kind == "f":
        return g.Floor(g.Div(x, y))
    rest = g.Mod(x, y, fmod=1)
    return g.Sub(g.Div(x, y), g.cast(has_other_sign(g, rest, y), x.type))


@reads("FLOOR_MOD")
def read_floor_mod(g, x, y):
    if x.type.kind != "f":
        return g.Mod(x, y)
    rest = g.Mod(x, y, fmod=1)
    return g.Where(has_other_sign(g, rest, y), g.Add(rest, y), rest)


@reads("ATAN2")
def read_atan2(g, y, x):
    return arctan2(g, y, x)


@reads("CAST", ignore=("in_data_type", "out_data_type"))
def read_cast(g, x, *, results: Hint[tuple[Value, ...]]):
    require(results[0].dtype is not None, "a type that the IR lacks. Cast to another")
    return g.cast(x, results[0].type)


@reads("ZEROS_LIKE")
def read_zeros_like(g, x):
    return g.full_like(x, 0)


@reads("RIGHT_SHIFT")
def read_right_shift(g, x, y):
    """Of signed integers the sign stays."""
    if x.type.kind == "u":
        return g.BitShift(x, y, direction="RIGHT")
    x_int64, power = (g.cast(v, DType.INT64) for v in (x, y))
    power = g.Pow(g.const(2, DType.INT64), power)
    return g.cast(read_floor_div(g, x_int64, power), x.type)


@reads("SELECT")
def read_select(g, condition, x, y):
    """A condition of one axis chooses rows."""
    if condition.rank == 1 and x.rank > 1:
        condition = g.Unsqueeze(condition, list(range(1, x.rank)))
    return g.Where(condition, x, y)


@reads("SELECT_V2")
def read_select_v2(g, condition, x, y):
    return g.Where(condition, x, y)


@reads("BUCKETIZE")
def read_bucketize(g, x, *, boundaries: tuple[float, ...] = ()):
    """How many boundaries are not above a number."""
    edges = np.asarray(boundaries, np.float32)
    is_above = g.GreaterOrEqual(g.Unsqueeze(g.cast(x, DType.FLOAT32), [x.rank]), edges)
    return g.ReduceSum(g.cast(is_above, DType.INT32), [x.rank], keepdims=0)


@reads("FAKE_QUANT")
def read_fake_quant(g, x, *, min: float = 0.0, max: float = 0.0, num_bits: int = 0,
                    narrow_range: bool = False):  # fmt: skip
    """Real numbers that integers of some bits can stand for, between bounds that hold 0."""
    require(0 < num_bits <= 16, f"num_bits={num_bits}. Give 2 to 16")
    low, high = int(narrow_range), 2**num_bits - 1
    require(
        np.isfinite(max - min) and max > min and high > low,
        "bounds or bits that no integers are between. Correct them",
    )
    scale = np.float32((max - min) / (high - low))
    zero = np.clip(np.round(low - min / scale), low, high)
    floor, top = ((n - zero) * scale for n in (low, high))
    clipped = g.Sub(g.Clip(x, g.scalar(floor, x), g.scalar(top, x)), g.scalar(floor, x))
    steps = g.Floor(g.Add(g.Mul(clipped, g.scalar(1 / scale, x)), g.scalar(0.5, x)))
    return g.Add(g.Mul(steps, g.scalar(scale, x)), g.scalar(floor, x))
