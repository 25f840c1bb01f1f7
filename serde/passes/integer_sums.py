"""Sums of products of integers (``MatMulInteger``, ``ConvInteger``), times their scales, as floats.

``x → DynamicQuantizeLinear → MatMulInteger(w) → Cast → Mul(scales)`` is ``MatMul`` of ``x`` and the
numbers that ``w`` stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from serde.ir.graph import DType, Node, Value
from serde.passes.quantized_values import (
    MOST_STEPS,
    dequantize_constant,
    find_real,
    find_source,
    is_of_constants,
)
from serde.passes.regions import Quantization, is_single
from serde.spec.traits import RESHAPES, ROUNDS

MOVES = RESHAPES | {"Identity"}
CASTS = ROUNDS | {"Cast"}
PRODUCTS = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}
F32 = DType.FLOAT32
Emit = Callable[["Value | None"], Value]


class IntegerSum(NamedTuple):
    """A sum of products of integers.

    ``scales`` make it the real number that ``emit`` gives, which is multiplied by one more factor.
    """

    scales: tuple[Value, ...]
    emit: Emit


class Operand(NamedTuple):
    """An operand of such products: the real numbers that, divided by ``scale``, are integers."""

    scale: Value | None
    real: Value


def multiply_sum(g: Any, factors: Sequence[Value]) -> Value | None:
    """The product of factors of which one is a sum of integers, in floats.

    None where there is no such sum, or the others do not have the scales of its operands.
    """
    leaves = [leaf for v in factors for leaf in _list_factors(g, v)]
    for at, leaf in enumerate(leaves):
        total = find_sum(g, leaf)
        if total is not None:
            return _apply_scales(g, total, [*leaves[:at], *leaves[at + 1 :]])
    return None


def _list_factors(g: Any, value: Value, steps: int = MOST_STEPS) -> Iterator[Value]:
    """The numbers that a product is of."""
    node = g.maker(value, "Cast", "Mul")
    if node is None or node.inputs[0].type.kind != "f" or not steps:
        yield value
        return
    for v in node.inputs:
        yield from _list_factors(g, v, steps - 1)


def _apply_scales(g: Any, total: IntegerSum, factors: list[Value]) -> Value | None:
    rest, divisors = list(factors), []
    for scale in total.scales:
        if scale.tensor is not None:
            divisors.append(scale)
        elif scale in rest:
            rest.remove(scale)
        else:
            return None
    if not rest and not divisors:
        return total.emit(None)
    factor = _multiply(g, rest)
    return total.emit(g.Div(factor, _multiply(g, divisors)) if divisors else factor)


def find_sum(g: Any, value: Value) -> IntegerSum | None:
    """The sum of products that ``value`` is, cast and added to or not."""
    node = g.maker(value, "Add", "Cast", *PRODUCTS)
    if node is None:
        return None
    if node.op == "Cast":
        x = node.inputs[0]
        return find_sum(g, x) if x.dtype is DType.INT32 and value.type.kind == "f" else None
    if node.op == "Add" and value.dtype is DType.INT32:
        return _find_biased(g, *node.inputs) or _find_biased(g, *node.inputs[::-1])
    return _find_products(g, node) if node.op in PRODUCTS else None


def _find_biased(g: Any, a: Value, b: Value) -> IntegerSum | None:
    """A sum of products ``a`` with integers ``b`` added, which count in the same unit."""
    total = find_sum(g, a)
    if total is None:
        return None

    def emit(factor: Value | None) -> Value:
        units = [*total.scales, *([] if factor is None else [factor])]
        bias = _find_divided(g, b, units)
        if bias is None:
            bias = _multiply(g, [g.cast(b, F32), *units])
        return g.Add(total.emit(factor), bias)  # type: ignore[no-any-return]

    return IntegerSum(total.scales, emit)


def _find_divided(g: Any, value: Value, units: list[Value]) -> Value | None:
    """Integers times their unit, where they are numbers that were divided by it as the model runs.

    So biases are quantized where the scale of the data is computed.
    """
    moves: list[Node] = []
    while (move := g.maker(value, *MOVES, *CASTS)) is not None:
        moves += [move] if move.op in MOVES else []
        value = move.inputs[0]
    node = g.maker(value, "Div")
    if node is None or value.dtype is not F32:
        return None
    x, divisor = node.inputs
    rest, constants = [v for v in units if v.tensor is None], [u for u in units if u.tensor]
    divisors = []
    for v in _list_factors(g, divisor):
        if v.tensor is not None:
            divisors.append(v)
        elif v in rest:
            rest.remove(v)
        else:
            return None
    if rest or not all(is_single(v) for v in (*constants, *divisors)):
        return None
    real = _multiply(g, [x, g.Div(_multiply(g, constants), _multiply(g, divisors))])
    for move in reversed(moves):
        real = g.emit(move.op, [real, *move.inputs[1:]], move.attrs)
    return real  # type: ignore[no-any-return]


def _multiply(g: Any, factors: Sequence[Value]) -> Value:
    """The product in float32; constants first, which become one."""
    ordered = sorted(factors, key=lambda v: v.tensor is None)
    return reduce(g.Mul, [g.cast(v, F32) for v in ordered] or [g.const(np.float32(1))])  # type: ignore[no-any-return]


def _find_products(g: Any, node: Node) -> IntegerSum | None:
    a, b, a_zero, b_zero = (*node.inputs, None, None)[:4]
    assert a is not None and b is not None
    is_matmul = node.op == "MatMulInteger"
    x = _find_operand(g, a, a_zero, -2 if is_matmul else 0, b.tensor is not None)
    w = _find_operand(g, b, b_zero, -1 if is_matmul else 0, x is not None and x.scale is not None)
    if x is None or w is None:
        return None

    def emit(factor: Value | None) -> Value:
        weights, left = w.real, factor
        if factor is not None and b.tensor is not None:
            scaled = _scale_weights(g, node, b, b_zero, factor)
            weights, left = (w.real, factor) if scaled is None else (scaled, None)
        y = g.emit(PRODUCTS[node.op], [x.real, weights], node.attrs)
        return y if left is None else g.Mul(y, left)  # type: ignore[no-any-return]

    return IntegerSum(tuple(v.scale for v in (x, w) if v.scale is not None), emit)


def _find_operand(
    g: Any, q: Value, zero: Value | None, axis: int, may_be_integers: bool
) -> Operand | None:
    """The real numbers of an operand; those of other integers are the integers themselves."""
    if zero is not None and (zero.shape is None or len(zero.shape) > 1):
        return None
    one = g.const(np.float32(1), name="scale")
    if q.tensor is not None or (is_of_constants(g, q) and (zero is None or is_single(zero))):
        real = find_real(g, q, Quantization(one, zero, axis), F32)
        return None if real is None else Operand(None, real)
    source = find_source(g, q)
    if source is not None:
        scale = source.outputs[1] if len(source.outputs) > 1 else Quantization.of(source).scale
        real = find_real(g, q, Quantization(scale, zero), F32) if is_single(scale) else None
        return None if real is None else Operand(scale, real)
    if not may_be_integers or (zero is not None and zero.shape != ()):
        return None
    real = g.cast(q, F32)
    return Operand(None, real if zero is None else g.Sub(real, g.cast(zero, F32)))


def _scale_weights(
    g: Any, node: Node, w: Value, zero: Value | None, factor: Value
) -> Value | None:  # fmt: skip
    """Constant weights times a factor of all results, or one of each column or filter."""
    y, shape = node.outputs[0], factor.shape
    if factor.tensor is None or shape is None or y.shape is None or len(shape) > len(y.shape):
        return None
    channel = len(y.shape) - 1 if node.op == "MatMulInteger" else 1
    sizes = (*[1] * (len(y.shape) - len(shape)), *shape)
    if any(d != 1 for a, d in enumerate(sizes) if a != channel):
        return None
    axis = -1 if node.op == "MatMulInteger" else 0
    if w.rank < 2 or sizes[channel] not in (1, w.ranked_shape[axis]):
        return None
    form = Quantization(g.Reshape(factor, [-1]), zero, axis)
    tensor = dequantize_constant(w, form, F32)
    return None if tensor is None else g.const(tensor, name=w.name)
