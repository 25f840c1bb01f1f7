"""Convolutions and pools with what is fused into them, or of another layout."""

from __future__ import annotations

from typing import Any

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import Value

from .activation import activate
from .table import apply_in_layout, ints_or_none, reads


def _conv(
    g: Any, x: Value, w: Value, b: Value | None, *, auto_pad: str, dilations: Ints, group: int,
    kernel_shape: Ints, pads: Ints, strides: Ints,
) -> Value:  # fmt: skip
    return g.Conv(  # type: ignore[no-any-return]
        x, w, b, auto_pad=auto_pad, dilations=ints_or_none(dilations), group=group,
        kernel_shape=ints_or_none(kernel_shape), pads=ints_or_none(pads),
        strides=ints_or_none(strides),
    )  # fmt: skip


def _conv_rule(channels_last: bool) -> Any:
    def read(
        g: Any, x: Value, w: Value, b: Value | None = None, z: Value | None = None,
        *, activation: str = "", activation_params: tuple[float, ...] = (),
        auto_pad: str = "NOTSET", dilations: Ints = (), group: int = 1, kernel_shape: Ints = (),
        pads: Ints = (), strides: Ints = (),
    ) -> Value:  # fmt: skip
        window = {"auto_pad": auto_pad, "dilations": dilations, "kernel_shape": kernel_shape}
        window |= {"pads": pads, "strides": strides}
        found = apply_in_layout(
            g, x, channels_last, lambda v: _conv(g, v, w, b, group=group, **window)  # type: ignore
        )  # fmt: skip
        found = found if z is None else g.Add(found, z)
        return activate(g, found, activation, activation_params)

    return read


reads("FusedConv")(_conv_rule(False))
reads("NhwcFusedConv")(_conv_rule(True))


@reads("NhwcConv")
def read_nhwc_conv(
    g: Any, x: Value, w: Value, b: Value | None = None, *, auto_pad: str = "NOTSET",
    dilations: Ints = (), group: int = 1, kernel_shape: Ints = (), pads: Ints = (),
    strides: Ints = (),
) -> Value:  # fmt: skip
    return _conv_rule(True)(  # type: ignore[no-any-return]
        g, x, w, b, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape,
        pads=pads, strides=strides,
    )  # fmt: skip


@reads("ConvTransposeWithDynamicPads")
def read_conv_transpose(
    g: Any, x: Value, w: Value, pads: Value | None = None, b: Value | None = None,
    *, auto_pad: str = "NOTSET", dilations: Ints = (), group: int = 1, kernel_shape: Ints = (),
    output_padding: Ints = (), strides: Ints = (),
) -> Value:  # fmt: skip
    require(pads is None or pads.tensor is not None, "pads that are computed")
    return g.ConvTranspose(  # type: ignore[no-any-return]
        x, w, b, auto_pad=auto_pad, dilations=ints_or_none(dilations), group=group,
        kernel_shape=ints_or_none(kernel_shape), output_padding=ints_or_none(output_padding),
        pads=None if pads is None else pads.ints(), strides=ints_or_none(strides),
    )  # fmt: skip
