"""Bounds of an integer tensor's elements by the operators that compute it, and narrower types.

Canonical quantized Relay computes in int16 and int32 what fits uint8 but for a zero point: the
difference of a cast and a constant. Products of such operands are those of uint8.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serde.ir.graph import DType, Node, Value
from serde.spec.traits import ARRANGES

Range = tuple[int, int]  # the least and the largest element

MOST_NODES = 16  # that are followed from a value back
UINT8_MOST = 255
INT32_MOST = 2**31 - 1
FLOAT32_EXACT = 1 << 24  # up to here a float32 counts exactly


def integer_range(g, x: Value) -> Range:
    """The least and the largest element that ``x``, of integers or booleans, can have."""
    return _range(g, x, MOST_NODES, {})


def _range(g, x: Value, depth: int, ranges: dict[Value, Range]) -> Range:
    """``ranges`` has those of values that were met before."""
    if x not in ranges:
        ranges[x] = _range_of_value(g, x, depth, ranges)
    return ranges[x]


def _range_of_value(g, x: Value, depth: int, ranges: dict[Value, Range]) -> Range:
    if x.tensor is not None and x.tensor.size:
        elements = x.array()
        return int(elements.min()), int(elements.max())
    limits = dtype_range(x.type)
    node = g.producer(x) if depth else None
    if node is None or node.domain:
        return limits
    low, high = _range_of_node(node, limits, lambda v: _range(g, v, depth - 1, ranges))
    wraps = low < limits[0] or high > limits[1]
    return limits if wraps else (low, high)


def dtype_range(dtype: DType) -> Range:
    """The limits of a type of integers or booleans."""
    if dtype is DType.BOOL:
        return 0, 1
    if dtype.kind == "u":
        return 0, (1 << dtype.bits) - 1
    return -(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1


def abs_max(g, x: Value) -> int:
    """The largest absolute value that an element of ``x`` can have."""
    low, high = integer_range(g, x)
    return max(-low, high)


def _range_of_node(node: Node, limits: Range, range_of: Callable[[Value], Range]) -> Range:
    op, x = node.op, node.inputs[0]
    if x is None or x.type.kind not in "iub":
        return limits
    if op == "Cast" or op in ARRANGES:
        return range_of(x)
    if op == "Pad" and node.attrs.get("mode", "constant") != "constant":
        return range_of(x)
    if op in ("Concat", "Pad"):
        others = node.inputs[1:] if op == "Concat" else node.inputs[2:3]
        ranges = [range_of(v) for v in (x, *others) if v is not None]
        missing = [(0, 0)] if op == "Pad" and len(ranges) == 1 else []
        lows, highs = zip(*ranges, *missing, strict=True)
        return min(lows), max(highs)
    if op in ("Add", "Sub", "Max", "Min") and len(node.inputs) == 2 and node.inputs[1] is not None:
        (low, high), (least, most) = (range_of(v) for v in (x, node.inputs[1]))
        if op == "Add":
            return low + least, high + most
        if op == "Sub":
            return low - most, high - least
        pick = max if op == "Max" else min
        return pick(low, least), pick(high, most)
    return limits


def find_zero_point(g, x: Value) -> int | None:
    """The number ``z`` in 0..255 for which all of ``x + z`` fits uint8; None if there is none.

    128 is taken for what fits int8, 0 for what fits uint8.
    """
    low, high = integer_range(g, x)
    if low >= 0:
        return 0 if high <= UINT8_MOST else None
    if low >= -128 and high < 128:
        return 128
    return -low if high - low <= UINT8_MOST and -low <= UINT8_MOST else None


def as_bytes(g, *operands: Value) -> list[Value] | None:
    """Operands of ConvInteger or MatMulInteger for integers: as uint8, and then their zero points.

    None where uint8 do not hold an operand. ONNX Runtime sums products of uint8 exactly on every
    processor, others with saturation on old ones.
    """
    zeros = [find_zero_point(g, v) for v in operands]
    parts = [as_uint8(g, v, z) for v, z in zip(operands, zeros, strict=True) if z is not None]
    if len(parts) < len(operands):
        return None
    return [*parts, *(g.const(zero, DType.UINT8) for zero in zeros)]


def as_uint8(g, x: Value, zero: int) -> Value:
    """``x + zero`` as uint8, where that holds it: of the integers that ``x`` was computed from."""
    if x.type is DType.UINT8 and zero == 0:
        return x
    node = g.producer(x)
    source = node.inputs[0] if node is not None and not node.domain else None
    if node is not None and source is not None and source.type.kind in "iu":
        if node.op == "Transpose":
            return g.Transpose(as_uint8(g, source, zero), perm=node.attrs["perm"])
        if node.op == "Cast" and _holds(x.type, integer_range(g, source)):
            return as_uint8(g, source, zero)
        number = _scalar(node) if node.op in ("Add", "Sub") else None
        if number is not None:
            number = -number if node.op == "Sub" else number
            low, high = integer_range(g, source)
            if _holds(x.type, (low + number, high + number)):
                return as_uint8(g, source, zero + number)
    shifted = g.Add(g.cast(x, DType.INT32), np.int32(zero)) if zero else x
    return g.cast(shifted, DType.UINT8)


def _holds(dtype: DType, bounds: Range) -> bool:
    low, high = dtype_range(dtype)
    return low <= bounds[0] and bounds[1] <= high


def _scalar(node: Node) -> int | None:
    """The second operand, if it is one constant number and the result has the first's shape."""
    x, number = node.inputs[:2]
    if x is None or number is None or number.tensor is None or number.tensor.size != 1:
        return None
    return int(number.array().item()) if number.rank <= x.rank else None
