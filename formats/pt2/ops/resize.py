"""Resizing, sampling and windows of images."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType

from ..rules import reads

MODES = {"nearest": "nearest", "nearest_exact": "nearest", "linear": "linear", "bilinear": "linear",
         "trilinear": "linear", "bicubic": "cubic"}  # fmt: skip
FAMILIES = {"upsample_nearest1d": 1, "upsample_nearest2d": 2, "upsample_nearest3d": 3,
            "_upsample_nearest_exact1d": 1, "_upsample_nearest_exact2d": 2,
            "_upsample_nearest_exact3d": 3}  # fmt: skip
LINEAR = {"upsample_linear1d": "linear", "upsample_bilinear2d": "linear",
          "upsample_trilinear3d": "linear", "upsample_bicubic2d": "cubic",
          "_upsample_bilinear2d_aa": "linear", "_upsample_bicubic2d_aa": "cubic"}  # fmt: skip
SAMPLES = {0: "linear", 1: "nearest", 2: "cubic"}
BORDERS = {0: "zeros", 1: "border", 2: "reflection"}


def resize(g, x, sizes, scales, **attrs):
    """To sizes, or by scales, which PyTorch keeps for where a pixel comes from."""
    axes = list(range(2, x.rank))
    if sizes is not None:
        return g.Resize(x, None, None, g.shape_from([*g.sizes_of(x)[:2], *sizes]), **attrs)
    factors = g.const([1.0, 1.0, *scales], DType.FLOAT32)
    require(len(scales) == len(axes), f"{len(scales)} scales of {len(axes)} axes")
    return g.Resize(x, None, factors, **attrs)


def nearest(op):
    """How the nearest pixel is found."""
    if "exact" in op:
        return {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
    return {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@reads.for_each({f"{name}.vec": name for name in FAMILIES})
def read_nearest_vec(op, g, x, sizes, scales):
    return resize(g, x, sizes, scales, mode="nearest", **nearest(op))


@reads.for_each(
    {name: name for name in FAMILIES}, ignore=("scales", "scales_d", "scales_h", "scales_w")
)
def read_nearest(op, g, x, sizes):
    return resize(g, x, sizes, None, mode="nearest", **nearest(op))


def smooth(op, align_corners):
    """How pixels between others are found; PyTorch's cubic is another one with antialias."""
    mode, antialias = LINEAR[op], op.endswith("_aa")
    place = "align_corners" if align_corners else "half_pixel"
    cubic = {"cubic_coeff_a": -0.5 if antialias else -0.75} if mode == "cubic" else {}
    return {"mode": mode, "coordinate_transformation_mode": place, "antialias": int(antialias),
            "exclude_outside": int(antialias), **cubic}  # fmt: skip


@reads.for_each({f"{op}.vec": op for op in LINEAR})
def read_linear_vec(op, g, x, sizes, align_corners, scales):
    return resize(g, x, sizes, scales, **smooth(op, align_corners))


@reads.for_each({op: op for op in LINEAR}, ignore=("scales", "scales_d", "scales_h", "scales_w"))
def read_linear(op, g, x, sizes, align_corners):
    return resize(g, x, sizes, None, **smooth(op, align_corners))


@reads("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def read_grid_sampler(g, x, grid, mode, padding, align_corners):
    return g.GridSample(x, grid, mode=SAMPLES[mode], padding_mode=BORDERS[padding],
                        align_corners=int(align_corners))  # fmt: skip


@reads("affine_grid_generator")
def read_affine_grid(g, theta, sizes, align_corners):
    return g.AffineGrid(theta, g.shape_from(sizes), align_corners=int(align_corners))


@reads("col2im")
def read_col2im(g, x, sizes, kernel, dilation, padding, stride):
    single = x.rank == 2
    x = g.Unsqueeze(x, [0]) if single else x
    y = g.Col2Im(x, g.shape_from(sizes), g.const(list(kernel)), dilations=dilation,
                 pads=tuple(padding) * 2, strides=stride)  # fmt: skip
    return g.Squeeze(y, [0]) if single else y


@reads("im2col")
def read_im2col(g, x, kernel, dilation, padding, stride):
    """Windows of images, as columns: an identity as the weight of a convolution."""
    channels = x.ranked_shape[1]
    require(x.rank == 4 and isinstance(channels, int), "im2col of unknown channels: fix them")
    area = kernel[0] * kernel[1]
    arrays.charge_elements(channels, area, area)
    one = np.eye(area, dtype=x.type.numpy).reshape(area, 1, *kernel)
    w = g.const(np.tile(one, (channels, 1, 1, 1)))
    y = g.Conv(x, w, strides=stride, dilations=dilation, pads=tuple(padding) * 2, group=channels)
    return g.reshape(y, [g.size_of(x, 0), channels * area, -1])
