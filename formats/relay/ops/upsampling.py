"""Upsampling by factors: the resize of a size that is multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serde.ir.graph import DType, Value

from ..rules import reads
from .convolution import LAYOUTS
from .layouts import pack_layout, unpack_layout
from .resize import method_of, resize_by_scales


@reads("nn.upsampling")
def read_upsampling(
    g, x, *, scale_h=1.0, scale_w=1.0, layout="NCHW", method="nearest_neighbor",
    align_corners=False,
):  # fmt: skip
    return upsample(g, x, (scale_h, scale_w), layout, method, mode_of(align_corners))


@reads("nn.upsampling3d")
def read_upsampling3d(
    g, x, *, scale_d=1.0, scale_h=1.0, scale_w=1.0, layout="NCDHW", method="nearest_neighbor",
    coordinate_transformation_mode="half_pixel",
):  # fmt: skip
    scales = (scale_d, scale_h, scale_w)
    return upsample(g, x, scales, layout, method, coordinate_transformation_mode)


def upsample(g, x: Value, scales: Sequence[Any], layout: str, method: str, mode: str):
    """``x``, of a layout of images or volumes, with its sizes times ``scales``."""
    target = LAYOUTS[len(scales)][0]
    y = resize_by_scales(g, unpack_layout(g, x, layout, target), scales, method_of(method), mode)
    return pack_layout(g, y, target, layout)


def mode_of(align_corners: bool) -> str:
    """Resize's name for the way places correspond."""
    return "align_corners" if align_corners else "asymmetric"


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
    return upsample(g, x, scales_of(g, h, w), layout, method, mode_of(align_corners))


@reads("dyn.nn.upsampling3d", ignore=("scale_d", "scale_h", "scale_w"))
def read_dyn_upsampling3d(
    g, x, d, h, w, *, layout="NCDHW", method="nearest_neighbor",
    coordinate_transformation_mode="half_pixel",
):  # fmt: skip
    scales = scales_of(g, d, h, w)
    return upsample(g, x, scales, layout, method, coordinate_transformation_mode)
