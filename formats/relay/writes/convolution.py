"""Convolutions."""

from __future__ import annotations

from serde.errors import require
from serde.geometry import Ints
from serde.graph import Value

from .recast import recasts
from .table import halves, windowed, writes

LAYOUTS = {1: ("NCW", "OIW", "IOW"), 2: ("NCHW", "OIHW", "IOHW"), 3: ("NCDHW", "OIDHW", "IODHW")}
FIXED_PADS = {"auto_pad": ("NOTSET",)}


def spelled(pads: Ints) -> Ints:
    """Both pads of one axis, which ``nn.conv1d`` asks for."""
    return pads if len(pads) == 2 else windowed(pads)


def biased(r, made: Value, b: Value | None) -> Value:
    return made if b is None else r.nn.bias_add(made, b, axis=1)


@recasts("Conv")
def recast_conv(g, x, w, b=None, *, kernel_shape, strides, dilations, pads, group, auto_pad=None):
    """Pads below zero are cut off; one axis is none of Relay's where there are groups."""
    if min(pads) < 0:
        return _cut(g, x, w, b, kernel_shape, strides, dilations, pads, group)
    if len(kernel_shape) == 1 and group > 1:
        flat = g.Conv(
            g.Unsqueeze(x, [2]), g.Unsqueeze(w, [2]), b, kernel_shape=(1, *kernel_shape),
            strides=(1, *strides), dilations=(1, *dilations), pads=(0, pads[0], 0, pads[1]),
            group=group,
        )  # fmt: skip
        return g.Squeeze(flat, [2])
    return None


def _cut(g, x, w, b, kernel_shape, strides, dilations, pads, group):
    begin, end = halves(pads)
    padded = g.Pad(x, (0, 0, *begin, 0, 0, *end))
    return g.Conv(
        padded, w, b, kernel_shape=kernel_shape, strides=strides, dilations=dilations,
        pads=(0,) * len(pads), group=group,
    )  # fmt: skip


@writes("Conv", only=FIXED_PADS)
def write_conv(r, x, w, b=None, *, kernel_shape, strides, dilations, pads, group):
    axes = len(kernel_shape)
    require(axes in LAYOUTS, f"a convolution over {axes} axes")
    require(x.type.kind == "f", f"a convolution of {x.type.value} elements")
    data, kernel, _ = LAYOUTS[axes]
    channels = w.known[0]
    require(isinstance(channels, int), "a convolution whose weight has a size only the run tells")
    made = r[f"nn.conv{axes}d"](
        x, w, strides=strides, padding=spelled(pads), dilation=dilations, groups=group,
        channels=channels, kernel_size=kernel_shape, data_layout=data, kernel_layout=kernel,
    )  # fmt: skip
    return biased(r, made, b)


@writes("ConvTranspose", only=FIXED_PADS, ignore=("output_shape",))
def write_conv_transpose(
    r, x, w, b=None, *, kernel_shape, strides, dilations, pads, output_padding: Ints, group
):
    axes = len(kernel_shape)
    require(axes in LAYOUTS, f"a transposed convolution over {axes} axes")
    data, _, kernel = LAYOUTS[axes]
    if set(dilations) != {1}:
        w, kernel_shape = _dilated(r, w, kernel_shape, dilations)
    made = r[f"nn.conv{axes}d_transpose"](
        x, w, strides=strides, padding=spelled(pads), groups=group, channels=w.known[1] * group,
        kernel_size=kernel_shape, data_layout=data, kernel_layout=kernel,
        output_padding=output_padding,
    )  # fmt: skip
    return biased(r, made, b)


def _dilated(r, w, kernel_shape, dilations):
    """A kernel with zeros between its numbers: Relay has no dilations here."""
    wide = tuple((k - 1) * d + 1 for k, d in zip(kernel_shape, dilations, strict=True))
    made = r.nn.dilate(w, strides=(1, 1, *dilations), dilation_value=0.0)
    made.dtype, made.shape = w.dtype, (*w.known[:2], *wide)
    return made, wide
