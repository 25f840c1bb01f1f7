"""Unsigned integers, which PyTorch stores and does not compute with, as those of 64 bits."""

from __future__ import annotations

from serde.ir.graph import DType, Value
from serde.spec.traits import COMPARISONS

from ..target import TYPES, legalizations

BITWISE = ("And", "Not", "Or", "Xor")
RING = ("Add", "Equal", "Mul", "Sub", *(f"Bitwise{name}" for name in BITWISE))
ORDERED = (*(COMPARISONS - {"Equal"}), "Max", "Min")
LOWEST = -(1 << 63)


@legalizations.for_each({op: op for op in RING})
def legalize_ring(op: str, g, *values: Value):
    """Modulo 2^64 the bits are those of signed integers."""
    if values[0].type in TYPES:
        return None
    y = g[op](*(g.cast(v, DType.INT64) for v in values))
    return y if op == "Equal" else g.cast_like(y, values[0])


@legalizations.for_each({op: op for op in ORDERED})
def legalize_ordered(op: str, g, *values: Value):
    """Without the half of the range, the order of the bits is that of signed integers."""
    if values[0].type is not DType.UINT64:
        return None
    y = g[op](*(swap_halves(g, v) for v in values))
    return y if y.type is DType.BOOL else restore_halves(g, y)


def swap_halves(g, x: Value) -> Value:
    """Signed integers in the order of unsigned ones of 64 bits."""
    return g.Sub(g.cast(x, DType.INT64), g.const(LOWEST, DType.INT64))


def restore_halves(g, x: Value) -> Value:
    return g.cast(g.Sub(x, g.const(LOWEST, DType.INT64)), DType.UINT64)


@legalizations("Slice")
def legalize_slice(g, x: Value, starts: Value, ends: Value, axes: Value | None = None,
                   steps: Value | None = None):  # fmt: skip
    """PyTorch turns no unsigned elements around, which a slice backwards does."""
    is_forward = steps is None or (steps.tensor is not None and (steps.array() > 0).all())
    if x.type in TYPES or is_forward:
        return None
    return g.cast_like(g.Slice(g.cast(x, DType.INT64), starts, ends, axes, steps), x)


@legalizations("TopK")
def legalize_top_k(g, x: Value, k: Value, *, outputs: int = 2, **form: int):
    if x.type is not DType.UINT64:
        return None
    y, indices = g.TopK(swap_halves(g, x), k, outputs=2, **form)
    return (restore_halves(g, y), indices)[:outputs]


@legalizations("BitShift")
def legalize_shift(g, x: Value, y: Value, *, direction: str):
    """To the right the first place clears the sign of uint64, which would fill in others."""
    if x.type in TYPES:
        return None
    bits, places = (g.cast(v, DType.INT64) for v in (x, y))
    if x.type is DType.UINT64 and direction == "RIGHT":
        half = g.BitwiseAnd(g.BitShift(bits, 1, direction=direction), g.const(~LOWEST))
        less = g.BitShift(half, g.Max(g.Sub(places, 1), 0), direction=direction)
        return g.cast_like(g.Where(g.Equal(places, 0), bits, less), x)
    return g.cast_like(g.BitShift(bits, places, direction=direction), x)
