"""Images at other sizes, and sampled along a grid."""

from __future__ import annotations

import math

import numpy as np

from serde.decompositions.adaptive_pools import MEAN, adapt_axes, is_divisible
from serde.decompositions.composites import emit_adaptive_pool
from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint
from serde.spec.expressions import Size
from serde.version_converter.adapters.resize import REPEATING, decompose_resize, every_axis
from serde.version_converter.adapters.resize_coordinates import Sampling

from ..rules import note_old_meaning, reads, reads_between
from ..target import legalizations, writes

NEAREST = {
    "mode": "nearest",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}
TRANSFORMER = {"transform_type": ("affine",), "sampler_type": ("bilinear",)}


def resize_to(g, x: Value, sizes: list[Size], **how):
    """``x`` with the last axes in other sizes."""
    kept = [g.size_of(x, axis) for axis in range(x.rank - len(sizes))]
    return g.Resize(x, None, None, g.shape_from([*kept, *sizes]), **how)


@reads("UpSampling", ignore=("workspace", "num_filter", "num_args"))
def read_upsampling(g, x, *more, scale: int, sample_type: str, multi_input_mode="concat"):
    """``bilinear`` is a transposed convolution of each channel with the weights given; ``nearest``
    brings several images to the size of the first and joins them.
    """
    if sample_type == "bilinear":
        kernel, pad = (2 * scale - scale % 2,) * 2, (math.ceil((scale - 1) / 2),) * 4
        group = more[0].ranked_shape[0]
        return g.ConvTranspose(
            x, *more, kernel_shape=kernel, strides=(scale, scale), pads=pad, group=group
        )
    require(sample_type == "nearest", f"sample_type={sample_type!r} is unknown")
    first = g.Resize(x, None, [1.0, 1.0, float(scale), float(scale)], **NEAREST)
    sizes = [g.size_of(first, axis) for axis in (2, 3)]
    every = [first, *(resize_to(g, v, sizes, **NEAREST) for v in more)]
    if len(every) == 1:
        return first
    return g.Sum(*every) if multi_input_mode == "sum" else g.Concat(*every, axis=1)


def scale_odd_size(g, size: Value, scale: float | None):
    """An even size times the scale; an odd one keeps its last row."""
    odd = g.Mod(size, [2])
    return g.Add(scale_size(g, g.Sub(size, odd), scale), odd)


def scale_size(g, size: Value, scale: float | None):
    require(scale is not None, "a scale is needed")
    return g.cast(g.Floor(g.Mul(g.cast(size, DType.FLOAT32), scale)), DType.INT64)


MODES = {
    "size": scale_size,
    "odd_scale": scale_odd_size,
    "to_even_down": lambda g, size, _: g.Sub(size, g.Mod(size, [2])),
    "to_even_up": lambda g, size, _: g.Add(size, g.Mod(size, [2])),
    "to_odd_down": lambda g, size, _: g.Sub(g.Add(size, g.Mod(size, [2])), [1]),
    "to_odd_up": lambda g, size, _: g.Add(g.Sub(size, g.Mod(size, [2])), [1]),
}


@reads("_contrib_BilinearResize2D")
def read_bilinear_resize(
    g, x, like=None, *, height=1, width=1, scale_height: float | None = None,
    scale_width: float | None = None, mode="size", align_corners=True,
    requantized: Hint[bool] = False,
):  # fmt: skip
    require(mode in MODES or mode == "like", f"mode={mode!r} is unknown")
    sizes: list[Size] = [height, width]
    if mode == "like":
        sizes = [g.size_of(like, axis) for axis in (2, 3)]
    elif mode != "size" or scale_height is not None:
        scales = (scale_height, scale_width)
        old = [g.shape_from([g.size_of(x, axis)]) for axis in (2, 3)]
        sizes = [MODES[mode](g, size, scale) for size, scale in zip(old, scales, strict=True)]
    if requantized and x.type is DType.FLOAT32:
        for axis in (3, 2):
            x = interpolate_axis(g, x, axis, sizes[axis - 2], align_corners)
        return x
    way = "align_corners" if align_corners else "pytorch_half_pixel"
    return resize_to(g, x, sizes, mode="linear", coordinate_transformation_mode=way)


def interpolate_axis(g, x: Value, axis: int, size: Size, align_corners: bool):
    """Brought to a size along one axis, with the places and weights that MXNet computes."""
    old, new = (g.shape_from([n]) for n in (g.size_of(x, axis), size))
    last, places = g.Sub(old, 1), g.index_range(size)
    if align_corners:
        step = g.Div(as_float32(g, last), as_float32(g, g.Max(g.Sub(new, 1), [1])))
        place = g.Mul(as_float32(g, places), step)
    else:
        step = g.Where(g.Greater(new, 1), g.Div(as_float32(g, old), as_float32(g, new)), 0.0)
        middles, step = (g.cast(v, DType.FLOAT64) for v in (places, step))
        place = as_float32(g, g.Max(g.Sub(g.Mul(g.Add(middles, 0.5), step), 0.5), 0.0))
    first = g.cast(place, DType.INT64)
    share = g.Sub(place, as_float32(g, first))
    shares = (g.Reshape(v, [-1] + [1] * (x.rank - 1 - axis)) for v in (g.Sub(1.0, share), share))
    neighbours = (g.Gather(x, at, axis=axis) for at in (first, g.Min(g.Add(first, 1), last)))
    return g.Add(*(g.Mul(weight, v) for weight, v in zip(shares, neighbours, strict=True)))


def as_float32(g, x: Value):
    return g.cast(x, DType.FLOAT32)


@reads(
    "_contrib_AdaptiveAvgPooling2D",
    ignore=(
        "kernel", "pool_type", "global_pool", "cudnn_off", "pooling_convention", "stride", "pad",
        "p_value", "count_include_pad",
    ),
    only={"layout": ("None", "NCHW")},
)  # fmt: skip
def read_adaptive_pooling(g, x, *, output_size: Ints = (), requantized: Hint[bool] = False):
    """Each output is the mean of the part of the image that lies under it."""
    rows, columns = output_size * 2 if len(output_size) == 1 else output_size or (1, 1)
    if requantized and is_divisible(x, (rows, columns)):
        return means_in_order(g, x, rows, columns)
    if rows == columns == 1:
        return g.GlobalAveragePool(x)
    return emit_adaptive_pool(g, x, (rows, columns), MEAN, adapt_axes)


def means_in_order(g, x: Value, rows: int, columns: int):
    """Means of numbers that integers stand for, added up row by row, as MXNet does: what becomes an
    integer again may lie on a half.
    """
    height, width = (
        n // parts for n, parts in zip(x.ranked_shape[2:], (rows, columns), strict=True)
    )
    parts = g.Reshape(x, [0, 0, rows, height, columns, width])
    total = g.ReduceSum(g.Transpose(parts, perm=(3, 5, 0, 1, 2, 4)), [0, 1], keepdims=0)
    return g.Div(g.Div(total, float(width)), float(height))


@reads("GridGenerator")
def read_grid_generator(g, x, *, transform_type: str, target_shape: Ints = (0, 0)):
    """Where to sample, from -1 to 1 across the image: ``(N, 2, H, W)``, first x then y."""
    if transform_type == "affine":
        return affine_grid(g, x, target_shape)
    require(transform_type == "warp", f"transform_type={transform_type!r} is unknown")
    moved = [g.Gather(x, i, axis=1) for i in (0, 1)]
    lines = [g.cast_like(g.index_range(g.size_of(x, axis)), x) for axis in (3, 2)]
    base = [lines[0], g.Unsqueeze(lines[1], [1])]
    last = [g.cast_like(g.Sub(g.shape_from([g.size_of(x, a)]), [1]), x) for a in (3, 2)]
    grid = [
        g.Sub(g.Div(g.Mul(g.Add(m, b), 2.0), end), 1.0)
        for m, b, end in zip(moved, base, last, strict=True)
    ]
    return g.stack(grid, 1)


def affine_grid(g, theta: Value, target: Ints):
    """The six numbers of each affine map, applied to a regular grid."""
    require(all(target), f"target_shape={target} leaves a size open")
    require(1 not in target, f"target_shape={target} has a size of 1, of which MXNet makes NaN")
    y, x = arrays.meshgrid(*(arrays.linspace(-1, 1, n) for n in target), indexing="ij")
    points = np.stack([x.ravel(), y.ravel(), arrays.ones(x.size)]).astype(theta.type.numpy)
    return g.Reshape(g.MatMul(g.Reshape(theta, [-1, 2, 3]), points), [-1, 2, *target])


@reads("BilinearSampler", ignore=("cudnn_off",))
def read_bilinear_sampler(g, x, grid):
    """Corners are -1 and 1, what lies outside is 0."""
    last = g.Transpose(grid, perm=(0, 2, 3, 1))
    return g.GridSample(x, last, mode="linear", padding_mode="zeros", align_corners=1)


@reads("SpatialTransformer", ignore=("cudnn_off",), only=TRANSFORMER)
def read_spatial_transformer(g, x, loc, *, target_shape: Ints = (0, 0)):
    return read_bilinear_sampler(g, x, affine_grid(g, loc, target_shape))


@reads_between(0, 1100)("SpatialTransformer", ignore=("cudnn_off",), only=TRANSFORMER)
def read_old_spatial_transformer(g, x, loc, *, target_shape: Ints = (0, 0)):
    """Before MXNet 0.11 what lies outside is extrapolated from the elements that lie there in
    memory; behind the last image it reads what happens to be there, which mostly is 0.
    """
    note_old_meaning(g, "0.11")
    batch, channels, height, width = x.static_shape
    grid = affine_grid(g, loc, target_shape)
    parts = []
    for place, size in ((1, height), (0, width)):
        at = g.Mul(g.Add(g.Gather(grid, [place], axis=1), 1.0), (size - 1) / 2)
        first = g.Clip(g.Floor(at), g.scalar(0, x), g.scalar(size, x))
        parts.append((g.cast(first, DType.INT64), g.Sub(at, first)))
    (top, down), (left, right) = parts
    images = arrays.arange(batch * channels).reshape(batch, channels, 1, 1) * height * width
    start = g.Add(g.Add(g.Mul(top, width), left), g.const(images, DType.INT64))
    behind = g.const(arrays.zeros((2 * width + 2,), x.type.numpy))
    flat = g.Concat(g.Reshape(x, [-1]), behind, axis=0)

    def weigh(step: int, *shares):
        values = g.Gather(flat, g.Add(start, step), axis=0)
        return g.Mul(g.Mul(values, shares[0]), shares[1])

    up, back = g.Sub(1.0, down), g.Sub(1.0, right)
    upper = g.Add(weigh(0, up, back), weigh(1, up, right))
    return g.Add(upper, g.Add(weigh(width, down, back), weigh(width + 1, down, right)))


@legalizations("Resize")
def legalize_resize(
    g, x, roi=None, scales=None, sizes=None, *, axes: Ints | None = None, keep_aspect_ratio_policy,
    **form,
):  # fmt: skip
    how = Sampling.of(form)
    if is_native(x, scales, how) and axes is None:
        return None
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=keep_aspect_ratio_policy, axes=axes
    )
    if is_native(x, scales, how):
        return g.Resize(x, None, scales, mode="nearest", nearest_mode="round_prefer_floor")
    return decompose_resize(g, x, roi, scales, sizes, how)


def is_native(x, scales, how: Sampling) -> bool:
    """Whether images of floats grow by one integer, each pixel repeated."""
    if x.rank != 4 or scales is None or scales.tensor is None or x.type.kind != "f":
        return False
    n, c, *factors = scales.array().tolist()
    is_integer = n == c == 1 and len(set(factors)) == 1 and factors[0] == int(factors[0]) >= 1
    return how.mode == "nearest" and is_integer and (how.coordinates, how.nearest_mode) in REPEATING


@writes("Resize", ignore=(
    "antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
    "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode",
))  # fmt: skip
def write_resize(s, x, roi, scales):
    """Only what ``is_native`` describes is left."""
    return s.UpSampling(x, scale=int(scales.array()[2]), sample_type="nearest", num_args=1)
