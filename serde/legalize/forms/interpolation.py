"""Resizing that PyTorch's interpolation, and that of runtimes made for it, computes alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.ir.graph import DType, Value
from serde.version_converter.adapters.resize_coordinates import Sampling, coordinates, nearest

LONGEST = 1 << 12  # sizes that places are computed for


def interpolates(
    x: Value, how: Sampling, factors: Any, by_size: bool, antialias: bool = False
) -> bool:
    """Whether PyTorch computes the same; where ``antialias``, with that option of it too."""
    ranks = (4,) if how.mode == "cubic" else (3, 4, 5)
    if factors is None or x.type is not DType.FLOAT32 or x.rank not in ranks:
        return False
    if any(s != 1 for _, s in factors[:2]):
        return False
    if how.antialias and how.mode != "nearest":
        is_pillow = how.exclude_outside and how.coordinates == "half_pixel"
        is_usual = how.mode == "linear" or how.cubic_coeff_a == -0.5
        return antialias and is_pillow and is_usual and x.rank == 4
    axes = [(n, m, s) for n, (m, s) in zip(x.ranked_shape, factors, strict=True)][2:]
    if how.mode == "nearest":
        return all(looks_at_same(n, m, s, how, by_size) for n, m, s in axes)
    if how.exclude_outside or (how.mode == "cubic" and how.cubic_coeff_a != -0.75):
        return False
    if how.coordinates == "half_pixel":
        return True
    is_whole = all(isinstance(n, int) and m == n * s for n, m, s in axes)
    is_aligned = how.coordinates in ("align_corners", "pytorch_half_pixel")
    return is_whole and is_aligned and all(m > 1 for _, m, _ in axes)


def looks_at_same(n: Any, m: Any, scale: float, how: Sampling, by_size: bool) -> bool:
    """Whether PyTorch picks the same elements, the product of a place and a step rounded down."""
    if not isinstance(n, int):
        n = LONGEST
        m = int(np.float32(n) * np.float32(scale))
    at = coordinates(n, m, 0.0 if by_size else scale, how.coordinates, (0.0, 1.0))
    step = np.float32(n) / np.float32(m) if by_size else np.float32(1.0 / float(np.float32(scale)))
    pytorch_places = np.minimum(np.floor(np.arange(m, dtype=np.float32) * step), n - 1)
    return how.coordinates != "tf_crop_and_resize" and bool(
        (pytorch_places == nearest(at, n, how.nearest_mode)).all()
    )
