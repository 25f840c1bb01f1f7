"""Random contents of tensors: plain numbers, and the extremes of each element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.ir.graph import DType

TEXTS = ("", "a", "b", "ab", "A b", " ab ", "a,b,c", "1", "-2.5", "Ünï", "a\nb", "ba na na")
PLAIN = (0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, 2.5, -2.5, 3.0, -3.0, 0.25)


def draw(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], extreme: bool) -> Any:
    """An array of a type and shape; ``extreme`` puts the ends of the type in some places."""
    if dtype.kind == "S":
        return rng.choice(np.array(TEXTS, object), shape).astype(object).reshape(shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return draw_integers(rng, dtype, shape, extreme)
    return draw_floats(rng, dtype, shape, extreme)


def draw_integers(
    rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], extreme: bool
) -> Any:
    """Small integers, and the ends of the type."""
    low = 0 if dtype.kind == "u" else -6
    if dtype.bits < 8:
        top = 2 ** (dtype.bits - (dtype.kind == "i"))
        return rng.integers(-top if low else 0, top, shape).astype(dtype.numpy)
    wide = rng.random() < 0.15
    high = min(100, 2 ** (dtype.bits - 2)) if wide else 7
    array = rng.integers(-high if low and wide else low, high, shape).astype(dtype.numpy)
    if extreme and array.size:
        ends = np.iinfo(dtype.numpy)
        pool = np.array([ends.min, ends.max, ends.max - 1, ends.max // 2], dtype.numpy)
        array = np.where(rng.random(shape) < 0.3, rng.choice(pool, shape), array)
    return np.asarray(array.astype(dtype.numpy))


def draw_floats(
    rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], extreme: bool
) -> Any:
    """Normal, small round or positive numbers, and the extremes of the type."""
    kind = rng.random()
    if kind < 0.6:
        array = rng.standard_normal(shape)
    elif kind < 0.8:
        array = rng.choice(PLAIN, shape)
    elif kind < 0.9:
        array = rng.random(shape)
    else:
        array = rng.standard_normal(shape) * 30
    with np.errstate(all="ignore"):
        array = np.asarray(array).astype(dtype.numpy)
        if extreme and array.size:
            pool = extremes(dtype)
            array = np.where(rng.random(shape) < 0.3, rng.choice(pool, shape), array)
        return np.asarray(array.astype(dtype.numpy))


def extremes(dtype: DType) -> Any:
    """NaN, infinities, zeros of both signs, the least and the largest numbers, denormals."""
    import ml_dtypes

    about = ml_dtypes.finfo(dtype.numpy)
    values = [float(v) for v in (about.max, -about.max, about.tiny, about.smallest_subnormal)]
    with np.errstate(all="ignore"):
        return np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, *values]).astype(dtype.numpy)
