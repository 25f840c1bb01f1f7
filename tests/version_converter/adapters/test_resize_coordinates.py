"""Where Resize looks and how much elements count, to sizes that are constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.version_converter.adapters.resize_coordinates import (
    Sampling,
    coordinates,
    nearest,
    weights,
)
from testing.version_converter.resizes import IMAGE, RESIZES, TARGETS, find_region
from testing.version_converter.single import STATIC, Single


@pytest.mark.parametrize("attrs", RESIZES, ids=lambda a: "-".join(map(str, a.values())))
def test_resize(attrs: dict[str, Any]) -> None:
    """Every mode, by scales and to sizes in turn."""
    target = TARGETS[RESIZES.index(attrs) % 3]
    operands = (IMAGE, find_region(attrs), *target)
    Single("Resize", operands, attrs, (1, 2, 3), tolerance=1e-4).check((17,), [STATIC])


@pytest.mark.parametrize(("mode", "expected"), [
    ("asymmetric", [0, 0.75, 1.5, 2.25]), ("align_corners", [0, 2 / 3, 4 / 3, 2]),
    ("half_pixel", [-0.125, 0.625, 1.375, 2.125]),
    ("pytorch_half_pixel", [-0.125, 0.625, 1.375, 2.125]),
    ("half_pixel_symmetric", [-0.125, 0.625, 1.375, 2.125]),
    ("tf_crop_and_resize", [0.5, 5 / 6, 7 / 6, 1.5]),
])  # fmt: skip
def test_places_of_four_elements_on_three(mode: str, expected: list[float]) -> None:
    """By the formulas of the standard's text."""
    at = coordinates(3, 4, 0, mode, (0.25, 0.75))
    np.testing.assert_allclose(at, expected, rtol=1e-6)
    assert at.dtype == np.float32


@pytest.mark.parametrize(("mode", "expected"), [
    ("floor", [0, 0, 1, 2]), ("ceil", [0, 1, 2, 2]), ("round_prefer_floor", [0, 0, 1, 2]),
    ("round_prefer_ceil", [0, 1, 2, 2]),
])  # fmt: skip
def test_nearest_elements(mode: str, expected: list[int]) -> None:
    """Of places between two elements, and beyond both ends."""
    assert nearest(np.float32([-0.3, 0.5, 1.5, 2.6]), 3, mode).tolist() == expected


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("is_smooth", [False, True])
@pytest.mark.parametrize("is_inside", [False, True])
def test_weights_of_a_place_sum_to_one(mode: str, is_smooth: bool, is_inside: bool) -> None:
    how = Sampling(mode, "half_pixel", "floor", -0.75, is_inside, 0.0, is_smooth)
    at = coordinates(9, 4, 0, "half_pixel", (0, 1))
    rows = weights(at, 9, 4 / 9, how)
    assert rows.shape == (4, 9)
    np.testing.assert_allclose(rows.sum(1), 1, rtol=1e-6)
    assert ((rows != 0).sum(1) > 4).any() == is_smooth
