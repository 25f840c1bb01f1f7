"""Arithmetic, comparison and logic of two tensors of one type, broadcast as in NumPy."""

from __future__ import annotations

from serde.decompositions import elementwise
from serde.ir.graph import DType, Value

from ..rules import reads
from ..target import emit_scalar, legalizations, lift_scalars, writes
from .widths import compute_in_float, compute_in_order, compute_widely

IGNORED = ("lhs_axis", "rhs_axis")  # of BroadcastAttrs, which only qnn operators read
BINARY = {
    "Add": "add",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Div": "divide",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "Max": "maximum",
    "Min": "minimum",
    "Mul": "multiply",
    "Sub": "subtract",
}


def floor_divide(g, a: Value, b: Value):
    """Rounded towards minus infinity."""
    if a.type.kind == "f":
        return g.Floor(g.Div(a, b))
    if a.type.kind == "u":
        return g.Div(a, b)
    return compute_widely(g, lambda g, a, b: g.Div(g.Sub(a, g.Mod(a, b)), b), a, b)


def floor_mod(g, a: Value, b: Value):
    """With the divisor's sign."""
    if a.type.kind == "f":
        return g.Sub(a, g.Mul(g.Floor(g.Div(a, b)), b))
    return compute_in_order(g, lambda g, a, b: g.Mod(a, b), a, b)


def trunc_mod(g, a: Value, b: Value):
    """With the dividend's sign."""
    return compute_in_order(g, lambda g, a, b: g.Mod(a, b, fmod=1), a, b)


def trunc_divide(g, a: Value, b: Value):
    """Rounded towards zero."""
    if a.type.kind != "f":
        return g.Div(a, b)
    quotient = g.Div(a, b)
    return g.Mul(g.Sign(quotient), g.Floor(g.Abs(quotient)))


def power(g, a: Value, b: Value):
    return compute_in_float(g, lambda g, a, b: g.Pow(a, b), a, b)


def make_extreme(op):
    return lambda g, a, b: compute_in_order(g, lambda g, a, b: g[op](a, b), a, b)


def make_bit_shift(direction):
    return lambda g, a, b: compute_in_order(
        g, lambda g, a, b: g.BitShift(a, b, direction=direction), a, b
    )


FUNCTIONS = {name: op for op, name in BINARY.items()} | {
    "floor_divide": floor_divide,
    "floor_mod": floor_mod,
    "trunc_divide": trunc_divide,
    "trunc_mod": trunc_mod,
    "mod": trunc_mod,
    "power": power,
    "maximum": make_extreme("Max"),
    "minimum": make_extreme("Min"),
    "not_equal": lambda g, a, b: g.Not(g.Equal(a, b)),
    "left_shift": make_bit_shift("LEFT"),
    "right_shift": make_bit_shift("RIGHT"),
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


@reads.for_each(FUNCTIONS.keys(), ignore=IGNORED)
def read_binary(name, g, a: Value, b: Value):
    op = FUNCTIONS[name]
    if a.type is DType.BOOL and name in OF_TRUTHS:
        op = OF_TRUTHS[name]
    elif a.type is DType.BOOL and name not in ("equal", "not_equal") and "logical" not in name:
        a, b = g.cast(a, DType.INT32), g.cast(b, DType.INT32)
    return g[op](a, b) if isinstance(op, str) else op(g, a, b)


@reads("where")
def read_where(g, condition, x, y):
    """Any number but 0 is true."""
    return g.Where(g.cast(condition, DType.BOOL), x, y)


@writes.for_each(BINARY)
def write_binary(name, r, a, b):
    return r[name](*lift_scalars(r, a, b))


@legalizations.for_each(("Max", "Min", "Sum"))
def legalize_variadic(op, g, first, *rest):
    """Two operands at a time."""
    if op == "Sum" and not rest:
        return g.Identity(first)
    if op != "Sum" and len(rest) < 2:
        return None if rest else g.Identity(first)
    two = "Add" if op == "Sum" else op
    for other in rest:
        first = g[two](first, other)
    return first


@legalizations("Equal")
def legalize_equal(g, a, b):
    """Of booleans: not different."""
    return g.Not(g.Xor(a, b)) if a.type is DType.BOOL else None


@legalizations("Mod")
def legalize_mod(g, a, b, *, fmod: int):
    """Relay has the divisor's sign for integers only."""
    return None if fmod or a.type.kind != "f" else g.decompose("Mod", 28, a, b, fmod=0)


@writes("Mod")
def write_mod(r, a, b, *, fmod: int):
    """The sign is the divisor's, or with fmod the dividend's, as it is of ``mod``."""
    return r.mod(a, b) if fmod or a.type.kind == "u" else r.floor_mod(a, b)


legalizations("Pow")(elementwise.power)


@writes("Pow")
def write_pow(r, x, y):
    return r.power(*lift_scalars(r, x, y))


@writes("BitShift")
def write_bit_shift(r, x, y, *, direction: str):
    """By so many bits that none are left, or by less than none: only the sign is."""
    shift = r.left_shift if direction == "LEFT" else r.right_shift
    counts = y.array() if y.tensor is not None else None
    if counts is not None and counts.size and 0 <= counts.min() <= counts.max() < x.type.bits:
        return shift(x, y)
    _, zero, bits = lift_scalars(r, y, *(emit_scalar(r, n, x.type) for n in (0, x.type.bits)))
    within = r.less(y, bits)
    sign = zero
    if x.type.kind == "i":
        within = r.logical_and(within, r.greater_equal(y, zero))
        if direction == "RIGHT":
            _, ones = lift_scalars(r, x, emit_scalar(r, -1, x.type))
            sign = r.where(r.less(x, zero), ones, zero)
    return r.where(within, shift(x, r.where(within, y, zero)), sign)


@writes("Where")
def write_where(r, condition, x, y):
    return r.where(*lift_scalars(r, condition, x, y))
