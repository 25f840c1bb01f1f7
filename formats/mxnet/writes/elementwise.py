"""Elementwise operators and activations."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.ir.graph import Dim, DType, Value
from serde.spec.schema import ELEMENT_TYPES

from ..target import TYPES, held_as, number, writes
from .sizes import common, spread, together

UNARY = {
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Identity": "_copy",
    "Log": "log",
    "Neg": "negative",
    "Reciprocal": "reciprocal",
    "Sigmoid": "sigmoid",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
BINARY = {  # operator: MXNet's for tensors, with a number on the right, with one on the left
    "Add": ("broadcast_add", "_plus_scalar", "_plus_scalar"),
    "Div": ("broadcast_div", "_div_scalar", "_rdiv_scalar"),
    "Max": ("broadcast_maximum", "_maximum_scalar", "_maximum_scalar"),
    "Min": ("broadcast_minimum", "_minimum_scalar", "_minimum_scalar"),
    "Mul": ("broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "Pow": ("broadcast_power", "_power_scalar", "_rpower_scalar"),
    "Sub": ("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
}
COMPARISONS = {
    "Equal": "broadcast_equal",
    "Greater": "broadcast_greater",
    "GreaterOrEqual": "broadcast_greater_equal",
    "Less": "broadcast_lesser",
    "LessOrEqual": "broadcast_lesser_equal",
}
LOGICAL = {
    "And": "broadcast_logical_and",
    "Or": "broadcast_logical_or",
    "Xor": "broadcast_logical_xor",
}

FAR = float(np.finfo(np.float32).max)  # where clip is to leave all as it is
ANY = frozenset({"Identity", "Neg"})  # of integers, too


def write_unary(op, s, x):
    require(op in ANY or x.type.kind == "f", f"{op} of {x.type.value} elements")
    return s[UNARY[op]](x)


for _op in UNARY:
    writes(_op)(partial(write_unary, _op))


@writes("Relu")
def write_relu(s, x):
    """MXNet's own is of floats."""
    return s.relu(x) if x.type.kind == "f" else s["_maximum_scalar"](x, scalar=0)


@writes("Abs")
def write_abs(s, x):
    """MXNet takes it of integers as of floats of 64 bits, before 1.6 of 32."""
    wide = x.type is DType.INT64 or (x.type is DType.INT32 and not s.release.has_bool)
    return s.broadcast_maximum(x, s.negative(x)) if wide else s.abs(x)


@writes("Round")
def write_round(s, x):
    """Halves go to the even neighbour; MXNet's own rint takes them down."""
    up = s["_plus_scalar"](x, scalar=0.5)
    whole = s.floor(up)
    odd = s["_mod_scalar"](whole, scalar=2.0)
    found = s.elemwise_sub(whole, s.elemwise_mul(odd, s.broadcast_equal(up, whole)))
    return s.where(s.broadcast_equal(x, s.floor(x)), x, found)


@writes("Mod")
def write_mod(s, x, y, *, fmod):
    """Of floats, exact in MXNet for numbers that are not negative; it gives 0 for a divisor 0."""
    whole = s.broadcast_mod(s.abs(x), s.abs(y))
    nothing = s.broadcast_div(s.zeros_like(whole), s.abs(y))  # NaN where the divisor is 0
    rest = s.broadcast_add(whole, nothing)
    zero = s.zeros_like(whole)
    sign = s.broadcast_lesser(s.broadcast_add(zero, x), zero)
    rest = s.where(sign, s.negative(rest), rest)
    if fmod:
        return rest
    other = s.broadcast_not_equal(sign, s.broadcast_lesser(s.broadcast_add(zero, y), zero))
    moves = s.broadcast_mul(other, s.broadcast_not_equal(rest, zero))
    return s.where(moves, s.broadcast_add(rest, y), rest)


@writes("Sign")
def write_sign(s, x):
    """That of NaN is NaN."""
    return s.where(s.broadcast_equal(x, x), s.sign(x), x) if x.type.kind == "f" else s.sign(x)


def write_binary(names, s, a: Value, b: Value):
    both, right, left = names
    require(a.type is b.type or "Pow" in both, "operands of two element types")
    if (n := number(b)) is not None and b.rank <= a.rank:
        return s[right](a, scalar=n)
    if (n := number(a)) is not None and a.rank <= b.rank:
        return s[left](b, scalar=n)
    return s[both](a, b)


def write_variadic(names, s, first, *rest):
    for other in rest:
        typed = first.dtype, first.shape
        first = write_binary(names, s, first, other)
        first.dtype, first.shape = typed
    return first


for _op, _names in BINARY.items():
    rule = write_variadic if _op in ("Max", "Min") else write_binary
    writes(_op)(partial(rule, _names))
writes("Sum")(partial(write_variadic, BINARY["Add"]))


def write_comparison(name, s, a, b):
    """MXNet's answer is 0 or 1 in the operands' type."""
    answer = s[name](a, b)
    plain = a.type in (DType.FLOAT32, DType.BOOL)
    return answer if plain else s.Cast(answer, dtype="float32")


for _op, _name in (COMPARISONS | LOGICAL).items():
    writes(_op)(partial(write_comparison, _name))


@writes("Not")
def write_not(s, x):
    return s.logical_not(x)


@writes("Where")
def write_where(s, condition, x, y):
    """MXNet wants all three in one shape."""
    parts = (condition, x, y)
    sizes = common([v.known for v in parts])
    if sizes is None:
        return s.where(*together(s, parts))
    full = next((v for v in parts if list(v.known) == sizes), None)
    return s.where(*(in_shape_of(s, v, full, sizes) for v in parts))


def in_shape_of(s, value: Value, full: Value | None, sizes: list[Dim]):
    """``value`` spread out to ``sizes``, the shape of ``full`` if that is there."""
    if full is None or (n := number(value)) is None:
        return value if list(value.known) == sizes else spread(s, value, sizes)
    zeros = s.Cast(s.zeros_like(full), dtype=held_as(value.type))
    zeros.dtype = value.dtype
    return s["_plus_scalar"](zeros, scalar=n)


@writes("Cast", ignore=("saturate", "round_mode"))
def write_cast(s, x, *, to: int):
    dtype = ELEMENT_TYPES[to]
    if dtype is DType.BOOL:
        answer = s["_not_equal_scalar"](x, scalar=0.0)
        return answer if held_as(x.type) == "float32" else s.Cast(answer, dtype="float32")
    require(dtype in TYPES, f"MXNet has no {dtype.value} tensors")
    return s.Cast(x, dtype=dtype.value)


@writes("Clip")
def write_clip(s, x, low=None, high=None):
    """MXNet's own clip has bounds of 32 bits; only it lets NaN pass.

    Before 1.6 it brings the bounds into the type of the tensor, and FAR is nothing there.
    """
    least, most = (None if v is None else number(v) for v in (low, high))
    told = (low is None) == (least is None) and (high is None) == (most is None)
    whole = x.type in (DType.INT32, DType.INT64) and not s.release.has_bool
    wide = (x.type is DType.FLOAT64 or whole) and None in (least, most)
    if told and not wide and exact(least) and exact(most):
        lowest, highest = ends(x.type)
        least, most = lowest if least is None else least, highest if most is None else most
        if least <= most:
            return s.clip(x, a_min=least, a_max=most)
    rank = max(x.rank, 1)
    for bound, comparison in ((low, "broadcast_lesser"), (high, "broadcast_greater")):
        if bound is not None:
            bound = s.Reshape(bound, shape=(1,) * rank)
            x = s.where(s[comparison](x, bound), s.broadcast_like(bound, x), x)
    return x


def ends(dtype: DType) -> tuple[float, float]:
    """Bounds that leave all as it is."""
    if dtype not in (DType.INT8, DType.UINT8):
        return -FAR, FAR
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def exact(bound: float | None) -> bool:
    """Whether 32 bits hold a bound."""
    return bound is None or float(np.float32(bound)) == bound


@writes("Softplus")
def write_softplus(s, x):
    return s.Activation(x, act_type="softrelu")


@writes("LeakyRelu")
def write_leaky_relu(s, x, *, alpha):
    return s.LeakyReLU(x, act_type="leaky", slope=alpha)


@writes("Elu")
def write_elu(s, x, *, alpha):
    return s.LeakyReLU(x, act_type="elu", slope=alpha)


@writes("Selu")
def write_selu(s, x, *, alpha, gamma):
    """With the usual numbers; others are spelled out."""
    return s.LeakyReLU(x, act_type="selu")


@writes("Gelu", only={"approximate": ("none",)})
def write_gelu(s, x):
    """The library behind MXNet 1.7 takes the approximation by a hyperbolic tangent for it."""
    if not s.release.name.startswith("1.7"):
        return s.LeakyReLU(x, act_type="gelu")
    part = s["_plus_scalar"](s.erf(s["_mul_scalar"](x, scalar=0.5**0.5)), scalar=1.0)
    return s.elemwise_mul(s["_mul_scalar"](x, scalar=0.5), part)


@writes("PRelu")
def write_prelu(s, x, slope):
    """A slope of one number, or one a channel."""
    flat = s.Reshape(slope, shape=(-1,)) if slope.rank != 1 else slope
    return s.LeakyReLU(x, flat, act_type="prelu")


@writes("HardSigmoid")
def write_hard_sigmoid(s, x, *, alpha, beta):
    return s.hard_sigmoid(x, alpha=alpha, beta=beta)


@writes("HardSwish")
def write_hard_swish(s, x):
    return s.elemwise_mul(x, s.hard_sigmoid(x, alpha=1 / 6, beta=0.5))


@writes("Mish")
def write_mish(s, x):
    return s.elemwise_mul(x, s.tanh(s.Activation(x, act_type="softrelu")))


def write_like(name, numbers, s, x, *, dtype: int | None = None, **given):
    """Random numbers in the shape of ``x``; MXNet seeds all of them together."""
    kind = x.type if dtype is None else ELEMENT_TYPES[dtype]
    require(kind.kind == "f", f"random numbers of {kind.value} elements")
    like = s.Cast(x, dtype=kind.value)
    return s[name](like, **{new: given[old] for old, new in numbers.items()})


@writes("RandomUniformLike", ignore=("seed",))
def write_uniform_like(s, x, *, low, high, dtype: int | None = None):
    numbers = {"low": "low", "high": "high"}
    return write_like("_random_uniform_like", numbers, s, x, dtype=dtype, low=low, high=high)


@writes("RandomNormalLike", ignore=("seed",))
def write_normal_like(s, x, *, mean, scale, dtype: int | None = None):
    numbers = {"mean": "loc", "scale": "scale"}
    return write_like("_random_normal_like", numbers, s, x, dtype=dtype, mean=mean, scale=scale)


@writes("RandomUniform", ignore=("seed",))
def write_uniform(s, *, low, high, dtype, shape):
    return s["_random_uniform"](low=low, high=high, shape=shape, dtype=drawn(dtype))


@writes("RandomNormal", ignore=("seed",))
def write_normal(s, *, mean, scale, dtype, shape):
    return s["_random_normal"](loc=mean, scale=scale, shape=shape, dtype=drawn(dtype))


def drawn(dtype: int) -> str:
    kind = ELEMENT_TYPES[dtype]
    require(kind.kind == "f" and kind in TYPES, f"random numbers of {kind.value} elements")
    return kind.value


@writes("Multinomial", ignore=("seed",))
def write_multinomial(s, x, *, dtype, sample_size):
    """ONNX has logarithms of the chances, MXNet the chances."""
    kind = ELEMENT_TYPES[dtype]
    require(kind in (DType.INT32, DType.INT64), f"{kind.value} samples")
    chances = s.softmax(x, axis=1)
    drawn = s["_sample_multinomial"](chances, shape=(sample_size,), dtype="int32")
    return s.Cast(drawn, dtype=kind.value)
