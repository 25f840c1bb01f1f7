"""Where Resize looks, and how much each element counts, as ONNX's text defines it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from serde.ir import arrays

Array = np.ndarray[Any, Any]
# How the nearest element is found: what rounds a place, and what is added to it before.
ROUNDING = {
    "round_prefer_floor": ("Ceil", -0.5),
    "round_prefer_ceil": ("Floor", 0.5),
    "floor": ("Floor", 0.0),
    "ceil": ("Ceil", 0.0),
}


class Sampling(NamedTuple):
    """The attributes of Resize that tell how elements are sampled."""

    mode: str
    coordinates: str
    nearest_mode: str
    cubic_coeff_a: float
    exclude_outside: bool
    extrapolation_value: float
    antialias: bool

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> Sampling:
        """Read the attributes, all of them written out but the newest."""
        return cls(
            attrs["mode"],
            attrs["coordinate_transformation_mode"],
            attrs["nearest_mode"],
            attrs["cubic_coeff_a"],
            bool(attrs["exclude_outside"]),
            attrs["extrapolation_value"],
            bool(attrs.get("antialias")),
        )

    def __str__(self) -> str:
        rounded = f", nearest_mode={self.nearest_mode!r}" if self.mode == "nearest" else ""
        return f"mode={self.mode!r}, {self.coordinates!r}{rounded}"


def coordinates(n: int, m: int, scale: float, mode: str, roi: tuple[float, float]) -> Array:
    """Where the ``m`` elements of a resized axis lie on the original one of ``n``.

    In float32, as runtimes have it: a place may lie exactly between two elements. ``scale`` is 0
    where the size was given instead.
    """
    x = arrays.arange(m, dtype=np.float32)
    old, new, one = np.float32(n), np.float32(m), np.float32(1)
    by = np.float32(scale) if scale else new / old
    length = old * by if scale else new
    if mode == "align_corners":
        return x * (old - one) / (length - one) if length != 1 else x * 0
    if mode == "asymmetric":
        return np.asarray(x / by)
    if mode == "tf_crop_and_resize":
        start, end = (np.float32(v) for v in roi)
        if m > 1:
            return start * (old - one) + x * (end - start) * (old - one) / (new - one)
        return np.asarray(x * 0 + np.float32(0.5) * (start + end) * (old - one))
    if mode == "pytorch_half_pixel" and m == 1:
        return x * 0
    if mode == "half_pixel_symmetric":  # the one that ONNX Runtime computes in float64
        centred = (x.astype(np.float64) + 0.5) / np.float64(by) - 0.5
        return np.asarray(old / 2 * (one - new / length) + centred, np.float32)
    half = np.float32(0.5)
    return np.asarray((x + half) / by - half)


def nearest(at: Array, n: int, mode: str) -> Array:
    """The index of the element nearest to each place."""
    rounding, shift = ROUNDING[mode]
    rounded = {"Floor": np.floor, "Ceil": np.ceil}[rounding](at + np.float32(shift))
    return np.asarray(np.clip(rounded, 0, n - 1), np.int64)


def weights(at: Array, n: int, scale: float, how: Sampling) -> Array:
    """How much each of ``n`` elements counts at each place: a row per place."""
    stretch = min(scale, 1.0) if how.antialias else 1.0
    reach = (1 if how.mode == "linear" else 2) / stretch
    rows = arrays.zeros((len(at), n))
    first = int(np.floor(-reach) + 1)
    around = arrays.arange(first, 2 - first)
    arrays.charge_elements(len(at), len(around))
    taps = np.floor(at)[:, None] + around
    share = kernel((taps - at[:, None]) * stretch, how)
    if how.exclude_outside:
        share = np.where((taps >= 0) & (taps < n), share, 0.0)
    if how.exclude_outside or how.antialias:
        with np.errstate(invalid="ignore"):  # where there are none inside, nothing is taken
            share = share / share.sum(axis=1, keepdims=True)
    places = np.arange(len(at))[:, None]
    np.add.at(rows, (places, np.clip(taps, 0, n - 1).astype(int)), share)
    return rows


def kernel(distance: Array, how: Sampling) -> Array:
    """The weight of an element at a distance: a triangle, or Keys' cubic."""
    d, a = np.abs(distance), how.cubic_coeff_a
    if how.mode == "linear":
        return np.asarray(np.clip(1 - d, 0, 1))
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.asarray(np.where(d <= 1, near, np.where(d < 2, far, 0.0)))
