"""Images of other sizes, by kernels that look at the same places."""

from __future__ import annotations

import numpy as np

from serde.errors import UnsupportedOp
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.resize import decompose_resize, every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling, coordinates, nearest

from ..resize_places import LONGEST, nearest_places, places
from ..target import TfliteBuilder, legalizations, writes

KERNELS = {"linear": "RESIZE_BILINEAR", "nearest": "RESIZE_NEAREST_NEIGHBOR"}
FLAGS = ("half_pixel_centers", "align_corners", None)
NEAR = 1e-5  # of an axis that places are off
Axis = tuple[int, int, float]  # the sizes before and behind, and the scale; 0 if it is not given


@legalizations("Resize")
def legalize_resize(
    g, x: Value, roi=None, scales=None, sizes=None, *, keep_aspect_ratio_policy: str,
    axes: Ints | None = None, **sampling,
):  # fmt: skip
    """Kernels resize two axes of an image, at three kinds of places."""
    how = Sampling.of(sampling)
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=keep_aspect_ratio_policy, axes=axes
    )
    if (scales is not None and sizes is not None) or find_kernel(x, scales, sizes, how) is None:
        return decompose_resize(g, x, roi, scales, sizes, how)
    return g.as_is("Resize", (x, None, scales, sizes), sampling)


@writes("Resize", ignore=("keep_aspect_ratio_policy",))
def write_resize(t: TfliteBuilder, x: Value, roi=None, scales=None, sizes=None, **sampling):
    """Only what ``find_kernel`` has found a kernel for is left."""
    how = Sampling.of(sampling)
    kernel = find_kernel(x, scales, sizes, how)
    if kernel is None:
        raise UnsupportedOp(f"{how}, which no kernel computes. Give static sizes (--static)")
    flag, lengths = kernel
    shape = (x.ranked_shape[0], *lengths, x.ranked_shape[1])
    options = {} if flag is None else {flag: True}
    operands = [t.last(x), t.ints(lengths)]
    return t.first(t.make(KERNELS[how.mode], operands, x.dtype, shape, **options))


def find_kernel(x: Value, scales, sizes, how: Sampling) -> tuple[str | None, list[int]] | None:
    """The flag of the kernel that looks at the same places, and the new size; None if none does."""
    is_linear = how.mode == "linear"
    if x.rank != 4 or how.mode not in KERNELS or (is_linear and x.dtype is not DType.FLOAT32):
        return None
    if how.antialias or how.exclude_outside or how.coordinates == "tf_crop_and_resize":
        return None
    factors = static_scales(x, scales, sizes)
    if factors is None or any(scale != 1 for _, scale in factors[:2]):
        return None
    by_scale = scales is not None and scales.shape != (0,)
    lengths = [m for m, _ in factors[2:]]
    if not all(isinstance(n, int) and n <= LONGEST for n in (*x.ranked_shape[2:], *lengths)):
        return None
    pairs = zip(x.ranked_shape[2:], factors[2:], strict=True)
    images: list[Axis] = [(n, m, s if by_scale else 0.0) for n, (m, s) in pairs]  # type: ignore[misc]
    flags = [flag for flag in FLAGS if all(_agrees(axis, how, flag) for axis in images)]
    return (flags[0], lengths) if flags else None  # type: ignore[return-value]


def _agrees(axis: Axis, how: Sampling, flag: str | None) -> bool:
    """Whether a kernel looks where a Resize does, along an axis."""
    n, m, scale = axis
    at = coordinates(n, m, scale, how.coordinates, (0.0, 1.0))
    flags = (flag == "align_corners", flag == "half_pixel_centers")
    if how.mode == "nearest":
        return np.array_equal(nearest(at, n, how.nearest_mode), nearest_places(n, m, *flags))
    return np.allclose(np.clip(at, 0, n - 1), np.clip(places(n, m, *flags), 0, n - 1), NEAR, NEAR)
