"""Resize: MXNet repeats pixels of images; else each axis by a matrix, or gathered."""

from __future__ import annotations

from serde.ir.geometry import Ints
from serde.version_converter.adapters.resize import REPEATING, every_axis, spelled_out
from serde.version_converter.adapters.resize_coordinates import Sampling

from ..target import writes
from .spelling import spells


@spells("Resize")
def spell_resize(
    g, x, roi=None, scales=None, sizes=None, *, axes: Ints | None = None, antialias,
    coordinate_transformation_mode, cubic_coeff_a, exclude_outside, extrapolation_value,
    keep_aspect_ratio_policy, mode, nearest_mode,
):  # fmt: skip
    how = Sampling.of({
        "antialias": antialias, "mode": mode, "nearest_mode": nearest_mode,
        "coordinate_transformation_mode": coordinate_transformation_mode,
        "cubic_coeff_a": cubic_coeff_a, "exclude_outside": exclude_outside,
        "extrapolation_value": extrapolation_value,
    })  # fmt: skip
    if is_native(x, scales, how) and axes is None:
        return None
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=keep_aspect_ratio_policy, axes=axes
    )
    if is_native(x, scales, how):
        return g.Resize(x, None, scales, mode="nearest", nearest_mode="round_prefer_floor")
    return spelled_out(g, x, roi, scales, sizes, how)


def is_native(x, scales, how: Sampling) -> bool:
    """Whether images of floats grow by one integer, each pixel repeated."""
    if x.rank != 4 or scales is None or scales.tensor is None or x.type.kind != "f":
        return False
    n, c, *factors = scales.array().tolist()
    whole = n == c == 1 and len(set(factors)) == 1 and factors[0] == int(factors[0]) >= 1
    return how.mode == "nearest" and whole and (how.coordinates, how.nearest_mode) in REPEATING


@writes("Resize", ignore=(
    "antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
    "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode",
))  # fmt: skip
def write_resize(s, x, roi, scales):
    """Only what ``is_native`` describes is left."""
    return s.UpSampling(x, scale=int(scales.array()[2]), sample_type="nearest", num_args=1)
