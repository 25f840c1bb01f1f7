"""Functions of each element of one tensor."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from serde.ir.graph import DType, Value
from serde.spec.expressions import number
from serde.spec.traits import COMPARISONS
from serde.version_converter.adapters.activation import hyperbolic, inverse_hyperbolic
from serde.version_converter.adapters.elementwise import sign

from ..rules import reads
from ..target import emit_cast, emit_scalar, legalizations, writes
from .widths import compute_in_order, compute_widely

# Functions of floats, which Relay has in small letters
OF_FLOATS = (
    "Acos Acosh Asin Asinh Atan Atanh Cos Cosh Exp Log Sigmoid Sin Sinh Sqrt Tan Tanh".split()
)
UNARY = {op: op.lower() for op in (*OF_FLOATS, "Abs", "Ceil", "Floor", "IsNaN", "Sign")} | {
    "BitwiseNot": "bitwise_not",
    "Identity": "copy",
    "Neg": "negative",
    "Not": "logical_not",
    "Relu": "nn.relu",
}


def round_half_away(g, x: Value):
    """Halves go away from zero, as llvm rounds."""
    return g.Mul(g.Sign(x), g.Floor(g.Add(g.Abs(x), 0.5)))


# Written out for doubles, where ONNX Runtime has the operator for single precision only.
DOUBLES = {
    **{op.lower(): partial(hyperbolic, op) for op in ("Cosh", "Sinh")},
    **{op.lower(): partial(inverse_hyperbolic, op) for op in ("Acosh", "Asinh", "Atanh")},
    "tan": lambda g, x: g.Div(g.Sin(x), g.Cos(x)),
}
FLOATS = {op.lower(): op for op in OF_FLOATS} | {  # Relay's name: ONNX's, or the expression
    "erf": "Erf",
    "fast_erf": "Erf",
    "fast_exp": "Exp",
    "fast_tanh": "Tanh",
    "log10": lambda g, x: g.Mul(g.Log(x), 1 / math.log(10)),
    "log2": lambda g, x: g.Mul(g.Log(x), 1 / math.log(2)),
    "rsqrt": lambda g, x: g.Reciprocal(g.Sqrt(x)),
}
ROUNDINGS = {  # which leave integers as they are
    "ceil": "Ceil",
    "floor": "Floor",
    "round": round_half_away,
    "trunc": lambda g, x: g.Mul(g.Sign(x), g.Floor(g.Abs(x))),
}


@reads.for_each(FLOATS.keys())
def read_float(name, g, x: Value):
    op = FLOATS[name]
    if x.type is DType.FLOAT64 and name in DOUBLES:
        return DOUBLES[name](g, x)
    return g[op](x) if isinstance(op, str) else op(g, x)


@reads.for_each(ROUNDINGS)
def read_rounding(op, g, x: Value):
    if x.type.kind != "f":
        return x
    return g[op](x) if isinstance(op, str) else op(g, x)


reads.rename({"debug": "Identity"}, ignore=("debug_func",))
reads.rename({"copy": "Identity", "logical_not": "Not", "bitwise_not": "BitwiseNot"})


@reads("abs")
def read_abs(g, x):
    return x if x.type.kind in "ub" else g.Abs(x)


@reads("sign")
def read_sign(g, x):
    return g.Sign(x)


@reads("negative")
def read_negative(g, x):
    return g.Neg(x) if x.type.kind in "if" else compute_widely(g, lambda g, x: g.Neg(x), x)


@reads("clip")
def read_clip(g, x, *, a_min: float, a_max: float):
    """The lower bound wins where it is above the other."""
    low, high = cast_bound(g, a_min, x), cast_bound(g, max(a_min, a_max), x)
    if x.type in (DType.FLOAT32, DType.FLOAT16):
        return g.Clip(x, low, high)
    return compute_in_order(g, lambda g, x, low, high: g.Min(g.Max(x, low), high), x, low, high)


def cast_bound(g, number: float, x: Value):
    """A bound in the type of ``x``: integers meet it cut off, and within their range."""
    if x.type.kind in "iu":
        limits = np.iinfo(x.type.numpy)
        number = int(min(max(number, limits.min), limits.max))
    return g.scalar(number, x)


@reads("isnan")
def read_isnan(g, x):
    return g.IsNaN(x) if x.type.kind == "f" else g.Not(g.Equal(x, x))


@reads("isinf")
def read_isinf(g, x):
    return g.IsInf(x) if x.type is not DType.FLOAT16 else g.IsInf(g.cast(x, DType.FLOAT32))


@reads("isfinite")
def read_isfinite(g, x):
    return g.Not(g.Or(read_isnan(g, x), read_isinf(g, x)))


writes.rename(UNARY)


def half_angle_tangent(g, x: Value):
    """The tangent of half an angle: infinite at the ends of the circle."""
    return g.Tan(g.Mul(x, 0.5))


def sine_of_tangent(g, x: Value):
    tangent = half_angle_tangent(g, x)
    return g.Div(2.0, g.Add(tangent, g.Div(1.0, tangent)))


def cosine_of_tangent(g, x: Value):
    tangent = half_angle_tangent(g, x)
    return g.Sub(g.Div(2.0, g.Add(g.Mul(tangent, tangent), 1.0)), 1.0)


def dynamic_sine(g, x: Value):
    return g.compute_in_float32(sine_of_tangent, x)


def dynamic_cosine(g, x: Value):
    return g.compute_in_float32(cosine_of_tangent, x)


# What stands for operators that TVM has for tensors of known sizes only
DYNAMIC = {
    "Abs": lambda g, x: g.Max(x, g.Neg(x)),
    "BitwiseNot": lambda g, x: g.BitwiseXor(x, g.const(np.invert(np.zeros((), x.type.numpy)))),
    "Cos": dynamic_cosine,
    "Cosh": partial(hyperbolic, "Cosh"),
    "IsNaN": lambda g, x: g.Not(g.Equal(x, x)),
    "Sign": sign,
    "Sin": dynamic_sine,
    "Sinh": partial(hyperbolic, "Sinh"),
}


@legalizations.for_each((*DYNAMIC, "Relu"))
def legalize_dynamic_unary(op, g, x):
    """Unsigned elements are their own size; tensors of dynamic size take other operators."""
    if op in ("Abs", "Relu") and x.type.kind in "ub":
        return g.Identity(x)
    if op == "Sign" and x.type.kind == "u":  # TVM's makes -1
        return g.cast(g.Greater(x, g.const(0, x.type)), x.type)
    return DYNAMIC[op](g, x) if op in DYNAMIC and not x.is_static else None


@legalizations("Not")
def legalize_not(g, x):
    """TVM makes the opposite comparison of what is not so, which is no less untrue of NaN."""
    return g.Less(g.cast(x, DType.FLOAT32), 0.5) if compares_floats(g, x) else None


def compares_floats(g, x: Value) -> bool:
    """Whether a comparison of floats is in what is computed for ``x`` from booleans."""
    stack, seen = [x], {x}
    while stack:
        node = g.producer(stack.pop())
        inputs = [v for v in node.inputs if v is not None] if node is not None else []
        if node is not None and node.op in COMPARISONS and inputs[0].type.kind == "f":
            return True
        stack += [v for v in inputs if v.dtype is DType.BOOL and v not in seen]
        seen.update(inputs)
    return False


@writes("Erf")
def write_erf(r, x):
    """The approximation, of single precision's accuracy, for dynamic sizes."""
    if x.is_static or x.type is DType.FLOAT64:
        return r.erf(x)
    return emit_cast(r, r.fast_erf(emit_cast(r, x, DType.FLOAT32)), x.type)


@legalizations("IsInf")
def legalize_is_inf(g, x, *, detect_negative: int, detect_positive: int):
    if detect_negative and detect_positive and x.is_static:
        return None
    which = {"detect_negative": detect_negative, "detect_positive": detect_positive}
    return g.decompose("IsInf", 10, x, **which)


@writes("IsInf", ignore=("detect_negative", "detect_positive"))
def write_is_inf(r, x):
    return r.isinf(x)


@legalizations("Clip")
def legalize_clip(g, x, low=None, high=None):
    """Integers, and bounds that are computed or the wrong way round, as comparisons."""
    ends = [number(low), number(high)]
    computed = any(v is not None and n is None for v, n in zip((low, high), ends, strict=True))
    crossed = None not in ends and ends[0] > ends[1]
    if x.type.kind == "f" and not computed and not crossed:
        return g.Identity(x) if low is None and high is None else None
    x = x if low is None else g.Max(x, low)
    return x if high is None else g.Min(x, high)


@writes("Clip")
def write_clip(r, x, low=None, high=None):
    """One bound alone is a comparison: an infinite one is written in few forms of the text."""
    least, most = number(low), number(high)
    if most is None:
        return r.maximum(x, emit_scalar(r, least, x.type))
    if least is None:
        return r.minimum(x, emit_scalar(r, most, x.type))
    return r.clip(x, a_min=float(least), a_max=float(most))
