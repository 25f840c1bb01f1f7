"""All that Resize can be asked for: modes, coordinates, what is outside, and to what size."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

MODES = ("nearest", "linear", "cubic")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
               "half_pixel_symmetric", "tf_crop_and_resize")  # fmt: skip
NEAREST = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
# Scales or sizes of an image of 5 by 6.
TARGETS = [(np.float32([1, 1, 0.6, 1.5]), None), (None, np.int64([1, 2, 3, 11])),
           (None, np.int64([1, 2, 1, 7]))]  # fmt: skip
IMAGE = np.random.default_rng(5).standard_normal((1, 2, 5, 6)).astype(np.float32)


def find_region(attrs: dict[str, Any]) -> np.ndarray | None:
    """The operand that names a region, of what crops to one."""
    is_cropped = attrs["coordinate_transformation_mode"] == "tf_crop_and_resize"
    return np.float32([0, 0, 0.1, -0.3, 1, 1, 0.8, 1.2]) if is_cropped else None


def list_attributes() -> list[dict[str, Any]]:
    """The attributes that go together."""
    options = []
    for mode, how, smooth, outside in product(MODES, COORDINATES, (0, 1), (0, 1)):
        odd = (mode == "nearest" and smooth) or (outside and mode != "cubic")
        if odd or (smooth and how not in COORDINATES[:3:2]):
            continue
        options += [
            {"mode": mode, "coordinate_transformation_mode": how, "antialias": smooth,
             "exclude_outside": outside, "nearest_mode": nearest, "extrapolation_value": 9.5}
            for nearest in (NEAREST if mode == "nearest" and how == "half_pixel" else NEAREST[:1])
        ]  # fmt: skip
    return options


RESIZES = list_attributes()
