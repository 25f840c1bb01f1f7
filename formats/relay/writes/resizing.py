"""Resize: Relay's operator where it takes the same elements, otherwise weights of its own."""

from __future__ import annotations

import numpy as np

from serde.ir.graph import DType, Value
from serde.version_converter.adapters.resize import every_axis, factors_of, spelled_out
from serde.version_converter.adapters.resize_coordinates import Sampling, coordinates, nearest

from ..ops.resize import nearest_table
from ..target import writes
from .recast import recasts
from .shaping import sizes as known_sizes

LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
NATIVE = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


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
    plain = scales is None and axes is None and keep_aspect_ratio_policy == "stretch"
    if plain and native(x, how, known_sizes(sizes), None):
        return None
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=keep_aspect_ratio_policy, axes=axes
    )
    by_scale = scales is not None and scales.shape != (0,)
    factors = factors_of(x, scales if by_scale else None, sizes)
    made = factors and tuple(m for m, _ in factors)
    if native(x, how, made, factors and [s for _, s in factors]):
        return g.Resize(
            x, None, None, g.const(made, DType.INT64), mode=mode,
            coordinate_transformation_mode=how.coordinates, nearest_mode=nearest_mode,
            cubic_coeff_a=cubic_coeff_a, exclude_outside=exclude_outside,
        )  # fmt: skip
    return spelled_out(g, x, roi, scales if by_scale else None, sizes, how)


def native(x: Value, how: Sampling, made, scales) -> bool:
    """Whether Relay's operator computes the same; ``scales`` None are those of the sizes."""
    if made is None or x.rank - 2 not in LAYOUTS or x.type is not DType.FLOAT32:
        return False
    if not x.is_static or not all(isinstance(m, int) for m in made) or how.antialias:
        return False
    if made[:2] != x.dims[:2] or how.coordinates not in NATIVE:
        return False
    pairs = list(zip(x.dims[2:], made[2:], strict=True))
    if scales is not None and any(m / n != s for (n, m), s in zip(pairs, scales[2:], strict=True)):
        return False
    if how.mode == "nearest":
        return all(_same_elements(n, m, how) for n, m in pairs)
    if how.coordinates == "align_corners" and 1 in made[2:]:
        return False
    return how.mode == "linear" or x.rank == 4


def _same_elements(n: int, m: int, how: Sampling) -> bool:
    """Whether TVM, whose places are of single precision, takes the elements ONNX takes."""
    wanted = nearest(coordinates(n, m, m / n, how.coordinates, (0.0, 1.0)), n, how.nearest_mode)
    table = nearest_table(n, m, how.coordinates, how.nearest_mode, (0.0, 0.0), False)
    repeated = nearest_table(n, m, how.coordinates, how.nearest_mode, (0.0, 0.0), True)
    return np.array_equal(wanted, table) and np.array_equal(wanted, repeated)


@writes("Resize", ignore=("antialias", "keep_aspect_ratio_policy", "extrapolation_value"))
def write_resize(
    r, x, roi, scales, sizes, *, mode: str, coordinate_transformation_mode: str,
    nearest_mode: str, cubic_coeff_a: float, exclude_outside: int,
):  # fmt: skip
    axes = x.rank - 2
    cubic = {"cubic_alpha": cubic_coeff_a, "cubic_exclude": exclude_outside}
    return r[f"image.resize{axes}d"](
        x, size=sizes.ints()[2:], layout=LAYOUTS[axes], method=METHODS[mode],
        roi=(0.0,) * 2 * axes, rounding_method=nearest_mode if mode == "nearest" else "",
        coordinate_transformation_mode=coordinate_transformation_mode,
        **(cubic if mode == "cubic" else {}),
    )  # fmt: skip
