"""Convolutions and pools with what is fused into them, or of another layout."""

from __future__ import annotations

from serde.errors import require

from .activation import activate
from .table import apply_in_layout, reads


@reads.for_each({"FusedConv": False, "NhwcFusedConv": True})
def read_fused_conv(
    channels_last, g, x, w, b=None, z=None, *, activation="",
    activation_params: tuple[float, ...] = (), auto_pad="NOTSET", dilations=(), group=1,
    kernel_shape=(), pads=(), strides=(),
):  # fmt: skip
    def convolve(x):
        return g.Conv(
            x, w, b, auto_pad=auto_pad, dilations=dilations or None, group=group,
            kernel_shape=kernel_shape or None, pads=pads or None, strides=strides or None,
        )  # fmt: skip

    y = apply_in_layout(g, x, channels_last, convolve)
    y = y if z is None else g.Add(y, z)
    return activate(g, y, activation, activation_params)


@reads("NhwcConv")
def read_nhwc_conv(
    g, x, w, b=None, *, auto_pad="NOTSET", dilations=(), group=1, kernel_shape=(), pads=(),
    strides=(),
):  # fmt: skip
    return read_fused_conv(
        True, g, x, w, b, auto_pad=auto_pad, dilations=dilations, group=group,
        kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip


@reads("ConvTransposeWithDynamicPads")
def read_conv_transpose(
    g, x, w, pads=None, b=None, *, auto_pad="NOTSET", dilations=(), group=1, kernel_shape=(),
    output_padding=(), strides=(),
):  # fmt: skip
    require(pads is None or pads.tensor is not None, "pads that are computed")
    return g.ConvTranspose(
        x, w, b, auto_pad=auto_pad, dilations=dilations or None, group=group,
        kernel_shape=kernel_shape or None, output_padding=output_padding or None,
        pads=None if pads is None else pads.ints(), strides=strides or None,
    )  # fmt: skip
