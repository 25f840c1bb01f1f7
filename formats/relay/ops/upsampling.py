"""Upsampling by factors: the resize of a size that is multiplied."""

from __future__ import annotations

from typing import Any

from serde.ir.graph import DType, Value

from ..rules import reads
from .layouts import apply_in_layout
from .resize import method_of, resize_by_scales


@reads("nn.upsampling")
def read_upsampling(
    g, x, *, scale_h=1.0, scale_w=1.0, layout="NCHW", method="nearest_neighbor",
    align_corners=False,
):  # fmt: skip
    mode = "align_corners" if align_corners else "asymmetric"

    def apply(x):
        return resize_by_scales(g, x, (scale_h, scale_w), method_of(method), mode)

    return apply_in_layout(g, x, layout, "NCHW", apply)


@reads("nn.upsampling3d")
def read_upsampling3d(
    g, x, *, scale_d=1.0, scale_h=1.0, scale_w=1.0, layout="NCDHW", method="nearest_neighbor",
    coordinate_transformation_mode="half_pixel",
):  # fmt: skip
    def apply(x):
        scales = (scale_d, scale_h, scale_w)
        return resize_by_scales(g, x, scales, method_of(method), coordinate_transformation_mode)

    return apply_in_layout(g, x, layout, "NCDHW", apply)


def scales_of(g, *scales: Value) -> list[Any]:
    """Numbers where they are known, otherwise tensors of one."""
    return [
        float(s.array().ravel()[0]) if s.tensor is not None
        else g.Reshape(g.cast(s, DType.FLOAT32), [1]) for s in scales
    ]  # fmt: skip


@reads("dyn.nn.upsampling", ignore=("scale_h", "scale_w"))
def read_dyn_upsampling(
    g, x, h, w, *, layout="NCHW", method="nearest_neighbor", align_corners=False
):
    scales = scales_of(g, h, w)
    return read_upsampling(
        g, x, scale_h=scales[0], scale_w=scales[1], layout=layout, method=method,
        align_corners=align_corners,
    )  # fmt: skip


@reads("dyn.nn.upsampling3d", ignore=("scale_d", "scale_h", "scale_w"))
def read_dyn_upsampling3d(
    g, x, d, h, w, *, layout="NCDHW", method="nearest_neighbor",
    coordinate_transformation_mode="half_pixel",
):  # fmt: skip
    scales = scales_of(g, d, h, w)
    return read_upsampling3d(
        g, x, scale_d=scales[0], scale_h=scales[1], scale_w=scales[2], layout=layout,
        method=method, coordinate_transformation_mode=coordinate_transformation_mode,
    )  # fmt: skip
