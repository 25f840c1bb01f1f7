"""Where LiteRT's kernels look for the pixels of a resized image, in float32 as they do."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LONGEST = 1 << 14  # an axis whose places are looked at one by one


def places(old: int, new: int, align_corners: bool, half_pixel: bool) -> Array:
    """Where the pixels lie that are mixed."""
    half = np.float32(0.5 if half_pixel else 0)
    at = (np.arange(new, dtype=np.float32) + half) * find_step(old, new, align_corners) - half
    return np.asarray(at)


def nearest_places(old: int, new: int, align_corners: bool, half_pixel: bool) -> Array:
    """The pixels that are taken."""
    at = np.arange(new, dtype=np.float32) + np.float32(0.5 if half_pixel else 0)
    at = at * find_step(old, new, align_corners) + np.float32(0.5 if align_corners else 0)
    return np.asarray(np.clip(np.floor(at), 0, old - 1), np.int64)


def find_step(old: int, new: int, align_corners: bool) -> np.float32:
    """How far two pixels are from each other."""
    is_aligned = align_corners and new > 1
    step: np.float32 = np.float32(old - is_aligned) / np.float32(new - is_aligned)
    return step
