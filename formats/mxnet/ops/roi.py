"""Parts of images: regions of interest, deformed windows, correlation."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from serde.decompositions.detectors import correlate
from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.roi import align_regions
from serde.version_converter.adapters.vision import deformable_convolution

from ..rules import reads
from ..target import legalizations, require_symmetric_pads, writes
from .convolution import present_operands, window
from .padding import pad_images


@reads("ROIPooling")
def read_roi_pooling(g, x, rois, *, pooled_size: Ints, spatial_scale: float):
    image, corners = split_rois(g, rois)
    boxes = g.Concat(g.Max(image, 0.0), corners, axis=1)
    y = g.MaxRoiPool(x, boxes, pooled_shape=pooled_size, spatial_scale=spatial_scale)
    return zero_where_none(g, image, y)


@reads("_contrib_ROIAlign", only={"position_sensitive": (False,)})
def read_roi_align(
    g, x, rois, *, pooled_size: Ints, spatial_scale: float, sample_ratio=-1, aligned=False
):
    image, corners = split_rois(g, rois)
    y = g.RoiAlign(
        x,
        corners,
        g.cast(g.Squeeze(g.Max(image, 0.0), [1]), DType.INT64),
        mode="avg",
        output_height=pooled_size[0],
        output_width=pooled_size[1],
        sampling_ratio=max(sample_ratio, 0),
        spatial_scale=spatial_scale,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )
    return zero_where_none(g, image, y)


def split_rois(g, rois: Value):
    """Which image a region lies in, and its corners."""
    return g.slice_axis(rois, 1, 0, 1), g.slice_axis(rois, 1, 1, 5)


def zero_where_none(g, image, y: Value):
    """Zeros for the regions of image -1: there is no such region."""
    none = g.Less(g.cast(image, DType.INT64), 0)
    return g.Where(g.Unsqueeze(none, [2, 3]), g.scalar(0, y), y)


TUNING = ("num_filter", "no_bias", "workspace")


@reads(
    "_contrib_DeformableConvolution", "_npx_deformable_convolution", ignore=TUNING,
    only={"layout": ("None", "NCHW")},
)  # fmt: skip
def read_deformable_convolution(
    g, x, offset, w, b=None, *, kernel: Ints, stride=(), dilate=(), pad=(), num_group=1,
    num_deformable_group=1,
):  # fmt: skip
    frame = window(kernel, stride, dilate, pad)
    offset = clamp_offsets(g, x, offset, frame)
    groups = {"group": num_group, "offset_group": num_deformable_group}
    return g.DeformConv(x, w, offset, b, **groups, **frame)


def clamp_offsets(g, x: Value, offset: Value, frame):
    """Offsets that give MXNet's first version at the edges, where ONNX fades a pixel out.

    There a sample before the first pixel is 0, and one behind the last, but not by a whole pixel,
    is the last.
    """
    kernel, half = frame["kernel_shape"], len(frame["kernel_shape"])
    parts = zip(kernel, frame["strides"], frame["dilations"], frame["pads"][:half], strict=True)
    lines = [
        g.Add(
            g.Sub(g.Mul(g.index_range(g.size_of(offset, axis)), s), p),
            g.Reshape(g.const(range(0, k * d, d), DType.INT64), [-1, 1]),
        )
        for axis, (k, s, d, p) in zip((2, 3), parts, strict=True)
    ]
    sizes = [g.size_of(offset, axis) for axis in (2, 3)]
    grid = g.shape_from([*kernel, *sizes])
    down = g.Expand(g.Unsqueeze(lines[0], [1, 3]), grid)
    right = g.Expand(g.Unsqueeze(lines[1], [0, 2]), grid)
    base = g.stack((down, right), 2)
    shape = g.shape_from([math.prod(kernel), 2, *sizes])
    base = g.Reshape(g.cast_like(base, offset), shape)
    place = g.Add(g.Reshape(offset, g.shape_from([0, -1, math.prod(kernel), 2, *sizes])), base)
    size = g.cast_like(g.Unsqueeze(g.shape_from([g.size_of(x, a) for a in (2, 3)]), [1, 2]), x)
    last = g.Min(place, g.Sub(size, 1.0))
    clamped = g.Where(g.Less(place, size), last, place)
    clamped = g.Where(g.Less(place, 0.0), g.scalar(-2, place), clamped)
    return g.Reshape(g.Sub(clamped, base), g.Shape(offset))


@reads(
    "_contrib_ModulatedDeformableConvolution",
    "_npx_modulated_deformable_convolution",
    ignore=(*TUNING, "im2col_step"),
    only={"layout": ("None", "NCHW")},
)
def read_modulated_deformable_convolution(
    g, x, offset, mask, w, b=None, *, kernel: Ints, stride=(), dilate=(), pad=(), num_group=1,
    num_deformable_group=1,
):  # fmt: skip
    groups = {"group": num_group, "offset_group": num_deformable_group}
    return g.DeformConv(x, w, offset, b, mask, **groups, **window(kernel, stride, dilate, pad))


@reads("Correlation")
def read_correlation(
    g, a, b, *, kernel_size=1, max_displacement=1, stride1=1, stride2=1, pad_size=0,
    is_multiply=True,
):  # fmt: skip
    """How alike two images are when one is moved: one channel a displacement, row by row."""
    require(kernel_size % 2 == 1, f"kernel_size={kernel_size} is even")
    ends = [0, 0, pad_size, pad_size] * 2
    a, b = g.Pad(a, ends), g.Pad(b, ends)
    return correlate(g, a, b, kernel_size, max_displacement, stride1, stride2, is_multiply)


@reads("_contrib_PSROIPooling")
def read_position_sensitive(
    g, x, rois, *, spatial_scale: float, output_dim: int, pooled_size: int, group_size=0
):
    """Means over the bins of regions, each bin from channels of its own; 0 where it is empty."""
    require(group_size in (0, pooled_size), f"{group_size=} with {pooled_size=}")
    count = pooled_size
    rounded = round_corners(g, rois)
    masks = [
        bin_masks(g, rounded[i], rounded[i + 2], spatial_scale, count, g.size_of(x, 3 - i))
        for i in (1, 0)
    ]
    image_of_roi = g.Gather(x, g.cast(g.Gather(rois, 0, axis=1), DType.INT64), axis=0)
    split = g.Reshape(image_of_roi, g.shape_from([-1, output_dim, count, count,
                                          *(g.size_of(x, a) for a in (2, 3))]))  # fmt: skip
    total = g.Einsum(split, *masks, equation="rcijhw,rih,rjw->rcij")
    rows, columns = (g.ReduceSum(m, [2], keepdims=0) for m in masks)
    area = g.Mul(g.Unsqueeze(rows, [2]), g.Unsqueeze(columns, [1]))
    return g.Div(total, g.Unsqueeze(g.Max(area, 1.0), [1]))


def round_corners(g, rois: Value):
    """The corners of regions as the nearest integers, halves away from zero."""
    corners = [g.Gather(rois, i, axis=1) for i in (1, 2, 3, 4)]
    return [g.Mul(g.Sign(c), g.Floor(g.Add(g.Abs(c), 0.5))) for c in corners]


def bin_masks(g, first: Value, last: Value, scale: float, count: int, size):
    """Which of ``size`` pixels lie in each of ``count`` parts of a region: ones and zeros."""
    start = g.Mul(first, scale)
    extent = g.Max(g.Sub(g.Mul(g.Add(last, 1.0), scale), start), 0.1)
    part = g.Unsqueeze(g.Div(extent, float(count)), [1])
    line = g.cast_like(g.index_range(count), first)
    start = g.Unsqueeze(start, [1])
    low = g.Unsqueeze(g.Floor(g.Add(g.Mul(line, part), start)), [2])
    high = g.Unsqueeze(g.Ceil(g.Add(g.Mul(g.Add(line, 1.0), part), start)), [2])
    pixels = g.cast_like(g.index_range(size), first)
    return g.cast_like(g.And(g.GreaterOrEqual(pixels, low), g.Less(pixels, high)), first)


@reads("_contrib_DeformablePSROIPooling")
def read_deformable_position_sensitive(
    g, x, rois, trans=None, *, spatial_scale: float, output_dim: int, group_size: int,
    pooled_size: int, part_size=0, sample_per_part=1, trans_std=0.0, no_trans=False,
):  # fmt: skip
    """Means of points in the bins of regions, which ``trans`` moves by shares of a region's size;
    each bin takes channels of its own.
    """
    count, still = pooled_size, no_trans or trans is None
    pairs = 2 if still else trans.ranked_shape[1]
    require(isinstance(pairs, int), "needs to know how many classes are moved")
    classes = pairs // 2
    left, top, right, bottom = round_corners(g, rois)
    right_by, down_by = (
        [None] * 2 if still else bin_offsets(g, trans, classes, part_size or count, count)
    )
    bins_of = (spatial_scale, count, sample_per_part, trans_std)
    across = linear_taps(
        g, sample_points(g, left, right, right_by, *bins_of, True), g.size_of(x, 3)
    )
    down = linear_taps(g, sample_points(g, top, bottom, down_by, *bins_of, False), g.size_of(x, 2))
    part = arrays.arange(count) * group_size // count
    part = (part[:, None] * group_size + part).reshape(1, 1, count, count, 1, 1)
    image = g.Unsqueeze(g.cast(g.Gather(rois, 0, axis=1), DType.INT64), [1, 2, 3, 4, 5])
    at = g.Add(g.Mul(image, classes), arrays.arange(classes).reshape(1, -1, 1, 1, 1, 1))
    at = g.Add(g.Mul(at, group_size * group_size), part)
    at = g.Add(g.Mul(at, g.size_of(x, 2)), g.Unsqueeze(down.pixels, [5]))
    at = g.Add(g.Mul(at, g.size_of(x, 3)), g.Unsqueeze(across.pixels, [4]))
    near = g.Gather(pixels_of(g, x, classes, output_dim // classes), at, axis=0)
    means = "rkhwijc,rkhwi,rkhwj->rkchw"
    total = g.Einsum(near, down.weights, across.weights, equation=means)
    inside = g.Unsqueeze(g.Max(g.Mul(down.inside, across.inside), 1.0), [2])
    return g.Reshape(g.Div(total, inside), [-1, output_dim, count, count])


def pixels_of(g, x: Value, classes: int, channels: int):
    """A row of ``channels`` for each image, class, part of a bin's channels, and pixel."""
    sizes = [g.size_of(x, a) for a in (2, 3)]
    parts = g.Reshape(x, g.shape_from([g.size_of(x, 0), classes, channels, -1, *sizes]))
    return g.Reshape(g.Transpose(parts, perm=(0, 1, 3, 4, 5, 2)), [-1, channels])


def bin_offsets(g, trans: Value, classes: int, parts: int, count: int):
    """How far each bin is moved across and down: ``(regions, classes, count, count, 1)``."""
    split = g.Reshape(trans, [-1, classes, 2, parts, parts])
    near = np.floor(np.float32(arrays.arange(count)) / np.float32(count) * parts).astype("int64")
    split = g.Gather(g.Gather(split, near, axis=3), near, axis=4)
    return [g.Unsqueeze(g.Gather(split, i, axis=2), [4]) for i in (0, 1)]


def sample_points(
    g, first, last, move, scale: float, count: int, samples: int, reach: float, across
):
    """Where the points of each bin lie along one axis."""
    start = g.Sub(g.Mul(first, scale), 0.5)
    size = g.Max(g.Sub(g.Sub(g.Mul(g.Add(last, 1.0), scale), 0.5), start), 0.1)
    arrays.charge_elements(count, samples)
    share = np.arange(count)[:, None] / count + np.arange(samples) / (count * samples)
    shares = share[None, None, None] if across else share[None, None, :, None]
    shares = g.const(shares.astype("float32"))
    if move is not None:
        shares = g.Add(g.Mul(move, reach), shares)
    start, size = (g.Unsqueeze(v, [1, 2, 3, 4]) for v in (start, size))
    return g.Add(g.Mul(size, shares), start)


class Taps(NamedTuple):
    """The pixels on both sides of places, their weights, and how many places are in the image."""

    pixels: Value
    weights: Value
    inside: Value


def linear_taps(g, place: Value, size) -> Taps:
    """Half a pixel outside of the image a place is still its edge, and farther off nothing."""
    limit = g.cast_like(g.shape_from([size]), place)
    inside = g.And(g.GreaterOrEqual(place, -0.5), g.LessOrEqual(place, g.Sub(limit, 0.5)))
    weight = g.cast_like(inside, place)
    clamped = g.Max(g.Min(place, g.Sub(limit, 1.0)), 0.0)
    low = g.Floor(clamped)
    far = g.Mul(g.Sub(clamped, low), weight)
    pixels = g.Concat(low, g.Min(g.Add(low, 1.0), g.Sub(limit, 1.0)), axis=4)
    weights = g.Concat(g.Sub(weight, far), far, axis=4)
    return Taps(g.cast(pixels, DType.INT64), weights, g.ReduceSum(weight, [4], keepdims=0))


@reads("_contrib_RROIAlign")
def read_rotated_align(g, x, rois, *, pooled_size: Ints, spatial_scale: float, sampling_ratio=-1):
    """Regions of a middle, a width, a height and an angle in degrees; means of points in them."""
    require(sampling_ratio > 0, "sampling_ratio=-1, where the size of a region counts its points")
    rows, columns = (n * sampling_ratio for n in pooled_size)
    at, size = (g.Mul(g.Slice(rois, [a], [a + 2], [1], [1]), spatial_scale) for a in (1, 3))
    size = g.Max(size, 1.0)
    turn = g.Mul(g.Slice(rois, [5], [6], [1], [1]), math.pi / 180)
    y, right = arrays.meshgrid(*((arrays.arange(n) + 0.5) / n - 0.5 for n in (rows, columns)),
                           indexing="ij")  # fmt: skip
    across = g.Mul(g.Gather(size, [0], axis=1), right.reshape(1, -1).astype("float32"))
    down = g.Mul(g.Gather(size, [1], axis=1), y.reshape(1, -1).astype("float32"))
    cosine, sine = g.Cos(turn), g.Sin(turn)
    points = (
        g.Add(g.Add(g.Mul(across, cosine), g.Mul(down, sine)), g.Gather(at, [0], axis=1)),
        g.Add(g.Sub(g.Mul(down, cosine), g.Mul(across, sine)), g.Gather(at, [1], axis=1)),
    )
    ends = [g.cast_like(g.shape_from([g.size_of(x, a)]), x) for a in (3, 2)]
    outside = [g.Or(g.Less(p, -1.0), g.Greater(p, e)) for p, e in zip(points, ends, strict=True)]
    scaled = [
        g.Unsqueeze(g.Sub(g.Div(g.Mul(p, 2.0), g.Sub(e, 1.0)), 1.0), [2])
        for p, e in zip(points, ends, strict=True)
    ]
    grid = g.Reshape(g.Concat(*scaled, axis=2), [-1, rows, columns, 2])
    image_of_roi = g.Gather(x, g.cast(g.Gather(rois, 0, axis=1), DType.INT64), axis=0)
    y = g.GridSample(image_of_roi, grid, mode="linear", padding_mode="border", align_corners=1)
    none = g.Reshape(g.Or(*outside), [-1, 1, rows, columns])
    each = window((sampling_ratio,) * 2, (sampling_ratio,) * 2, (), ())
    return g.AveragePool(g.Where(none, g.scalar(0, y), y), **each)


@writes("DeformConv")
def write_deform_conv(
    s, x, w, offset, b=None, mask=None, *, kernel_shape, strides, dilations, pads, group,
    offset_group,
):  # fmt: skip
    """A number of images at once (``im2col_step``) would have to divide that of all."""
    half = len(kernel_shape)
    require(half == 2, f"a deformed window of {half} axes")
    if pads[:half] != pads[half:]:
        x, pads = pad_images(s, x, pads, 0.0), (0,) * 2 * half
    if mask is None:
        parts = offset_group * kernel_shape[0] * kernel_shape[1]
        mask = s.ones_like(s.slice_axis(offset, axis=1, begin=0, end=parts))
    return s["_contrib_ModulatedDeformableConvolution"](
        x,
        offset,
        mask,
        w,
        *present_operands(b),
        kernel=kernel_shape,
        stride=strides,
        dilate=dilations,
        pad=require_symmetric_pads(pads),
        num_filter=w.static_shape[0],
        num_group=group,
        num_deformable_group=offset_group,
        no_bias=b is None,
        im2col_step=1,
    )


@writes("RoiAlign")
def write_roi_align(
    s, x, rois, image, *, mode, output_height, output_width, sampling_ratio, spatial_scale,
    coordinate_transformation_mode,
):  # fmt: skip
    require(mode == "avg", f"regions pooled by {mode!r}")
    rows = s.Concat(
        s.expand_dims(s.Cast(image, dtype=x.type.value), axis=1), rois, dim=1, num_args=2
    )
    return s["_contrib_ROIAlign"](
        x, rows, pooled_size=(output_height, output_width), spatial_scale=spatial_scale,
        sample_ratio=sampling_ratio or -1, aligned=coordinate_transformation_mode == "half_pixel",
    )  # fmt: skip


@writes("MaxRoiPool")
def write_max_roi_pool(s, x, rois, *, pooled_shape, spatial_scale):
    return s.ROIPooling(x, rois, pooled_size=pooled_shape, spatial_scale=spatial_scale)


@legalizations("RoiAlign")
def legalize_roi_align(g, x, rois, image, *, mode, **form):
    """MXNet has regions of averages."""
    return None if mode == "avg" else align_regions(g, x, rois, image, mode=mode, **form)


@legalizations("DeformConv")
def legalize_deform_conv(g, x, w, offset, b=None, mask=None, *, kernel_shape, offset_group, **form):
    """MXNet has windows of images, and channels of the result in as many groups as offsets."""
    if len(kernel_shape) == 2 and w.static_shape[0] % offset_group == 0:
        return None
    frame = {"kernel_shape": kernel_shape, "offset_group": offset_group, **form}
    return deformable_convolution(g, x, w, offset, b, mask, **frame)
