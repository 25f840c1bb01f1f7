"""Fixed-point arithmetic as TVM's quantisation does it: exact, in integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value

from ..rules import reads
from .unary import round_half_away

BITS = 31  # fractional bits of a multiplier


def split_factor(factor: float) -> tuple[int, int]:
    """A factor as ``multiplier / 2**31 * 2**shift``, as TVM's GetFixedPointMultiplierShift."""
    if factor == 0:
        return 0, 0
    significand, exponent = math.frexp(factor)
    scaled = significand * (1 << BITS)
    multiplier = int(math.floor(abs(scaled) + 0.5) * math.copysign(1, scaled))
    if multiplier == 1 << BITS:
        multiplier, exponent = multiplier // 2, exponent + 1
    return multiplier, exponent


def shift_right(g, x: Value, divisor):
    """``x`` divided by a power of two and rounded down, as shifting its bits does."""
    return g.Div(g.Sub(x, g.Mod(x, divisor)), divisor)


def multiply_fixed_point(
    g, x: Value, multiplier: np.ndarray, shift: np.ndarray, nearest: bool = False
):
    """``x`` times fixed-point numbers, rounded half up, or with ``nearest`` half away from zero."""
    left = np.int64(1) << np.maximum(shift, 0).astype(np.int64)
    total = BITS + np.maximum(-shift, 0)
    require(np.all(total < 62), "a factor below 2 to the minus 30")
    half = np.int64(1) << (total - 1).astype(np.int64)
    product = g.Mul(g.Mul(g.cast(x, DType.INT64), left), multiplier.astype(np.int64))
    if nearest:
        half_of = g.Where(
            g.Less(product, g.const(0, DType.INT64)), g.const(half - 1), g.const(half)
        )
    else:
        half_of = g.const(half)
    divisor = g.const(np.int64(1) << total.astype(np.int64))
    return shift_right(g, g.Add(product, half_of), divisor)


def multiply_by(g, x: Value, factor: float):
    """``x`` times a number, rounded half up."""
    multiplier, shift = split_factor(factor)
    return g.cast(multiply_fixed_point(g, x, np.int64(multiplier), np.int64(shift)), DType.INT32)


@reads("fixed_point_multiply")
def read_fixed_point_multiply(g, x, *, multiplier: int, shift: int):
    return g.cast(multiply_fixed_point(g, x, np.int64(multiplier), np.int64(shift)), x.type)


@reads("fixed_point_multiply_per_axis", ignore=("is_rshift_required",))
def read_fixed_point_multiply_per_axis(
    g, x, multiplier, left, right, *, axes: tuple[int, ...], is_lshift_required=False
):
    numbers, shift = align_factors(x, (multiplier, left, right), axes, is_lshift_required)
    return g.cast(multiply_fixed_point(g, x, numbers, shift), x.type)


def align_factors(
    x: Value, quantities: Sequence[Value], axes: tuple[int, ...], has_left: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers along one axis, and by how many bits to shift to the left.

    TVM shifts to the right where ``is_rshift_required`` is false too.
    """
    require(len(axes) == 1, f"axes={axes}")
    shape = [-1 if a == axes[0] % x.rank else 1 for a in range(x.rank)]
    arrays = require_arrays(quantities)
    numbers, up, down = (v.reshape(shape).astype(np.int64) for v in arrays)
    return numbers, up * has_left - down


def saturate(g, x: Value, dtype: DType):
    """``x`` within the range of ``dtype``, as it."""
    if dtype.bits >= x.type.bits and x.type.kind != "f":
        return g.cast(x, dtype)
    limits = np.iinfo(dtype.numpy)
    low, high = (g.const(v, x.type) for v in (limits.min, limits.max))
    return g.cast(g.Min(g.Max(x, low), high), dtype)


def require_arrays(quantities: Sequence[Value]) -> list[np.ndarray]:
    """Scales and zero points, which have to be known."""
    known = all(v.tensor is not None for v in quantities)
    require(known, "a scale or zero point is computed by the model")
    return [v.array() for v in quantities]


def require_scalars(quantities: Sequence[Value]) -> list[np.ndarray]:
    """Scales and zero points of whole tensors, without axes."""
    return [array.reshape(()) for array in require_arrays(quantities)]


def align_to_axis(array: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """Numbers along one axis of a tensor of ``rank``; one number stays one."""
    if array.size == 1:
        return array.reshape(())
    return array.reshape([-1 if a == axis % rank else 1 for a in range(rank)])


def requantize(
    g, x: Value, in_scale: np.ndarray, in_zero: np.ndarray, out_scale: np.ndarray,
    out_zero: np.ndarray, axis: int = -1, rounding: str = "UPWARD", compute: str = "int64",
):  # fmt: skip
    """What ``x`` is at another scale and zero point, as int32, not yet within its range."""
    require(rounding in ("UPWARD", "TONEAREST"), f"rounding={rounding!r} is unknown")
    one, two = (align_to_axis(v, axis, x.rank) for v in (in_scale, out_scale))
    before, after = align_to_axis(in_zero, axis, x.rank), align_to_axis(out_zero, axis, x.rank)
    if compute != "int64":
        return requantize_in_float(g, x, one, before, two, after, rounding, compute)
    y = g.cast(x, DType.INT32)
    y = g.Sub(y, before.astype(np.int32)) if before.any() else y
    if not (one.shape == () and two.shape == () and one == two):
        factors = one.astype(np.float64) / two.astype(np.float64)
        pairs = [split_factor(float(f)) for f in factors.ravel()]
        multiplier, shift = (
            np.array([p[i] for p in pairs], np.int64).reshape(factors.shape) for i in (0, 1)
        )
        y = g.cast(
            multiply_fixed_point(g, y, multiplier, shift, rounding == "TONEAREST"), DType.INT32
        )
    return g.Add(y, after.astype(np.int32)) if after.any() else y


def requantize_in_float(g, x: Value, one, before, two, after, rounding: str, compute: str):
    kind = DType.of(compute)
    y = g.cast(x, kind)
    y = g.Sub(y, before.astype(kind.numpy)) if before.any() else y
    if not np.array_equal(one, two):
        y = g.Mul(y, np.asarray(one.astype(np.float64) / two).astype(kind.numpy))
    y = g.Add(y, after.astype(kind.numpy)) if after.any() else y
    return g.cast(round_half(g, y, rounding == "TONEAREST"), DType.INT32)


def round_half(g, x: Value, nearest: bool):
    """The integers next to floats: halves up, or with ``nearest`` away from zero."""
    return round_half_away(g, x) if nearest else g.Floor(g.Add(x, 0.5))
