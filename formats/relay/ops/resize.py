"""Resizing: ONNX's Resize where it takes the same elements, otherwise tables of them.

Where a position falls between elements is arithmetic of float32 in TVM, with small numbers
added before rounding. Sizes being known, the elements TVM takes are computed here, and those
Resize would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import BYTES, DType, Value
from serde.spec.expressions import Size
from serde.version_converter.adapters.resize import decompose_resize, every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling, coordinates
from serde.version_converter.adapters.resize_coordinates import nearest as nearest_index

from ..rules import Floats, reads
from ..target import legalizations, writes
from .convolution import LAYOUTS, spatial
from .fixed_point import saturate
from .layouts import pack_layout, require_static_sizes, unpack_layout
from .shape import static_sizes as known_sizes
from .unary import round_half_away

NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize")
METHODS = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}
F = np.float32
RELAY_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
NATIVE = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


def positions(size: int, count: int, mode: str, roi: tuple[float, float]) -> Any:
    """Where each of ``count`` results lies among ``size`` elements, as TVM computes it."""
    x, scale = arrays.arange(count, dtype=F), F(size) / F(count)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and count > 1):
        return (x + F(0.5)) * scale - F(0.5)
    if mode == "pytorch_half_pixel":
        return arrays.zeros(count, F)
    if mode == "align_corners":
        return F(size - 1) / F(count - 1) * x if count > 1 else arrays.zeros(count, F)
    if mode == "asymmetric":
        return scale * x
    if mode == "tf_half_pixel_for_nn":
        return (x + F(0.5)) * scale
    require(mode == "tf_crop_and_resize", f"coordinate_transformation_mode={mode!r} is unknown")
    start, end = F(roi[0]), F(roi[1])
    if count > 1:
        return start * F(size - 1) + x * (end - start) * F(size - 1) / F(count - 1)
    return arrays.full(count, F(0.5) * (start + end) * F(size - 1), F)


def nearest(at: np.ndarray, rounding: str) -> Any:
    """The element nearest to each position, as TVM rounds."""
    if rounding == "round":
        at = np.sign(at) * np.floor(np.abs(at) + F(0.5))
    elif rounding == "round_prefer_floor":
        at = np.ceil(at - F(0.5))
    elif rounding == "round_prefer_ceil":
        at = np.floor(at + F(0.5))
    elif rounding == "floor":
        at = np.floor(at + F(1e-5))
    else:
        require(rounding == "ceil", f"rounding_method={rounding!r} is unknown")
        at = np.ceil(at - F(1e-5))
    return at.astype(np.int64)


def nearest_table(size, count, mode, rounding, roi, exact: bool) -> Any:
    """The element taken for each result; ``exact`` divides where sizes are multiples."""
    if exact and mode == "asymmetric" and count % size == 0:
        return arrays.arange(count) // (count // size)
    if rounding == "":
        rounding = "round" if mode == "align_corners" else "floor"
    return np.clip(nearest(positions(size, count, mode, roi), rounding), 0, size - 1)


def onnx_table(size: int, count: int, mode: str, rounding: str) -> Any:
    """What ONNX Runtime's Resize takes."""
    return nearest_index(coordinates(size, count, 0.0, mode, (0.0, 1.0)), size, rounding)


def resize_to(
    g, x: Value, sizes, method: str, mode: str, rounding: str = "", alpha: float = -0.5,
    exclude: bool = False, roi: Floats = (), fill: float = 0.0, dtype: DType | None = None,
):  # fmt: skip
    """``x``, channels first, with its spatial axes at ``sizes``, as ``dtype``."""
    require(method in METHODS, f"method={method!r} is unknown")
    count = x.rank - 2
    roi = roi or (0.0,) * 2 * count
    if method == "nearest_neighbor":
        return g.cast(resize_nearest(g, x, sizes, mode, rounding, roi, fill), dtype or x.type)
    work = g.cast(x, DType.FLOAT32)
    plain = mode in MODES and (method == "linear" or count == 2)
    is_rounded = method == "linear" and x.type.kind in "iu" and are_known(x, sizes)
    if not plain or is_rounded or (mode == "align_corners" and 1 in sizes):
        y = resize_by_tables(g, work, sizes, method, mode, alpha, exclude, roi, fill)
        return from_float(g, y, dtype or x.type)
    shape = shape_of(g, x, sizes)
    window = None
    if mode == "tf_crop_and_resize":
        window = np.array([0, 0, *roi[:count], 1, 1, *roi[count:]], F)
    y = g.Resize(
        work, window, None, shape, mode=METHODS[method], coordinate_transformation_mode=mode,
        cubic_coeff_a=alpha, exclude_outside=int(exclude and method == "cubic"),
        extrapolation_value=fill,
    )  # fmt: skip
    return from_float(g, y, dtype or x.type)


def are_known(x: Value, sizes: Sequence[Size]) -> bool:
    """Whether the spatial sizes of an operand and of a result are numbers."""
    return all(isinstance(d, int) for d in (*x.ranked_shape[2:], *sizes))


def from_float(g, y: Value, dtype: DType):
    """``y`` as ``dtype``; TVM keeps to the range of bytes, which cubic curves leave."""
    return saturate(g, y, dtype) if dtype in BYTES else g.cast(y, dtype)


def resize_exactly(g, y: Value):
    """``y``, which is going to be rounded: a linear Resize anew, to the last digit as TVM's."""
    node = g.maker(y, "Resize", "Transpose")
    if node is not None and node.op == "Transpose":
        x = resize_exactly(g, node.inputs[0])
        return y if x is node.inputs[0] else g.Transpose(x, perm=node.attrs["perm"])
    if node is None or node.attrs["mode"] != "linear":
        return y
    x, mode, sizes = node.inputs[0], node.attrs["coordinate_transformation_mode"], y.ranked_shape
    if mode not in NATIVE or not are_known(x, sizes[2:]):
        return y
    roi = (0.0,) * 2 * (x.rank - 2)
    return resize_by_tables(g, x, sizes[2:], "linear", mode, 0.0, False, roi, 0.0)


def resize_nearest(g, x: Value, sizes, mode: str, rounding: str, roi: Floats, fill: float):
    """Nearest elements: Resize with whichever rounding takes TVM's, or Gather along each axis."""
    dims, count = x.ranked_shape[2:], x.rank - 2
    if not all(isinstance(d, int) for d in (*dims, *sizes)):
        for i, n in enumerate(sizes):
            x = g.Gather(x, computed_table(g, g.size_of(x, 2 + i), n, mode, rounding), axis=2 + i)
        return x
    tables = [
        nearest_table(d, n, mode, rounding, (roi[i], roi[count + i]), count == 2)
        for i, (d, n) in enumerate(zip(dims, sizes, strict=True))
    ]
    for name in NEAREST if mode in MODES[:4] else ():
        same = (onnx_table(d, n, mode, name) for d, n in zip(dims, sizes, strict=True))
        if all(np.array_equal(a, b) for a, b in zip(same, tables, strict=True)):
            return emit_resize(g, x, sizes, mode, name)
    for i, table in enumerate(tables):
        x = g.Gather(x, g.const(table), axis=2 + i)
    return fill_outside(g, x, dims, sizes, mode, roi, fill)


def emit_resize(g, x: Value, sizes, mode: str, rounding: str):
    return g.Resize(
        x, None, None, shape_of(g, x, sizes), mode="nearest", coordinate_transformation_mode=mode,
        nearest_mode=rounding,
    )  # fmt: skip


def shape_of(g, x: Value, sizes: Sequence[Size]):
    """The shape of ``x`` with other spatial sizes."""
    if all(isinstance(s, int) for s in sizes):
        return g.Concat(g.Shape(x, start=0, end=2), list(sizes), axis=0)
    return g.shape_from([g.size_of(x, 0), g.size_of(x, 1), *sizes])


def computed_table(g, size: Size, count: Size, mode: str, rounding: str):
    """``nearest_table`` for a dynamic size."""
    require(mode in (*MODES[:4], "tf_half_pixel_for_nn"), f"{mode} of an input of unknown size")
    n, m = (
        g.const(F(s)) if isinstance(s, int) else g.cast(s, DType.FLOAT32) for s in (size, count)
    )
    x, scale = g.cast(g.index_range(count), DType.FLOAT32), g.Div(n, m)
    if mode == "align_corners":
        at = g.Mul(g.Div(g.Sub(n, 1.0), g.Max(g.Sub(m, 1.0), 1.0)), x)
    elif mode == "asymmetric":
        at = g.Mul(scale, x)
    else:
        at = g.Mul(g.Add(x, 0.5), scale)
        at = at if mode == "tf_half_pixel_for_nn" else g.Sub(at, 0.5)
    if mode == "pytorch_half_pixel":
        at = g.Where(g.Equal(m, 1.0), 0.0, at)
    if rounding == "":
        rounding = "round" if mode == "align_corners" else "floor"
    at = g.Min(g.Max(round_positions(g, at, rounding), 0.0), g.Sub(n, 1.0))
    return g.cast(at, DType.INT64)


def round_positions(g, at: Value, rounding: str):
    """``nearest`` for a dynamic size."""
    if rounding == "round":
        return round_half_away(g, at)
    if rounding == "round_prefer_floor":
        return g.Ceil(g.Sub(at, 0.5))
    if rounding == "round_prefer_ceil":
        return g.Floor(g.Add(at, 0.5))
    require(rounding in ("floor", "ceil"), f"rounding_method={rounding!r} is unknown")
    return g.Floor(g.Add(at, 1e-5)) if rounding == "floor" else g.Ceil(g.Sub(at, 1e-5))


def weights(at: np.ndarray, size: int, method: str, alpha: float, exclude: bool):
    """The elements around each position, and how much of each is taken."""
    floor = np.floor(at)
    t = (at - floor).astype(np.float64)
    if method == "linear":
        taps, parts = [0, 1], [1 - t, t]
    else:
        t2, t3 = t * t, t * t * t
        taps = [-1, 0, 1, 2]
        parts = [
            alpha * (t3 - 2 * t2 + t),
            (alpha + 2) * t3 - (3 + alpha) * t2 + 1,
            -(alpha + 2) * t3 + (3 + 2 * alpha) * t2 - alpha * t,
            -alpha * t3 + alpha * t2,
        ]
    index = floor.astype(np.int64)[:, None] + np.array(taps)
    share = np.stack(parts, 1)
    if exclude and method == "cubic":
        share = np.where((index < 0) | (index >= size), 0, share)
        share = share / share.sum(1, keepdims=True)
    return np.clip(index, 0, size - 1), share.astype(F)


def resize_by_tables(g, x: Value, sizes, method, mode, alpha, exclude, roi, fill):
    """One axis after the other, the last one first: elements are gathered, weighted and summed."""
    count, dims = x.rank - 2, require_static_sizes(x)
    require(all(isinstance(n, int) for n in sizes), "a result of unknown size")
    require(not (exclude and count == 3), "cubic_exclude in three dimensions")
    y = x
    for i, (d, n) in reversed([*enumerate(zip(dims, sizes, strict=True))]):
        at = positions(d, n, mode, (roi[i], roi[count + i]))
        index, share = weights(at, d, method, alpha, exclude)
        samples = g.Gather(y, g.const(index), axis=2 + i)
        shape = (*share.shape, *(1,) * (count - i - 1))
        y = g.ReduceSum(g.Mul(samples, g.const(share.reshape(shape))), [3 + i], keepdims=0)
    return fill_outside(g, y, dims, sizes, mode, roi, fill)


def fill_outside(g, y: Value, dims, sizes, mode: str, roi: Floats, fill: float):
    """With ``tf_crop_and_resize``, what lies outside the input is ``fill``."""
    if mode != "tf_crop_and_resize":
        return y
    count = len(sizes)
    for i, (d, n) in enumerate(zip(dims, sizes, strict=True)):
        at = positions(d, n, mode, (roi[i], roi[count + i]))
        outside = ((at < 0) | (at > d - 1)).reshape(-1, *(1,) * (count - i - 1))
        if outside.any():
            y = g.Where(g.const(outside), g.const(fill, y.type), y)
    return y


@reads.for_each({f"image.resize{n}d": n for n in (1, 2, 3)})
def read_resize(
    count, g, x, *, size: tuple[int, ...], roi: Floats = (), layout: str | None = None,
    method="linear", coordinate_transformation_mode="half_pixel", rounding_method="round",
    cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype: DType | None = None,
):  # fmt: skip
    target = "NC" + spatial(count)
    layout = layout or target
    y = resize_to(
        g, unpack_layout(g, x, layout, target), size, method, coordinate_transformation_mode,
        rounding_method, cubic_alpha, bool(cubic_exclude), roi, extrapolation_value, out_dtype,
    )  # fmt: skip
    return pack_layout(g, y, target, layout)


def parts_of(g, sizes: Value) -> tuple[Size, ...]:
    """The elements of a tensor of two sizes."""
    if sizes.tensor is not None:
        return sizes.ints()
    sizes_int64 = g.cast(sizes, DType.INT64)
    return tuple(g.slice_axis(sizes_int64, 0, i, i + 1) for i in range(2))


@reads("dyn.image.resize2d", ignore=("size", "roi"))
def read_dyn_resize2d(
    g, x, size, roi, *, layout="NCHW", method="linear",
    coordinate_transformation_mode="half_pixel", rounding_method="round", cubic_alpha=-0.5,
    cubic_exclude=0, extrapolation_value=0.0, out_dtype: DType | None = None,
):  # fmt: skip
    """The sizes are an operand."""
    require(roi.tensor is not None or coordinate_transformation_mode != "tf_crop_and_resize",
            "a region of interest that the model computes")  # fmt: skip
    window = tuple(float(v) for v in roi.array().ravel()) if roi.tensor is not None else ()
    return read_resize(
        2, g, x, size=parts_of(g, size), roi=window, layout=layout, method=method,
        coordinate_transformation_mode=coordinate_transformation_mode,
        rounding_method=rounding_method, cubic_alpha=cubic_alpha, cubic_exclude=cubic_exclude,
        extrapolation_value=extrapolation_value, out_dtype=out_dtype,
    )  # fmt: skip


def resize_by_scales(g, x: Value, scales, method: str, mode: str):
    """``x`` with its sizes times scales, halves rounded away from zero."""
    sizes: list[Size] = [scale_size(g, g.size_of(x, 2 + i), s) for i, s in enumerate(scales)]
    is_integer = all(not isinstance(s, Value) and s == int(s) for s in scales) and len(scales) == 2
    if is_integer and (method, mode) == ("nearest_neighbor", "asymmetric"):
        return emit_resize(g, x, sizes, mode, "floor")
    return resize_to(g, x, sizes, method, mode)


def scale_size(g, size: Size, scale: float | Value) -> Size:
    if isinstance(scale, Value):
        size_float32 = g.cast(g.shape_from([size]), DType.FLOAT32)
        return g.cast(g.Floor(g.Add(g.Mul(size_float32, scale), 0.5)), DType.INT64)
    if isinstance(size, int):
        return int(np.floor(size * scale + 0.5))
    if scale == int(scale):
        return g.multiply_sizes([size, int(scale)])
    scaled = g.Mul(g.cast(size, DType.FLOAT64), scale)
    return g.cast(g.Floor(g.Add(scaled, 0.5)), DType.INT64)


def method_of(name: str) -> str:
    """Resize's name for a method: ``bilinear``, ``bicubic`` and ``trilinear`` tell the axes too."""
    for prefix in ("bi", "tri"):
        name = name.removeprefix(prefix)
    return name


@legalizations("Resize")
def legalize_resize(
    g, x, roi=None, scales=None, sizes=None, *, keep_aspect_ratio_policy: str,
    axes: tuple[int, ...] | None = None, **sampling,
):  # fmt: skip
    how = Sampling.of(sampling)
    plain = scales is None and axes is None and keep_aspect_ratio_policy == "stretch"
    if plain and is_native(x, how, known_sizes(sizes), None):
        return None
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=keep_aspect_ratio_policy, axes=axes
    )
    factors = static_scales(x, scales, sizes)
    shape = factors and tuple(m for m, _ in factors)
    if is_native(x, how, shape, factors and [s for _, s in factors]):
        kept = {n: v for n, v in sampling.items() if n not in ("antialias", "extrapolation_value")}
        return g.Resize(x, None, None, g.const(shape, DType.INT64), **kept)
    return decompose_resize(g, x, roi, scales, sizes, how)


def is_native(x: Value, how: Sampling, shape, scales) -> bool:
    """Whether Relay's operator computes the same; ``scales`` None are those of the sizes."""
    if shape is None or x.rank - 2 not in LAYOUTS or x.type is not DType.FLOAT32:
        return False
    if not x.is_static or not all(isinstance(m, int) for m in shape) or how.antialias:
        return False
    if shape[:2] != x.static_shape[:2] or how.coordinates not in NATIVE:
        return False
    pairs = list(zip(x.static_shape[2:], shape[2:], strict=True))
    if scales is not None and any(m / n != s for (n, m), s in zip(pairs, scales[2:], strict=True)):
        return False
    if how.mode == "nearest":
        return all(_same_elements(n, m, how) for n, m in pairs)
    if how.coordinates == "align_corners" and 1 in shape[2:]:
        return False
    return how.mode == "linear" or x.rank == 4


def _same_elements(n: int, m: int, how: Sampling) -> bool:
    """Whether TVM, whose places are of single precision, takes the elements ONNX takes."""
    expected = nearest_index(
        coordinates(n, m, m / n, how.coordinates, (0.0, 1.0)), n, how.nearest_mode
    )
    table = nearest_table(n, m, how.coordinates, how.nearest_mode, (0.0, 0.0), False)
    repeated = nearest_table(n, m, how.coordinates, how.nearest_mode, (0.0, 0.0), True)
    return np.array_equal(expected, table) and np.array_equal(expected, repeated)


@writes("Resize", ignore=("antialias", "keep_aspect_ratio_policy", "extrapolation_value"))
def write_resize(
    r, x, roi, scales, sizes, *, mode: str, coordinate_transformation_mode: str,
    nearest_mode: str, cubic_coeff_a: float, exclude_outside: int,
):  # fmt: skip
    axes = x.rank - 2
    cubic = {"cubic_alpha": cubic_coeff_a, "cubic_exclude": exclude_outside}
    return r[f"image.resize{axes}d"](
        x, size=sizes.ints()[2:], layout=LAYOUTS[axes][0], method=RELAY_METHODS[mode],
        roi=(0.0,) * 2 * axes, rounding_method=nearest_mode if mode == "nearest" else "",
        coordinate_transformation_mode=coordinate_transformation_mode,
        **(cubic if mode == "cubic" else {}),
    )  # fmt: skip
