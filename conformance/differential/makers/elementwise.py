"""Nodes that compute element by element."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from serde.ir.graph import DType
from serde.spec.schema import ELEMENT_CODES

from ..generator import WEIGHTS, Generator, Maker

UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor HardSwish "
    "Identity IsNaN Log Mish Neg Not Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign "
    "Sqrt Tan Tanh"
).split()
BINARY = (
    "Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mul "
    "Or Pow Sub Xor Add Mul Sub Div"
).split()
VARIADIC = "Max Mean Min Sum".split()
FLOATS = (-2.0, -0.5, 0.0, 0.1, 0.5, 1.0, 1.5, 3.0)
PARAMETERS = {  # float attributes, each left out now and then
    "Celu": ("alpha",), "Elu": ("alpha",), "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",), "Selu": ("alpha", "gamma"), "Shrink": ("bias", "lambd"),
    "Swish": ("alpha",), "ThresholdedRelu": ("alpha",),
}  # fmt: skip


def make_unary(op: str, g: Generator) -> None:
    g.emit(op, [g.operand(g.types(op))])


def make_parametric(op: str, g: Generator) -> None:
    attrs = {n: g.choice(FLOATS) for n in PARAMETERS[op] if g.chance(0.7)}
    if op == "Celu":
        attrs = {n: v or 1.0 for n, v in attrs.items()}
    g.emit(op, [g.operand(g.types(op))], **attrs)


def make_gelu(g: Generator) -> None:
    g.emit("Gelu", [g.operand(g.types("Gelu"))], approximate=g.choice(("none", "tanh", None)))


def make_is_inf(g: Generator) -> None:
    flags = {n: g.choice((0, 1)) for n in ("detect_negative", "detect_positive") if g.chance(0.5)}
    g.emit("IsInf", [g.operand(g.types("IsInf"))], **flags)


def make_pair(op: str, g: Generator, **attrs: Any) -> None:
    """Two operands that broadcast."""
    a = g.operand(g.types(op))
    dtype = g.dtype(a)
    if op == "Pow" and g.chance(0.3):
        dtype = g.pick_type(g.types(op, 1))
    b = g.like(dtype, g.broadcastable(g.of(a).shape))
    if g.chance(0.15) and (other := g.existing({dtype})) is not None:
        b = other
    g.emit(op, [a, b] if g.chance(0.7) or op == "Pow" else [b, a], **attrs)


def make_mod(g: Generator) -> None:
    make_pair("Mod", g, fmod=g.choice((0, 1, 1, None)))


def make_shift(g: Generator) -> None:
    a = g.operand(g.types("BitShift"))
    shape, dtype = g.broadcastable(g.of(a).shape), g.dtype(a)
    amount = g.numbers.integers(0, dtype.bits, shape).astype(dtype.numpy)
    g.emit("BitShift", [a, g.hold(amount)], direction=g.choice(("LEFT", "RIGHT")))


def make_variadic(op: str, g: Generator) -> None:
    a = g.operand(g.types(op))
    shape = g.of(a).shape
    more = [g.like(g.dtype(a), g.broadcastable(shape)) for _ in range(g.choice((0, 1, 1, 2)))]
    g.emit(op, [a, *more])


def make_where(g: Generator) -> None:
    a = g.operand(g.types("Where", 1))
    shape = g.of(a).shape
    b = g.like(g.dtype(a), g.broadcastable(shape))
    g.emit("Where", [g.like(DType.BOOL, g.broadcastable(shape)), a, b])


def make_clip(g: Generator) -> None:
    x = g.operand(g.types("Clip"))
    dtype = g.dtype(x)
    bounds = [g.leaf(dtype, ()) if g.chance(0.7) else "" for _ in range(2)]
    g.emit("Clip", [x, *bounds])


def make_prelu(g: Generator) -> None:
    x = g.operand(g.types("PRelu"))
    g.emit("PRelu", [x, g.like(g.dtype(x), g.broadcastable(g.of(x).shape))])


def make_cast(g: Generator) -> None:
    to = g.pick_type(g.types("CastLike", 1))
    x = g.operand(g.types("Cast"))
    narrow = to.value.startswith("float8")
    saturate = g.choice((0, 1)) if narrow and g.chance(0.5) else None
    g.emit("Cast", [x], to=ELEMENT_CODES[to], saturate=saturate)


def make_cast_like(g: Generator) -> None:
    g.emit("CastLike", [g.operand(g.types("CastLike")), g.operand(g.types("CastLike", 1))])


def make_bit_cast(g: Generator) -> None:
    x = g.operand(g.types("BitCast"))
    same = [d for d in WEIGHTS if d.bits == g.dtype(x).bits and d.kind != "b"]
    g.emit("BitCast", [x], to=ELEMENT_CODES[g.pick_type(same)])


def make_dropout(g: Generator) -> None:
    x = g.operand(g.types("Dropout"))
    ratio = [g.const(0.5, np.float32)] if g.chance(0.5) else []
    g.emit("Dropout", [x, *ratio], outputs=g.choice((1, 1, 2)))


def makers() -> Iterator[Maker]:
    """The makers of this family."""
    yield from (partial(make_unary, op) for op in UNARY)
    yield from (partial(make_parametric, op) for op in PARAMETERS)
    yield from (partial(make_pair, op) for op in BINARY)
    yield from (partial(make_variadic, op) for op in VARIADIC)
    yield from (make_gelu, make_is_inf, make_mod, make_shift, make_where, make_clip, make_prelu)
    yield from (make_cast, make_cast, make_cast_like, make_bit_cast, make_dropout)
