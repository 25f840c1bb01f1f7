"""Arithmetic of two tensors, or of a tensor and a number."""

from __future__ import annotations

import math
from functools import partial, reduce

import numpy as np

from serde.decompositions.elementwise import arctan2, power
from serde.errors import require
from serde.ir.graph import DType, Value

from ..rules import reads
from ..target import legalizations, scalar_value, writes

BINARY = {  # operator: MXNet's for tensors, with a number on the right, with one on the left
    "Add": ("broadcast_add", "_plus_scalar", "_plus_scalar"),
    "Div": ("broadcast_div", "_div_scalar", "_rdiv_scalar"),
    "Max": ("broadcast_maximum", "_maximum_scalar", "_maximum_scalar"),
    "Min": ("broadcast_minimum", "_minimum_scalar", "_minimum_scalar"),
    "Mul": ("broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "Pow": ("broadcast_power", "_power_scalar", "_rpower_scalar"),
    "Sub": ("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
}


def compute_in_float(function):
    """Make a function of floats one of all numbers: MXNet cuts an integer's fraction off."""

    def apply(g, a: Value, b: Value):
        if a.type.kind == "f":
            return function(g, a, b)
        y = function(g, g.cast(a, DType.FLOAT32), g.cast(b, DType.FLOAT32))
        return g.cast_like(y, a)

    return apply


def modulus(g, a: Value, b: Value):
    """The remainder with the divisor's sign, 0 where the divisor is 0."""
    if b.tensor is not None and b.array().all():
        return g.Mod(a, b)
    return remainder(g, a, b, fmod=0)


def remainder(g, a: Value, b: Value, fmod: int = 1):
    """The remainder with the dividend's sign, 0 where the divisor is 0."""
    zero = g.Equal(b, g.const(0, b.type))
    if a.type.kind == "f":
        return g.Where(zero, g.const(0, a.type), g.Mod(a, b, fmod=fmod))
    return g.Mod(a, g.Where(zero, g.const(1, b.type), b), fmod=fmod)


@compute_in_float
def hypotenuse(g, a: Value, b: Value):
    return g.Sqrt(g.Add(g.Mul(a, a), g.Mul(b, b)))


def copysign(g, a: Value, b: Value):
    """The size of ``a`` with the sign of ``b``; a zero has none."""
    size = g.Abs(a)
    return g.Where(g.Less(b, g.scalar(0, b)), g.Sub(g.scalar(0, a), size), size)


@reads("_npi_lcm")
def read_lcm(g, a: Value, b: Value):
    """The least common multiple; the greatest common divisor is found as Euclid did."""
    if a.dtype is DType.BOOL:
        return g.And(a, b)
    require(a.type.kind in "iu", f"the least common multiple of {a.type.value} numbers")
    magnitudes = [g.Abs(g.cast(x, DType.INT64)) for x in (a, b)]
    product = g.Mul(*magnitudes)
    zeros = g.Sub(product, product)
    divisor = greatest_common_divisor(g, *(g.Add(x, zeros) for x in magnitudes))
    return g.cast_like(g.Mul(g.Div(magnitudes[0], g.Max(divisor, 1)), magnitudes[1]), a)


def greatest_common_divisor(g, a: Value, b: Value):
    def step(g, _, __, x, y):
        rest = g.Where(g.Equal(y, 0), 0, g.Mod(x, g.Max(y, 1)))
        return is_any_nonzero(g, rest), g.Where(g.Equal(y, 0), x, y), rest

    return g.loop(step, None, is_any_nonzero(g, b), a, b)[0]


@reads("_npi_gcd")
def read_gcd(g, a: Value, b: Value):
    """The greatest common divisor, which is not negative."""
    require(a.type.kind in "iu", f"the greatest common divisor of {a.type.value} numbers")
    magnitudes = [g.Abs(g.cast(x, DType.INT64)) for x in (a, b)]
    zeros = g.Mul(g.Mul(*magnitudes), 0)
    return g.cast_like(greatest_common_divisor(g, *(g.Add(x, zeros) for x in magnitudes)), a)


def is_any_nonzero(g, x: Value):
    """Whether an element is not zero."""
    return g.Greater(g.ReduceMax(g.Concat(g.Reshape(x, [-1]), [0], axis=0), [0], keepdims=0), 0)


def choose_number(op, g, a: Value, b: Value):
    """An extreme of two numbers, of which one that is NaN does not count."""
    if a.type.kind != "f":
        return g[op](a, b)
    return g.Where(g.IsNaN(a), b, g.Where(g.IsNaN(b), a, g[op](a, b)))


def floor_divide(g, a: Value, b: Value):
    """The quotient rounded down; of integers 0 where the divisor is 0."""
    if a.type.kind == "f":
        return g.Floor(g.Div(a, b))
    zero = g.Equal(b, g.const(0, b.type))
    divisor = g.Where(zero, g.const(1, b.type), b)
    down = g.Div(g.Sub(a, g.Mod(a, divisor)), divisor)
    return g.Where(zero, g.const(0, a.type), down)


@compute_in_float
def log_of_sum(g, a: Value, b: Value):
    """The logarithm of the sum of two exponentials."""
    return g.Add(g.Max(a, b), g.Log(g.Add(g.Exp(g.Neg(g.Abs(g.Sub(a, b)))), 1.0)))


def shift(function, g, a: Value, b: Value):
    """Multiply or divide by a power of two; bits that are pushed out are lost, the sign stays."""
    a_int64 = g.cast(a, DType.INT64)
    return g.cast_like(
        function(g, a_int64, g.Pow(g.const(2, DType.INT64), g.cast(b, DType.INT64))), a
    )


FUNCTIONS = {
    "add": lambda g, a, b: g.Add(a, b),
    "subtract": lambda g, a, b: g.Sub(a, b),
    "multiply": lambda g, a, b: g.Mul(a, b),
    "divide": lambda g, a, b: g.Div(a, b),
    "maximum": lambda g, a, b: g.Max(a, b),
    "minimum": lambda g, a, b: g.Min(a, b),
    "mod": modulus,
    "power": compute_in_float(lambda g, a, b: g.Pow(a, b)),
    "hypot": hypotenuse,
    "arctan2": compute_in_float(arctan2),
    "copysign": copysign,
    "ldexp": compute_in_float(lambda g, a, b: g.Mul(a, g.Pow(g.const(2, b.type), b))),
    "fmax": partial(choose_number, "Max"),
    "fmin": partial(choose_number, "Min"),
    "fmod": remainder,
    "floor_divide": floor_divide,
    "logaddexp": log_of_sum,
    "bitwise_left_shift": partial(shift, lambda g, a, b: g.Mul(a, b)),
    "bitwise_right_shift": partial(shift, floor_divide),
}
TENSORS = {  # operators of two tensors of one type
    "add": "broadcast_add elemwise_add",
    "subtract": "broadcast_sub elemwise_sub",
    "multiply": "broadcast_mul elemwise_mul",
    "divide": "broadcast_div elemwise_div _scatter_elemwise_div",
    "maximum": "broadcast_maximum _maximum",
    "minimum": "broadcast_minimum _minimum",
    "mod": "broadcast_mod _mod",
    "power": "broadcast_power _power",
    "hypot": "broadcast_hypot _hypot _npi_hypot",
    "arctan2": "_npi_arctan2",
    "copysign": "_npi_copysign",
    "ldexp": "_npi_ldexp",
    **{
        n: f"_npi_{n}"
        for n in ("fmax", "fmin", "logaddexp", "bitwise_left_shift", "bitwise_right_shift")
    },
}
# Operators of any two types: _npi_<name>.
PROMOTING = ("add", "subtract", "multiply", "mod", "power", "fmod", "floor_divide")
SCALARS = {  # operators of a tensor and a number behind it
    "add": "_plus_scalar _npi_add_scalar _scatter_plus_scalar",
    "subtract": "_minus_scalar _npi_subtract_scalar _scatter_minus_scalar",
    "multiply": "_mul_scalar _npi_multiply_scalar",
    "divide": "_div_scalar",
    "maximum": "_maximum_scalar",
    "minimum": "_minimum_scalar",
    "mod": "_mod_scalar _npi_mod_scalar",
    "power": "_power_scalar _npi_power_scalar",
    "hypot": "_hypot_scalar",
    "arctan2": "_npi_arctan2_scalar",
    "copysign": "_npi_copysign_scalar",
    "ldexp": "_npi_ldexp_scalar",
    **{n: f"_npi_{n}_scalar" for n in ("fmax", "fmin", "fmod", "floor_divide", "logaddexp")},
}
REVERSED = {  # … and the number in front
    "subtract": "_rminus_scalar _npi_rsubtract_scalar",
    "divide": "_rdiv_scalar",
    "mod": "_rmod_scalar _npi_rmod_scalar",
    "power": "_rpower_scalar _npi_rpower_scalar",
    "arctan2": "_npi_rarctan2_scalar",
    "copysign": "_npi_rcopysign_scalar",
    "ldexp": "_npi_rldexp_scalar",
    **{
        n: f"_npi_r{n}_scalar"
        for n in ("fmod", "floor_divide", "bitwise_left_shift", "bitwise_right_shift")
    },
}
WIDTHS = (DType.BOOL, DType.INT8, DType.UINT8, DType.INT32, DType.INT64, DType.FLOAT16,
          DType.FLOAT32, DType.FLOAT64)  # fmt: skip


def read_binary(function, g, a: Value, b: Value):
    return function(g, a, b)


def read_promoting(function, g, a: Value, b: Value):
    """Booleans are counted with, and are booleans again in the end."""
    dtype = max(a.type, b.type, key=WIDTHS.index)
    work = DType.INT32 if dtype is DType.BOOL else dtype
    return g.cast(function(g, g.cast(a, work), g.cast(b, work)), dtype)


def promote_scalar(g, x: Value, number: float, is_int: bool) -> tuple[Value, Value]:
    """A tensor and a number in the type they are computed in.

    Beside an integer integers stay what they are, and booleans become int64; beside any
    other they become float64. ``is_int`` alone tells which it is; a fraction is then cut off.
    """
    if x.type.kind == "f":
        return x, g.scalar(number, x)
    if not is_int:
        return g.cast(x, DType.FLOAT64), g.const(number, DType.FLOAT64)
    require(math.isfinite(number), f"scalar={number} with {x.type.value} elements")
    x = g.cast(x, DType.INT64) if x.dtype is DType.BOOL else x
    return x, g.const(np.int64(number).astype(x.type.numpy))


def read_scalar(function, g, x: Value, *, scalar=1.0, is_int=True):
    return function(g, *promote_scalar(g, x, scalar, is_int))


def read_reversed(function, g, x: Value, *, scalar=1.0, is_int=True):
    x, number = promote_scalar(g, x, scalar, is_int)
    return function(g, number, x)


for _rule, _names in ((read_binary, TENSORS), (read_scalar, SCALARS), (read_reversed, REVERSED)):
    for _function, _ops in _names.items():
        reads(*_ops.split())(partial(_rule, FUNCTIONS[_function]))
for _function in PROMOTING:
    reads(f"_npi_{_function}")(partial(read_promoting, FUNCTIONS[_function]))


def read_divisor_scalar(rule, g, x, *, scalar=1.0):
    """The number's fraction is cut off."""
    return rule(g, x, g.const(np.int64(scalar).astype(x.type.numpy)))


for _name, _rule in {"lcm": read_lcm, "gcd": read_gcd}.items():
    reads(f"_npi_{_name}_scalar", ignore=("is_int",))(partial(read_divisor_scalar, _rule))


def as_float(g, x: Value):
    return x if x.type.kind == "f" else g.cast(x, DType.FLOAT32)


@reads("_npi_true_divide")
def read_true_divide(g, a, b):
    """Two integers give a float32; beside a float an integer takes its type."""
    if a.type.kind != b.type.kind and "f" in (a.type.kind, b.type.kind):
        dtype = a.type if a.type.kind == "f" else b.type
        return g.Div(g.cast(a, dtype), g.cast(b, dtype))
    return g.Div(as_float(g, a), as_float(g, b))


@reads("_npi_true_divide_scalar", ignore=("is_int",))
def read_true_divide_scalar(g, x, *, scalar=1.0):
    return g.Div(as_float(g, x), scalar)


@reads("_npi_rtrue_divide_scalar", ignore=("is_int",))
def read_rtrue_divide_scalar(g, x, *, scalar=1.0):
    return g.Div(scalar, as_float(g, x))


@reads("add_n", ignore=("num_args",))
def read_add_n(g, *xs):
    return g.Sum(*xs) if xs[0].type.kind == "f" and len(xs) > 1 else reduce(g.Add, xs)


def write_binary(names, s, a: Value, b: Value):
    both, right, left = names
    require(a.type is b.type or "Pow" in both, "operands of two element types")
    if (n := scalar_value(b)) is not None and b.rank <= a.rank:
        return s[right](a, scalar=n)
    if (n := scalar_value(a)) is not None and a.rank <= b.rank:
        return s[left](b, scalar=n)
    return s[both](a, b)


def write_variadic(names, s, first, *rest):
    for other in rest:
        typed = first.dtype, first.shape
        first = write_binary(names, s, first, other)
        first.dtype, first.shape = typed
    return first


for _op, _forms in BINARY.items():
    rule = write_variadic if _op in ("Max", "Min") else write_binary
    writes(_op)(partial(rule, _forms))
writes("Sum")(partial(write_variadic, BINARY["Add"]))


@writes("Mod")
def write_mod(s, x, y, *, fmod):
    """Of floats, exact in MXNet for numbers that are not negative; it gives 0 for a divisor 0."""
    remainder = s.broadcast_mod(s.abs(x), s.abs(y))
    nothing = s.broadcast_div(s.zeros_like(remainder), s.abs(y))  # NaN where the divisor is 0
    rest = s.broadcast_add(remainder, nothing)
    zero = s.zeros_like(remainder)
    sign = s.broadcast_lesser(s.broadcast_add(zero, x), zero)
    rest = s.where(sign, s.negative(rest), rest)
    if fmod:
        return rest
    other = s.broadcast_not_equal(sign, s.broadcast_lesser(s.broadcast_add(zero, y), zero))
    moves = s.broadcast_mul(other, s.broadcast_not_equal(rest, zero))
    return s.where(moves, s.broadcast_add(rest, y), rest)


@legalizations("Pow")
def legalize_pow(g, x, y):
    """MXNet computes integers in float32, which has 24 bits."""
    fits = x.type.kind == "f" or x.type.bits <= 16
    return None if x.dtype is y.dtype and fits else power(g, x, y)


@legalizations("Mod")
def legalize_mod(g, x, y, *, fmod):
    """Of integers, by division; MXNet has one of floats."""
    return None if x.type.kind == "f" else g.decompose("Mod", 10, x, y, fmod=fmod)
