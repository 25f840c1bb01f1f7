"""Convolutions and pools with what is fused into them, or of another layout."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import Value

from .activation import activate
from .table import apply_in_layout, ints_or_none, reads


def _conv(
    g, x: Value, w: Value, b: Value | None, *, auto_pad: str, dilations: Ints, group: int,
    kernel_shape: Ints, pads: Ints, strides: Ints,
):  # fmt: skip
    return g.Conv(
        x, w, b, auto_pad=auto_pad, dilations=ints_or_none(dilations), group=group,
        kernel_shape=ints_or_none(kernel_shape), pads=ints_or_none(pads),
        strides=ints_or_none(strides),
    )  # fmt: skip


def _conv_rule(channels_last: bool):
    def read(
        g, x, w, b=None, z=None, *, activation="", activation_params: tuple[float, ...] = (),
        auto_pad="NOTSET", dilations=(), group=1, kernel_shape=(), pads=(), strides=(),
    ):  # fmt: skip
        window = {"auto_pad": auto_pad, "dilations": dilations, "kernel_shape": kernel_shape}
        window |= {"pads": pads, "strides": strides}
        y = apply_in_layout(
            g, x, channels_last, lambda v: _conv(g, v, w, b, group=group, **window)
        )  # fmt: skip
        y = y if z is None else g.Add(y, z)
        return activate(g, y, activation, activation_params)

    return read


reads("FusedConv")(_conv_rule(False))
reads("NhwcFusedConv")(_conv_rule(True))


@reads("NhwcConv")
def read_nhwc_conv(
    g, x, w, b=None, *, auto_pad="NOTSET", dilations=(), group=1, kernel_shape=(), pads=(),
    strides=(),
):  # fmt: skip
    return _conv_rule(True)(
        g, x, w, b, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape,
        pads=pads, strides=strides,
    )  # fmt: skip


@reads("ConvTransposeWithDynamicPads")
def read_conv_transpose(
    g, x, w, pads=None, b=None, *, auto_pad="NOTSET", dilations=(), group=1, kernel_shape=(),
    output_padding=(), strides=(),
):  # fmt: skip
    require(pads is None or pads.tensor is not None, "pads that are computed")
    return g.ConvTranspose(
        x, w, b, auto_pad=auto_pad, dilations=ints_or_none(dilations), group=group,
        kernel_shape=ints_or_none(kernel_shape), output_padding=ints_or_none(output_padding),
        pads=None if pads is None else pads.ints(), strides=ints_or_none(strides),
    )  # fmt: skip
