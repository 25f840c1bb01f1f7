"""Operators that work element by element."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from serde.ir.graph import DType, Tensor, Value
from serde.spec.schema import ELEMENT_TYPES
from serde.spec.weight_origins import is_weight

from ..target import TorchBuilder, derive, legalizations, writes

CALLS = {
    "Abs": "torch.abs", "Acos": "torch.acos", "Acosh": "torch.acosh", "Asin": "torch.asin",
    "Asinh": "torch.asinh", "Atan": "torch.atan", "Atanh": "torch.atanh",
    "BitwiseNot": "invert", "Ceil": "torch.ceil", "Cos": "torch.cos", "Cosh": "torch.cosh",
    "Erf": "torch.erf", "Exp": "torch.exp", "Floor": "torch.floor", "HardSwish": "F.hardswish",
    "IsNaN": "torch.isnan", "Log": "torch.log", "Mish": "F.mish", "Neg": "neg", "Not": "invert",
    "Reciprocal": "torch.reciprocal", "Relu": "F.relu", "Round": "torch.round",
    "Sigmoid": "torch.sigmoid", "Sign": "torch.sign", "Sin": "torch.sin", "Sinh": "torch.sinh",
    "Softplus": "F.softplus", "Softsign": "F.softsign", "Sqrt": "torch.sqrt", "Tan": "torch.tan",
    "Tanh": "torch.tanh",
}  # fmt: skip
INFIX = {
    "Add": "+", "Sub": "-", "Mul": "*", "Equal": "==", "Less": "<", "Greater": ">",
    "LessOrEqual": "<=", "GreaterOrEqual": ">=", "And": "&", "Or": "|", "Xor": "^",
    "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^",
}  # fmt: skip


def read_number(value: Value) -> bool | int | float:
    """The single element of a constant, a float in as few digits as its type needs."""
    number = value.array().reshape(())[()]
    if value.type in (DType.FLOAT16, DType.FLOAT32) and np.isfinite(number):
        shortest = float(str(number))
        return number.item() if abs(shortest) > float(np.finfo(number.dtype).max) else shortest  # type: ignore[no-any-return]
    return number.item()  # type: ignore[no-any-return]


def as_number(value: Value, beside: Value) -> Value | bool | int | float:
    """A constant of one element as a number, where it does not broadcast ``beside``."""
    tensor = value.tensor
    is_read = beside.tensor is None or is_weight(beside)
    is_one = tensor is not None and tensor.size == 1 and is_read
    if not is_one or beside.shape is None or value.rank > beside.rank:
        return value
    is_kept = value.type is DType.BOOL or is_weight(value)
    return value if is_kept else read_number(value)


@writes.for_each(CALLS)
def write_call(name: str, t: TorchBuilder, x: Value):
    return t[name](x)


@writes.for_each(INFIX)
def write_infix(sign: str, t: TorchBuilder, x: Value, y: Value):
    return t[sign](as_number(x, y), as_number(y, x))


@writes("Sum")
def write_sum(t: TorchBuilder, *values: Value):
    return reduce(t["+"], values) if len(values) > 1 else values[0]


@writes("Div")
def write_div(t: TorchBuilder, x: Value, y: Value):
    if x.type.kind == "f":  # PyTorch multiplies a number by the reciprocal
        number = as_number(x, y)
        return t["/"](number if number in (1, -1) else x, as_number(y, x))
    return t.torch.div(x, as_number(y, x), rounding_mode="trunc")


@writes("Mod")
def write_mod(t: TorchBuilder, x: Value, y: Value, *, fmod: int):
    sizes = t.find_sizes(y, x) if y.rank == 0 and x.type is DType.INT64 else None
    divisor = as_number(y, x) if sizes is None else sizes[0]
    return t["torch.fmod" if fmod else "torch.remainder"](x, divisor)


@writes("Pow")
def write_pow(t: TorchBuilder, x: Value, y: Value):
    return t.torch.pow(x, as_number(y, x))


@writes("BitShift")
def write_shift(t: TorchBuilder, x: Value, y: Value, *, direction: str):
    return t["<<" if direction == "LEFT" else ">>"](x, y)


@writes.for_each({"Max": "max", "Min": "min"})
def write_extreme(kind: str, t: TorchBuilder, *values: Value):
    def combine(x: Value, y: Value) -> Value:
        x, y = (y, x) if x.tensor is not None else (x, y)
        number = as_number(y, x)
        if isinstance(number, Value):
            return t[f"torch.{kind}imum"](x, y)
        return t[".clamp"](x, **{"min" if kind == "max" else "max": number})

    first, *rest = values
    return reduce(combine, rest, first) if rest else t.alias(first)


@writes("Clip")
def write_clip(t: TorchBuilder, x: Value, low: Value | None = None, high: Value | None = None):
    if low is None and high is None:
        return x
    ends = {"min": low and as_number(low, x), "max": high and as_number(high, x)}
    if len({isinstance(e, Value) for e in ends.values() if e is not None}) > 1:
        ends = {"min": low, "max": high}
    return t[".clamp"](x, **ends)


@writes("Where")
def write_where(t: TorchBuilder, condition: Value, x: Value, y: Value):
    a, b = as_number(x, y), as_number(y, x)
    return t.torch.where(condition, a, b if isinstance(a, Value) else y)


@writes("Cast", ignore=("saturate", "round_mode"))
def write_cast(t: TorchBuilder, x: Value, *, to: int):
    return t[".to"](x, ELEMENT_TYPES[to])


@writes("Identity")
def write_identity(t: TorchBuilder, x: Value):
    return x


@writes("StopGradient")
def write_stop_gradient(t: TorchBuilder, x: Value):
    """A composite operator: ``serde.decompositions.composites``."""
    return t[".detach"](x)


@writes("IsInf")
def write_is_inf(t: TorchBuilder, x: Value, *, detect_negative: int, detect_positive: int):
    if detect_negative and detect_positive:
        return t.torch.isinf(x)
    if not detect_negative and not detect_positive:
        return t.torch.zeros_like(x, dtype=DType.BOOL)
    return t["torch.isneginf" if detect_negative else "torch.isposinf"](x)


@writes("LeakyRelu")
def write_leaky_relu(t: TorchBuilder, x: Value, *, alpha: float):
    return t.F.leaky_relu(x, shorten(alpha))


def shorten(number: float) -> Any:
    """A float32 attribute in as few digits as it needs."""
    return read_number(Value("", DType.FLOAT32, (), Tensor.of(np.asarray(number, np.float32))))


@writes.for_each({"Elu": "F.elu", "Celu": "F.celu"})
def write_elu(name: str, t: TorchBuilder, x: Value, *, alpha: float):
    return t[name](x, alpha=None if alpha == 1 else shorten(alpha))


@writes("ThresholdedRelu")
def write_threshold(t: TorchBuilder, x: Value, *, alpha: float):
    return t.torch.where(t[">"](x, shorten(alpha)), x, 0.0)  # F.threshold keeps NaN


@writes("Gelu")
def write_gelu(t: TorchBuilder, x: Value, *, approximate: str):
    return t.F.gelu(x, approximate=None if approximate == "none" else approximate)


@writes("HardSigmoid")
def write_hard_sigmoid(t: TorchBuilder, x: Value, *, alpha: float, beta: float):
    line = t["+"](t["*"](x, shorten(alpha)), shorten(beta))
    return t[".clamp"](line, min=0.0, max=1.0)


@writes("Swish")
def write_swish(t: TorchBuilder, x: Value, *, alpha: float):
    if alpha == 1:
        return t.F.silu(x)
    return t["*"](x, t.torch.sigmoid(t["*"](x, shorten(alpha))))


@writes.for_each({"Softmax": "F.softmax", "LogSoftmax": "F.log_softmax"})
def write_softmax(name: str, t: TorchBuilder, x: Value, *, axis: int):
    return t[name](x, dim=axis)


@legalizations("PRelu")
def legalize_prelu(g, x, slope):
    """One slope, or one for each channel; others by comparison."""
    is_one = all(d == 1 for d in slope.ranked_shape)
    if slope.tensor is not None and x.type.kind == "f" and (is_one or is_by_channel(slope, x)):
        return None
    return g.Where(g.Less(x, 0), g.Mul(x, slope), x)


def is_by_channel(slope: Value, x: Value) -> bool:
    """Whether there is a slope for each index of axis 1."""
    shape = (*[1] * (x.rank - slope.rank), *slope.ranked_shape)
    return x.rank > 1 and x.ranked_shape[1] == shape[1] and all(
        d == 1 for axis, d in enumerate(shape) if axis != 1
    )  # fmt: skip


@writes("PRelu")
def write_prelu(t: TorchBuilder, x: Value, slope: Value):
    count = slope.array().size
    weight = derive(t, slope, lambda a: a.reshape(-1), (count,))
    return t.module("nn.PReLU", [x], [count] if count > 1 else (), parameters={"weight": weight})
