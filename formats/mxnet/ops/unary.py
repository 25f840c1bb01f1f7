"""Functions of each element of one tensor."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from serde.errors import require
from serde.ir.graph import BYTES, DType, Value

from ..rules import note_old_meaning, reads, reads_between, reads_second
from ..target import scalar_value, writes
from .dynamic_shapes import emit_broadcast_like

PI = np.float32(math.pi)
DEGREE, RADIAN = float(np.float32(180) / PI), float(PI / np.float32(180))
FAR = float(np.finfo(np.float32).max)  # where clip is to leave all as it is
# MXNet's name: ONNX's, for functions of floats that both have.
SHARED = {
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "reciprocal": "Reciprocal",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sinh": "Sinh",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}


def multiply_by(factor: float):
    return lambda g, x: g.Mul(x, factor)


def logarithm(base: float):
    return lambda g, x: g.Mul(g.Log(x), 1 / math.log(base))


def cube_root(g, x):
    return g.Mul(g.Sign(x), g.Pow(g.Abs(x), 1 / 3))


def truncate(g, x):
    return g.Mul(g.Sign(x), g.Floor(g.Abs(x)))


FLOATS = SHARED | {  # MXNet's name: ONNX's, or the expression
    "cbrt": cube_root,
    "degrees": multiply_by(DEGREE),
    "expm1": lambda g, x: g.Sub(g.Exp(x), 1.0),
    "fix": truncate,
    "log10": logarithm(10),
    "log1p": lambda g, x: g.Log(g.Add(x, 1.0)),
    "log2": logarithm(2),
    "radians": multiply_by(RADIAN),
    "rcbrt": lambda g, x: g.Reciprocal(cube_root(g, x)),
    "rint": lambda g, x: g.Ceil(g.Sub(x, 0.5)),  # halves go down
    "round": lambda g, x: g.Mul(g.Sign(x), g.Floor(g.Add(g.Abs(x), 0.5))),  # halves go away from 0
    "rsqrt": lambda g, x: g.Reciprocal(g.Sqrt(x)),
    "square": lambda g, x: g.Mul(x, x),
    "trunc": truncate,
}
NUMBERS = {
    "abs": "Abs",
    "negative": lambda g, x: g.Sub(g.scalar(0, x), x) if x.type.kind == "u" else g.Neg(x),
    "relu": lambda g, x: g.Relu(x) if x.type.kind == "f" else g.Max(x, 0),
    "sign": "Sign",
}
# Operators of other namespaces that compute the same.
TWINS = {
    "_contrib_round_ste": "round",
    "_contrib_sign_ste": "sign",
    "_npi_absolute": "abs",
    "_npx_relu": "relu",
    "_npx_sigmoid": "sigmoid",
} | {
    f"_npi_{name}": name
    for name in "arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh degrees exp expm1 "
    "fix floor log log10 log1p log2 negative radians reciprocal rint sign sin sinh sqrt square tan "
    "tanh trunc".split()
}


def read_unary(op, g, x: Value):
    return g[op](x) if isinstance(op, str) else op(g, x)


def compute_in_float(function, g, x: Value):
    """Apply a function of floats; MXNet takes integers as float32 and cuts the fraction off."""
    if x.type.kind == "f":
        return function(g, x)
    return g.cast_like(function(g, g.cast(x, DType.FLOAT32)), x)


def read_rounding(op, g, x: Value):
    """Integers are what they are rounded to."""
    return read_unary(op, g, x) if x.type.kind == "f" else x


def read_cube_root(g, x: Value):
    """Of an integer the root is found among integers: a power of 1/3 may fall short of one."""
    if x.type.kind == "f":
        return cube_root(g, x)
    size = g.Abs(g.cast(x, DType.FLOAT64))
    near = g.Round(g.Pow(size, g.const(1 / 3, DType.FLOAT64)))
    beyond = g.cast(g.Greater(g.Mul(g.Mul(near, near), near), size), DType.FLOAT64)
    return g.Mul(g.Sign(x), g.cast_like(g.Sub(near, beyond), x))


def compute_in_double(op, g, x: Value):
    """Integers are taken as float64; the nudge keeps the logarithm of 1000 from falling short."""
    if x.type.kind == "f":
        return read_unary(op, g, x)
    return g.cast_like(g.Add(read_unary(op, g, g.cast(x, DType.FLOAT64)), 1e-12), x)


ROUNDING = ("ceil", "fix", "floor", "rint", "round", "trunc")
IN_DOUBLE = ("exp", "expm1", "log", "log10", "log1p", "log2", "rsqrt", "sqrt")
RULES = {name: partial(read_unary, op) for name, op in NUMBERS.items()} | {
    name: partial(compute_in_float, partial(read_unary, op)) for name, op in FLOATS.items()
}
RULES |= {name: partial(read_rounding, FLOATS[name]) for name in ROUNDING}
RULES |= {name: partial(compute_in_double, FLOATS[name]) for name in IN_DOUBLE}
RULES |= {"cbrt": partial(read_cube_root)}
for _name, _rule in RULES.items():
    reads(_name, *(twin for twin, name in TWINS.items() if name == _name))(_rule)


def compute_in_old_float(op, g, x: Value):
    """Before MXNet 1.6 integers, and functions of them, are float32 before the fraction is cut off.

    Those of float64 are rounded to the nearest float32, as those of C are.
    """
    if x.type.kind == "f":
        return read_unary(op, g, x)
    note_old_meaning(g, "1.6")
    x_float64 = g.cast(g.cast(x, DType.FLOAT32), DType.FLOAT64)
    return g.cast_like(g.cast(read_unary(op, g, x_float64), DType.FLOAT32), x)


for _name in (*ROUNDING, *IN_DOUBLE):
    reads_between(0, 10600)(_name)(partial(compute_in_old_float, FLOATS[_name]))


@reads_between(0, 10000)("square")
def read_old_square(g, x):
    """Before MXNet 1.0 that of integers is exact."""
    if x.type.kind != "f":
        note_old_meaning(g, "1.0")
    return g.Mul(x, x)


def compute_as_float32(op, g, x: Value):
    """MXNet 2 gives float32 of integers, and halves of those of 8 bits and of booleans."""
    if x.type.kind == "f":
        return read_unary(op, g, x)
    y = read_unary(op, g, g.cast(x, DType.FLOAT32))
    return g.cast(y, DType.FLOAT16) if x.type in NARROW else y


KEPT = ("reciprocal", "square")  # of integers integers
NARROW = (DType.BOOL, DType.INT8, DType.UINT8)
for _twin, _name in TWINS.items():
    if _twin.startswith("_npi_") and _name in FLOATS and _name not in KEPT:
        reads_second(_twin)(partial(compute_as_float32, FLOATS[_name]))


@reads("_npi_around")
def read_around(g, x, *, decimals=0):
    """Halves go to the even number, as in NumPy."""
    if x.type.kind != "f":
        require(decimals >= 0, f"decimals={decimals} of integers, which MXNet cuts off")
        return x
    factor = 10.0**decimals
    return g.Round(x) if decimals == 0 else g.Div(g.Round(g.Mul(x, factor)), factor)


@reads_second("_npi_around")
def read_second_around(g, x, *, decimals=0, decimal=0):
    """``np.around`` of MXNet 2.0 writes ``decimals`` under another name."""
    return read_around(g, x, decimals=decimals or decimal)


@reads("clip")
def read_clip(g, x, *, a_min: float, a_max: float):
    """``a_max`` where an element is above it, else ``a_min`` where it is below that."""
    low, high = float(np.float32(a_min)), float(np.float32(a_max))  # NaN bounds nothing
    least, most = type_limits(x)
    if not (low > high or low > most or high < least):
        bounds = (low if low > least else None), (high if high < most else None)
        return g.Clip(x, *(None if b is None else scalar_of_type(g, b, x) for b in bounds))
    y = x
    if low > most:
        y = g.full_like(x, scalar_of_type(g, low, x).array().item())
    elif low > least:
        below = g.Less(x, scalar_of_type(g, least_at_or_above(low, x), x))
        y = g.Where(below, scalar_of_type(g, low, x), x)
    if high < least:
        return g.full_like(x, scalar_of_type(g, high, x).array().item())
    if high < most:
        highest = -least_at_or_above(-high, x)
        above = g.Greater(x, scalar_of_type(g, highest, x))
        return g.Where(above, scalar_of_type(g, high, x), y)
    return y


@reads_between(0, 10600)("clip")
def read_old_clip(g, x, *, a_min: float, a_max: float):
    """Before MXNet 1.6 the bounds are brought into the type of integers first, and wrap around."""
    if x.type.kind == "f":
        return read_clip(g, x, a_min=a_min, a_max=a_max)
    most = 2.0**63 if x.type is DType.INT64 else 2.0**31
    fits = -most <= a_min < most and -most <= a_max < most
    require(fits, f"a_min={a_min}, a_max={a_max} for {x.type.value} elements before MXNet 1.6")
    low, high = (np.int64(b).astype(x.type.numpy).item() for b in (a_min, a_max))
    return read_clip(g, x, a_min=low, a_max=high)


def type_limits(x: Value) -> tuple[float, float]:
    """The least and the largest element there can be."""
    if x.type.kind == "f":
        return -math.inf, math.inf
    return int(np.iinfo(x.type.numpy).min), int(np.iinfo(x.type.numpy).max)


def least_at_or_above(number: float, x: Value) -> float:
    """The least element of the type of ``x`` that is not below a number."""
    return number if x.type.kind == "f" else math.ceil(number)


def scalar_of_type(g, number: float, x: Value):
    """A number in the type of ``x``: of an integer the fraction is cut off, and it wraps around."""
    if x.type.kind == "f":
        return g.scalar(number, x)
    require(math.isfinite(number), f"a bound of {number} for {x.type.value} elements")
    return g.const(np.int64(number).astype(x.type.numpy))


@reads("smooth_l1")
def read_smooth_l1(g, x, *, scalar=1.0):
    """A parabola up to ``1 / scalar²``, beyond it a line."""
    bound = scalar**-2
    size = g.Abs(x)
    square = g.Mul(g.Mul(x, x), scalar**2 / 2)
    return g.Where(g.Less(size, bound), square, g.Sub(size, bound / 2))


@reads("_contrib_quadratic")
def read_quadratic(g, x, *, a=0.0, b=0.0, c=0.0):
    return compute_in_float(lambda g, x: g.Add(g.Mul(g.Add(g.Mul(x, a), b), x), c), g, x)


def write_unary(name, s, x):
    require(x.type.kind == "f", f"{SHARED[name]} of {x.type.value} elements")
    return s[name](x)


for _name, _op in SHARED.items():
    writes(_op)(partial(write_unary, _name))


writes("Identity")(lambda s, x: s["_copy"](x))
writes("Neg")(lambda s, x: s.negative(x))


@writes("Abs")
def write_abs(s, x):
    """MXNet takes it of integers as of floats of 64 bits, before 1.6 of 32."""
    is_inexact = x.type is DType.INT64 or (x.type is DType.INT32 and not s.release.has_bool)
    return s.broadcast_maximum(x, s.negative(x)) if is_inexact else s.abs(x)


@writes("Round")
def write_round(s, x):
    """Halves go to the even neighbour; MXNet's own rint takes them down."""
    up = s["_plus_scalar"](x, scalar=0.5)
    floor = s.floor(up)
    odd = s["_mod_scalar"](floor, scalar=2.0)
    nearest = s.elemwise_sub(floor, s.elemwise_mul(odd, s.broadcast_equal(up, floor)))
    return s.where(s.broadcast_equal(x, s.floor(x)), x, nearest)


@writes("Sign")
def write_sign(s, x):
    """That of NaN is NaN."""
    return s.where(s.broadcast_equal(x, x), s.sign(x), x) if x.type.kind == "f" else s.sign(x)


@writes("Clip")
def write_clip(s, x, low=None, high=None):
    """MXNet's own clip has bounds of 32 bits; only it lets NaN pass.

    Before 1.6 it brings the bounds into the type of the tensor, and FAR is nothing there.
    """
    least, most = (None if v is None else scalar_value(v) for v in (low, high))
    is_static = (low is None) == (least is None) and (high is None) == (most is None)
    is_integer = x.type in (DType.INT32, DType.INT64) and not s.release.has_bool
    has_open_bound = (x.type is DType.FLOAT64 or is_integer) and None in (least, most)
    if is_static and not has_open_bound and is_exact_float32(least) and is_exact_float32(most):
        lowest, highest = unbounded_range(x.type)
        least, most = lowest if least is None else least, highest if most is None else most
        if least <= most:
            return s.clip(x, a_min=least, a_max=most)
    rank = max(x.rank, 1)
    for bound, comparison in ((low, "broadcast_lesser"), (high, "broadcast_greater")):
        if bound is not None:
            bound = s.Reshape(bound, shape=(1,) * rank)
            x = s.where(s[comparison](x, bound), emit_broadcast_like(s, bound, x), x)
    return x


def unbounded_range(dtype: DType) -> tuple[float, float]:
    """Bounds that leave all as it is."""
    if dtype not in BYTES:
        return -FAR, FAR
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def is_exact_float32(bound: float | None) -> bool:
    """Whether 32 bits hold a bound."""
    return bound is None or float(np.float32(bound)) == bound
