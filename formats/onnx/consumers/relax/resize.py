"""Resize: the importer's where it takes the same elements, otherwise weights of its own."""

from __future__ import annotations

from serde.errors import ConversionError
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.resize import every_axis, factors_of, spelled_out
from serde.version_converter.adapters.resize_coordinates import Sampling

from .target import recasts

LINEAR = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


@recasts("Resize")
def recast_resize(
    g, x, roi=None, scales=None, sizes=None, *, mode: str, coordinate_transformation_mode: str,
    nearest_mode: str, cubic_coeff_a: float, exclude_outside: int, extrapolation_value: float,
    antialias: int, keep_aspect_ratio_policy: str, axes: tuple[int, ...] | None = None,
):  # fmt: skip
    how = Sampling(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside),
        extrapolation_value, bool(antialias),
    )  # fmt: skip
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=keep_aspect_ratio_policy, axes=axes
    )
    scales = scales if scales is not None and scales.shape != (0,) else None
    factors = factors_of(x, scales, sizes)
    if factors is None:
        raise ConversionError("a Resize to a dynamic size")
    if not native(x, how, factors):
        return spelled_out(g, x, roi, scales, sizes, how)
    made = g.const([m for m, _ in factors], DType.INT64)
    form = {"mode": mode, "coordinate_transformation_mode": how.coordinates,
            "nearest_mode": nearest_mode}  # fmt: skip
    return g.as_is("Resize", (x, None, None, made), form)


def native(x: Value, how: Sampling, factors) -> bool:
    """Whether the importer, which knows sizes and no scales, computes the same of an image."""
    if x.rank != 4 or x.type is not DType.FLOAT32 or not x.is_static or how.antialias:
        return False
    exact = all(m == n * s for (m, s), n in zip(factors, x.dims, strict=True))
    if not exact or [m for m, _ in factors[:2]] != list(x.dims[:2]):
        return False
    if how.mode == "nearest":
        whole = all(float(s).is_integer() for _, s in factors)
        return whole and (how.coordinates, how.nearest_mode) == ("asymmetric", "floor")
    made = [m for m, _ in factors[2:]]
    single = how.coordinates != "half_pixel" and 1 in made
    return how.mode == "linear" and how.coordinates in LINEAR and not single
