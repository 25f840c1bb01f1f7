"""Operators on elements, those of two operands, and activations."""

from __future__ import annotations

import numpy as np

from serde.decompositions.elementwise import stable_softplus
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_TYPES

from ..target import TfliteBuilder, derive, legalizations, writes

UNARY = {
    "Abs": "ABS", "Ceil": "CEIL", "Cos": "COS", "Exp": "EXP", "Floor": "FLOOR",
    "HardSwish": "HARD_SWISH", "Log": "LOG", "Neg": "NEG", "Not": "LOGICAL_NOT", "Relu": "RELU",
    "Round": "ROUND", "Sigmoid": "LOGISTIC", "Sign": "SIGN", "Sin": "SIN", "Sqrt": "SQRT",
    "Tanh": "TANH",
}  # fmt: skip
BINARY = {
    "Add": "ADD", "And": "LOGICAL_AND", "Div": "DIV", "Equal": "EQUAL", "Greater": "GREATER",
    "GreaterOrEqual": "GREATER_EQUAL", "Less": "LESS", "LessOrEqual": "LESS_EQUAL",
    "Max": "MAXIMUM", "Min": "MINIMUM", "Mul": "MUL", "Or": "LOGICAL_OR", "Pow": "POW",
    "Sub": "SUB",
}  # fmt: skip
TYPES = {
    DType.FLOAT32: 0, DType.INT32: 2, DType.UINT8: 3, DType.INT64: 4, DType.BOOL: 6,
    DType.INT16: 7, DType.INT8: 9,
}  # fmt: skip


def broadcast_shape(values):
    """The shape that operands are repeated to."""
    rank = max(v.rank for v in values)
    shapes = [(*[1] * (rank - v.rank), *v.ranked_shape) for v in values]
    return tuple([next((d for d in dims if d != 1), 1) for dims in zip(*shapes, strict=True)])


@writes.for_each(UNARY)
def write_unary(code: str, t: TfliteBuilder, x: Value):
    return t.make(code, [x], x.dtype, x.shape)


@writes.for_each(BINARY)
def write_binary(code: str, t: TfliteBuilder, x: Value, y: Value):
    is_test = code.startswith(("EQUAL", "GREATER", "LESS", "LOGICAL"))
    return t.make(code, [x, y], DType.BOOL if is_test else x.dtype, broadcast_shape((x, y)))


@writes("Identity")
def write_identity(t: TfliteBuilder, x: Value):
    return x


@writes("Where")
def write_where(t: TfliteBuilder, condition: Value, x: Value, y: Value):
    return t.make("SELECT_V2", [condition, x, y], x.dtype, broadcast_shape((condition, x, y)))


@writes("Cast", ignore=("saturate", "round_mode"))
def write_cast(t: TfliteBuilder, x: Value, *, to: int):
    return cast(t, x, ELEMENT_TYPES[to])


def cast(t: TfliteBuilder, x: Value, dtype: DType) -> Value:
    """The elements in another type; constants at once."""
    if x.dtype is dtype:
        return x
    if x.tensor is not None:
        return derive(t, x, lambda a: a.astype(dtype.numpy), x.static_shape, dtype)
    options = {"in_data_type": TYPES[x.type], "out_data_type": TYPES[dtype]}
    return t.make("CAST", [x], dtype, x.shape, **options)


@writes("LeakyRelu")
def write_leaky_relu(t: TfliteBuilder, x: Value, *, alpha: float):
    return t.make("LEAKY_RELU", [x], x.dtype, x.shape, alpha=alpha)


@writes("Gelu")
def write_gelu(t: TfliteBuilder, x: Value, *, approximate: str):
    return t.make("GELU", [x], x.dtype, x.shape, approximate=int(approximate == "tanh"))


@legalizations("Elu")
def legalize_elu(g, x: Value, *, alpha: float):
    """ELU has no alpha."""
    if alpha == 1:
        return None
    return g.Where(g.Greater(x, 0.0), x, g.Mul(g.Sub(g.Exp(x), 1.0), alpha))


@writes("Elu", only={"alpha": (1.0,)})
def write_elu(t: TfliteBuilder, x: Value):
    return t.make("ELU", [x], x.dtype, x.shape)


@legalizations("Pow")
def legalize_pow(g, x: Value, y: Value):
    """POW takes floats of one type."""
    return None if x.type is y.type else g.Pow(x, g.cast_like(y, x))


@legalizations("Xor")
def legalize_xor(g, x: Value, y: Value):
    return g.Not(g.Equal(x, y))


@legalizations("HardSigmoid")
def legalize_hard_sigmoid(g, x: Value, *, alpha: float, beta: float):
    return g.Clip(g.Add(g.Mul(x, alpha), beta), 0.0, 1.0)


@legalizations("Softplus")
def legalize_softplus(g, x: Value):
    return stable_softplus(g, x)


@legalizations("Softsign")
def legalize_softsign(g, x: Value):
    return g.Div(x, g.Add(g.Abs(x), 1.0))


@writes("Mod", only={"fmod": (0,)})
def write_mod(t: TfliteBuilder, x: Value, y: Value):
    return t.make("FLOOR_MOD", [x, y], x.dtype, broadcast_shape((x, y)))


@legalizations("Reciprocal")
def legalize_reciprocal(g, x: Value):
    return g.Div(1.0, x)


@writes("Clip")
def write_clip(t: TfliteBuilder, x: Value, low: Value | None = None, high: Value | None = None):
    bounds = [None if v is None else float(v.array()) for v in (low, high)]
    if bounds == [0.0, 6.0] and x.type is DType.FLOAT32:
        return t.make("RELU6", [x], x.dtype, x.shape)
    for code, bound in (("MAXIMUM", low), ("MINIMUM", high)):
        if bound is not None:
            number = t.const(np.asarray(bound.array()).reshape(()))
            x = t.make(code, [x, number], x.dtype, x.shape)
    return x


@writes("PRelu")
def write_prelu(t: TfliteBuilder, x: Value, slope: Value):
    require(slope.tensor is not None, "a computed slope. Make it a constant")
    wanted = (1,) * (x.rank - slope.rank) + slope.static_shape
    require(x.rank > 1, "a slope of a vector")
    return t.make("PRELU", [x, t.reshape(slope, wanted[1:])], x.dtype, x.shape)
