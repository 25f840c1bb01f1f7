"""Products in fixed point computed in float32, for runtimes without integers of 64 bits.

A factor of 31 bits becomes a float of 24, so that an integer near a half may differ by one, and one
beyond 2**24 by as much as float32 rounds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.ir.graph import DType, Value
from serde.rewrite.rules import Rule

from .binary import IGNORED, read_binary
from .fixed_point import BITS, align_factors, round_half

Array = np.ndarray[Any, Any]
MOST_SHIFTED = 62  # bits


def multiply_in_float(g, x: Value, factor: Array, dtype: DType, nearest: bool = False) -> Value:
    """``x`` times numbers, rounded half up, or with ``nearest`` half away from zero."""
    y = g.Mul(g.cast(x, DType.FLOAT32), g.const(factor.astype(np.float32)))
    return g.cast(round_half(g, y, nearest), dtype)


def read_fixed_point_multiply(g, x, *, multiplier: int, shift: int):
    factor = np.ldexp(np.float64(multiplier), shift - BITS)
    return multiply_in_float(g, x, np.asarray(factor), x.type)


def read_fixed_point_multiply_per_axis(
    g, x, multiplier, left, right, *, axes: tuple[int, ...], is_lshift_required=False
):
    numbers, shift = align_factors(x, (multiplier, left, right), axes, is_lshift_required)
    factor = np.ldexp(numbers.astype(np.float64), (shift - BITS).astype(np.int32))
    return multiply_in_float(g, x, factor, x.type)


def read_right_shift(g, a: Value, b: Value):
    """In float32 where it ends a product in fixed point, as TVM writes out ``qnn.requantize``.

    That is ``(x * multiplier + half) >> bits`` in int64, with a half less one for negative products
    where halves are rounded away from zero.
    """
    product = find_product(g, a, b)
    if product is None:
        return read_binary("right_shift", g, a, b)
    x, factor, nearest = product
    return multiply_in_float(g, x, factor, a.type, nearest)


def find_product(g, total: Value, bits: Value) -> tuple[Value, Array, bool] | None:
    """What is multiplied, by which numbers, and whether halves are rounded away from zero."""
    node = g.maker(total, "Add")
    if total.type is not DType.INT64 or bits.tensor is None or node is None:
        return None
    shifts = bits.array()
    if shifts.min(initial=1) < 1 or shifts.max(initial=1) > MOST_SHIFTED:
        return None
    half = np.int64(1) << (shifts - 1)
    for product, rounding in (node.inputs, node.inputs[::-1]):
        nearest = rounds_away(g, rounding, half, product)
        factors = find_factors(g, product) if total.shape == product.shape else None
        if nearest is not None and factors is not None:
            x, factor = factors
            return x, np.ldexp(factor, -shifts.astype(np.int32)), nearest
    return None


def find_factors(g, product: Value) -> tuple[Value, Array] | None:
    """An integer of at most 32 bits, and what it is multiplied by."""
    factor = np.ones((), np.float64)
    while (node := g.maker(product, "Mul", "BitShift")) is not None:
        left, right = node.inputs
        number = constant_of(g, right)
        if number is None and node.op == "Mul":
            left, number = right, constant_of(g, left)
        if number is None or (node.op == "BitShift" and node.attrs["direction"] != "LEFT"):
            return None
        factor = factor * (number if node.op == "Mul" else np.ldexp(1.0, number.astype(np.int32)))
        product = left
    node = g.maker(product, "Cast")
    if node is None or np.abs(factor).max(initial=0) > 2.0**31:
        return None  # or products that exceed int64
    (x,) = node.inputs
    return (x, factor) if x.type.kind == "i" and x.type.bits <= 32 else None


def rounds_away(g, rounding: Value, half: Array, product: Value) -> bool | None:
    """Whether adding this rounds halves away from zero; None where it does not round to nearest."""
    number = constant_of(g, rounding)
    if number is not None:
        return False if is_all(number, half) else None
    node = g.maker(rounding, "Where")
    if node is None:
        return None
    condition, above, below = node.inputs
    test = g.maker(condition, "GreaterOrEqual")
    numbers = [constant_of(g, v) for v in (above, below)]
    if test is None or test.inputs[0] is not product:
        return None
    zero = constant_of(g, test.inputs[1])
    if zero is None or zero.any() or any(n is None for n in numbers):
        return None
    return True if is_all(numbers[0], half) and is_all(numbers[1], half - 1) else None


def constant_of(g, x: Value) -> Array | None:
    """The numbers of a constant; one where all are the same."""
    node = g.maker(x, "ConstantOfShape", "Expand")
    if node is not None and node.op == "Expand":
        x = node.inputs[0]
    elif node is not None:
        return node.attrs["value"].load().reshape(())
    return x.array() if x.tensor is not None else None


def is_all(numbers: Array | None, expected: Array) -> bool:
    """Whether numbers are the expected ones, which may be one for all or along an axis."""
    return numbers is not None and bool(np.all(numbers == expected))


RULES = {
    "fixed_point_multiply": Rule.of(read_fixed_point_multiply),
    "fixed_point_multiply_per_axis": Rule.of(
        read_fixed_point_multiply_per_axis, ("is_rshift_required",)
    ),
    "right_shift": Rule.of(read_right_shift, IGNORED),
}
