"""RoiAlign at opsets without it, or without its shift by half a pixel."""

from __future__ import annotations

import numpy as np
import pytest

from serde.version_converter.adapters import roi
from testing.version_converter.old import Old, X
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import BY_NAME, Single


@pytest.mark.parametrize(("version", "op"), rules_of(roi))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
def test_regions(mode: str, ratio: int, coordinates: str) -> None:
    """Beyond the image, of no size and the wrong way round too."""
    x = np.random.default_rng(11).standard_normal((2, 3, 9, 10)).astype(np.float32)
    regions = np.float32([[0, 0, 5, 5], [1, 2, 20, 9], [-3, -3, 1, 1], [4, 4, 4, 4], [6, 5, 2, 1]])
    how = {"mode": mode, "sampling_ratio": ratio, "coordinate_transformation_mode": coordinates,
           "output_height": 2, "output_width": 3, "spatial_scale": 0.75}  # fmt: skip
    case = Single("RoiAlign", (x, regions, np.int64([0, 1, 0, 1, 1])), how)
    case.check((8, 15), [BY_NAME])


def test_old_form() -> None:
    """Before opset 16 there was no shift."""
    how = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    Old("RoiAlign", 10, (X, np.float32([[0, 0, 3, 3]]), np.int64([1])), how).check()
