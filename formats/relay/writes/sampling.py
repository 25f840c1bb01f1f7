"""Sampling images at places a grid or a region gives."""

from __future__ import annotations

from serde.decompositions.roi import max_of_regions, mean_of_regions
from serde.ir.graph import DType
from serde.version_converter.adapters.roi import roi_align

from ..target import writes
from .recast import recasts

METHODS = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


@recasts("GridSample")
def recast_grid_sample(g, x, grid, *, mode: str, padding_mode: str, align_corners: int):
    """Relay's bicubic sampling moves the elements to the border, ONNX's the place between them."""
    image = x.rank == 4 or (x.rank == 5 and mode != "cubic")
    if image and (mode, padding_mode) != ("cubic", "border") and x.type.bits == 32:
        return None
    attrs = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    return g.decompose("GridSample", 16, x, grid, **attrs)


@writes("GridSample")
def write_grid_sample(r, x, grid, *, mode: str, padding_mode: str, align_corners: int):
    """The grid's coordinates lie along its second axis, in ONNX along the last."""
    turned = r.transpose(grid, axes=(0, grid.rank - 1, *range(1, grid.rank - 1)))
    return r.image.grid_sample(
        x, turned, method=METHODS[mode], layout="NCHW" if x.rank == 4 else "NCDHW",
        padding_mode=padding_mode, align_corners=align_corners,
    )  # fmt: skip


@recasts("RoiAlign")
def recast_roi_align(
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
        pooled = max_of_regions if mode.lower() == "max" else mean_of_regions
        return pooled(g, x, rois, batch, **form)
    return roi_align(g, x, rois, batch, mode=mode, sampling_ratio=sampling_ratio, **form)


@writes("MaxRoiPool")
def write_max_roi_pool(r, x, regions, *, pooled_shape: tuple[int, ...], spatial_scale: float):
    return r.vision.roi_pool(x, regions, pooled_size=pooled_shape, spatial_scale=spatial_scale)
