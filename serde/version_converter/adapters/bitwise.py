"""Operators on the bits of integers."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_TYPES

from . import decomposition, downgrades
from .common import cast

TABLES = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}
DIGIT = 16  # bits are looked up four at a time


def digits(g, x: Value, count: int):
    """Base-16 digits of integers, lowest first; the last one, which has the sign, as it is left."""
    nibbles = []
    for _ in range(count - 1):
        nibbles.append(g.Mod(x, DIGIT))
        x = g.Div(g.Sub(x, nibbles[-1]), DIGIT)
    return [*nibbles, x]


def by_digits(op, g, a: Value, b: Value):
    """Look the results of four bits at a time up in a table."""
    kind = a.type
    digit_dtype = kind if kind in (DType.INT64, DType.UINT64) else DType.INT64
    table = TABLES[op].outer(np.arange(DIGIT), np.arange(DIGIT)).ravel()
    top = np.where(table < DIGIT // 2, table, table - DIGIT) if kind.kind == "i" else table
    count = kind.bits // 4
    pairs = list(zip(*(digits(g, cast(g, v, digit_dtype), count) for v in (a, b)), strict=True))
    parts = []
    for place, (p, q) in enumerate(pairs):
        last = place == len(pairs) - 1
        at = g.Add(g.Mul(g.Mod(p, DIGIT), DIGIT), g.Mod(q, DIGIT))
        digit = g.Gather(
            g.const(top if last else table, digit_dtype), cast(g, at, DType.INT64), axis=0
        )
        parts.append(g.Mul(digit, g.const(DIGIT**place, digit_dtype)))
    return cast(g, reduce(g.Add, parts), kind)


for _op in TABLES:
    decomposition(18, _op)(partial(by_digits, _op))


@decomposition(18, "BitwiseNot")
def complement(g, x: Value):
    most = -1 if x.type.kind == "i" else int(np.iinfo(x.type.numpy).max)
    return g.Sub(g.const(most, x.type), x)


@decomposition(26, "BitCast")
def same_bits(g, x: Value, *, to: int):
    """Integers of one width: Cast reinterprets the bits of those that are out of range."""
    kind, new = x.type, ELEMENT_TYPES[to]
    for d in (kind, new):
        require(d.kind in "iub", f"the bits of {d.value}: NaNs differ in bits that no arithmetic "
                "tells or makes; opset 26 is the lowest with BitCast")  # fmt: skip
    require(kind.numpy.itemsize == new.numpy.itemsize, "BitCast to another width")
    if kind.bits >= 8 or kind.kind == new.kind:
        return cast(g, x, new)
    x_int8, span = cast(g, x, DType.INT8), 1 << kind.bits
    outside = g.Less(x_int8, 0) if new.kind == "u" else g.Not(g.Less(x_int8, span // 2))
    moved = g.Add(x_int8, g.const(span if new.kind == "u" else -span, DType.INT8))
    return cast(g, g.Where(outside, moved, x_int8), new)


def powers(g, y: Value, most: int, dtype: DType, per: int = 1):
    """``2 ** (per * y)`` for small ``y``, from a table."""
    table = np.array([2 ** (per * i) for i in range(most + 1)], dtype.numpy)
    return g.Gather(g.const(table), cast(g, y, DType.INT64), axis=0)


@decomposition(11, "BitShift")
def shift_by_table(g, x: Value, y: Value, *, direction: str):
    """Multiply or divide by a power of two; in two steps, since the largest has no room."""
    bits, kind = x.type.bits, x.type
    count = shift_count(g, y, bits)
    near = g.Min(count, bits - 2)
    far = g.Sub(count, near)
    steps = [powers(g, near, bits - 2, kind)]
    if far.tensor is None or far.array().any():
        steps.append(powers(g, far, 2, kind))
    if direction == "LEFT":
        return reduce(g.Mul, steps, x)
    if kind.kind == "u":
        return reduce(g.Div, steps, x)
    negative = g.Less(x, 0)
    size = g.Where(negative, g.Sub(g.const(-1, kind), x), x)
    moved = reduce(g.Div, steps, size)
    return g.Where(negative, g.Sub(g.const(-1, kind), moved), moved)


def shift_count(g, y: Value, bits: int):
    """How far to shift: all bits out where the operand says more, or less than nothing."""
    if y.type.kind == "i":
        count = cast(g, y, DType.INT64)
        return g.Where(g.Less(count, 0), bits, g.Min(count, bits))
    return cast(g, g.Min(y, g.const(bits, y.type)), DType.INT64)


@downgrades[28]("BitShift")
def shift_of_signed(g, x: Value, y: Value, *, direction: str):
    """Before opset 28 only unsigned integers were shifted, by less than their bits."""
    if x.type.kind == "u":
        return g.BitShift(x, y, direction=direction)
    with g.at_opset(28):
        return shift_by_table(g, x, y, direction=direction)
