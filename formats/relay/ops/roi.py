"""Regions of interest of images."""

from __future__ import annotations

import numpy as np

from serde.decompositions.roi import average_regions, maximize_regions
from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType
from serde.version_converter.adapters.roi import roi_align

from ..rules import reads
from ..target import legalizations, writes
from .layouts import pack_layout, require_static_sizes, unpack_layout
from .nms import column
from .sampling import broadcast_positions, sample_bilinear


@reads("vision.roi_align")
def read_roi_align(
    g, x, rois, *, pooled_size: Ints, spatial_scale: float, sample_ratio=-1, layout="NCHW",
    mode="avg",
):  # fmt: skip
    """A row of ``rois`` is the batch and two corners."""
    require(mode in ("avg", "max"), f"mode={mode!r} is unknown")
    height, width = pooled_size if len(pooled_size) == 2 else pooled_size * 2
    which = g.cast(column(g, rois, 0), DType.INT64)
    corners = column(g, rois, 1, 4)

    x = unpack_layout(g, x, layout, "NCHW")
    if mode == "max":
        sizes = height, width
        y = max_of_samples(g, x, which, corners, sizes, spatial_scale, sample_ratio)
    else:
        y = g.RoiAlign(
            x, corners, which, mode="avg", output_height=height, output_width=width,
            sampling_ratio=max(sample_ratio, 0), spatial_scale=spatial_scale,
            coordinate_transformation_mode="output_half_pixel",
        )  # fmt: skip
    return pack_layout(g, y, "NCHW", layout)


def max_of_samples(g, x, which, corners, counts: Ints, scale: float, ratio: int):
    """The greatest of the samples of a cell; ONNX takes that of their weighted corners instead."""
    require(ratio > 0, "mode='max' with as many samples as a region is large")
    images = g.Gather(x, which, axis=0)
    grids, outside = [], []
    for at, (size, count) in enumerate(zip(require_static_sizes(x), counts, strict=True)):
        first, last = (g.Mul(column(g, corners, i - at, 1), scale) for i in (1, 3))
        length = g.Max(g.Sub(last, first), 1.0)
        steps = (arrays.arange(count * ratio) + 0.5) / (count * ratio)
        place = g.Add(
            g.Unsqueeze(first, [1]),
            g.Mul(g.Unsqueeze(length, [1]), g.const(steps[None].astype(np.float32))),
        )
        place = broadcast_positions(g, place, (counts[0] * ratio, counts[1] * ratio), at)
        outside.append(g.Or(g.Less(place, -1.0), g.Greater(place, float(size))))
        grids.append(g.Min(g.Max(place, 0.0), float(size - 1)))
    y = g.Where(
        g.Unsqueeze(g.Or(*outside), [1]), 0.0, sample_bilinear(g, images, grids[0], grids[1])
    )
    cells = g.Reshape(y, [0, 0, counts[0], ratio, counts[1], ratio])
    return g.ReduceMax(cells, [3, 5], keepdims=0)


@reads("vision.roi_pool")
def read_roi_pool(g, x, rois, *, pooled_size: Ints, spatial_scale: float, layout="NCHW"):
    size = pooled_size if len(pooled_size) == 2 else pooled_size * 2

    x = unpack_layout(g, x, layout, "NCHW")
    y = g.MaxRoiPool(x, rois, pooled_shape=size, spatial_scale=spatial_scale)
    return pack_layout(g, y, "NCHW", layout)


@legalizations("RoiAlign")
def legalize_roi_align(
    g, x, rois, batch, *, mode: str, sampling_ratio: int, coordinate_transformation_mode: str,
    output_height: int, output_width: int, spatial_scale: float,
):  # fmt: skip
    """As many samples as a region is large are a dynamic number, which TVM's graph executor has no
    place for; its own operator writes out of bounds where a region is larger than the image.
    """
    form = {"output_height": output_height, "output_width": output_width,
            "spatial_scale": spatial_scale,
            "half": coordinate_transformation_mode == "half_pixel"}  # fmt: skip
    if not sampling_ratio and x.is_static and x.type is DType.FLOAT32:
        pooled = maximize_regions if mode.lower() == "max" else average_regions
        return pooled(g, x, rois, batch, **form)
    return roi_align(g, x, rois, batch, mode=mode, sampling_ratio=sampling_ratio, **form)


@writes("MaxRoiPool")
def write_max_roi_pool(r, x, regions, *, pooled_shape: tuple[int, ...], spatial_scale: float):
    return r.vision.roi_pool(x, regions, pooled_size=pooled_shape, spatial_scale=spatial_scale)
