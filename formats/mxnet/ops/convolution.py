"""Convolutions and their transposes, in one to three dimensions."""

from __future__ import annotations

from serde.errors import require
from serde.geometry import Ints, inverse
from serde.graph import Value

from ..rules import reads

TUNING = ("num_filter", "no_bias", "workspace", "cudnn_tune", "cudnn_off")
CHANNELS_FIRST = ("None", "NCW", "NCHW", "NCDHW")
CHANNELS_LAST = ("NWC", "NHWC", "NDHWC")


def window(kernel: Ints, stride: Ints, dilate: Ints, pad: Ints):
    """A sliding window as ONNX spells it; MXNet leaves out what is 1 (or, for pads, 0)."""
    ones = (1,) * len(kernel)
    for given in (stride, dilate, pad):
        require(len(given) in (0, len(kernel)), f"{given} does not fit the kernel {kernel}")
    return {
        "kernel_shape": kernel,
        "strides": stride or ones,
        "dilations": dilate or ones,
        "pads": (pad or (0,) * len(kernel)) * 2,
    }


def channels_first(rank: int) -> Ints:
    """The permutation from N…C to NC…."""
    return (0, rank - 1, *range(1, rank - 1))


def in_channels_first(g, layout, x: Value, w: Value, apply):
    """Apply a function of ``x`` and ``w`` in NC… (weights OI…), whatever the layout."""
    require(layout in CHANNELS_FIRST + CHANNELS_LAST, f"layout={layout!r} is unknown")
    if layout in CHANNELS_FIRST:
        return apply(x, w)
    order = channels_first(len(layout))
    y = apply(g.Transpose(x, perm=order), g.Transpose(w, perm=order))
    return g.Transpose(y, perm=inverse(order))


@reads("Convolution", ignore=TUNING)
def read_convolution(
    g, x, w, b=None, *, kernel: Ints, stride=(), dilate=(), pad=(), num_group=1, layout="None"
):
    frame = window(kernel, stride, dilate, pad)

    def apply(x, w):
        return g.Conv(x, w, b, group=num_group, **frame)

    return in_channels_first(g, layout, x, w, apply)


@reads("Deconvolution", ignore=TUNING)
def read_deconvolution(
    g, x, w, b=None, *, kernel: Ints, stride=(), dilate=(), pad=(), adj=(), target_shape=(),
    num_group=1, layout="None",
):  # fmt: skip
    frame = window(kernel, stride, dilate, pad)

    def apply(x, w):
        pads = {"pads": frame["pads"], "output_padding": adj or None}
        if any(target_shape):
            pads = to_target(x.dims[2:], target_shape, frame)
        return g.ConvTranspose(x, w, b, group=num_group, **{**frame, **pads})

    return in_channels_first(g, layout, x, w, apply)


def to_target(sizes: Ints, target: Ints, frame):
    """Pads and output padding that give ``target``, as MXNet's InferPad computes them."""
    pads, adjs = [], []
    for size, wanted, k, s, d in zip(
        sizes, target, frame["kernel_shape"], frame["strides"], frame["dilations"], strict=True
    ):
        surplus = s * (size - 1) + d * (k - 1) + 1 - wanted
        require(surplus >= 0, f"target_shape={target} is larger than the output can be")
        pads.append((surplus + 1) // 2)
        adjs.append(surplus % 2)
    return {"pads": tuple(pads) * 2, "output_padding": tuple(adjs)}
