"""Convolutions and their transposes, in one to three dimensions."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import Ints, inverse, may_be_same
from serde.ir.graph import Value, show_shape

from ..rules import reads
from .deconvolution_phases import in_phases, phases

TUNING = ("num_filter", "no_bias", "workspace", "cudnn_tune", "cudnn_off")
CHANNELS_FIRST = (None, "NCW", "NCHW", "NCDHW")
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


def check_channels(x: Value, kernel: Ints, channels):
    """Refuse data of another rank than the kernel's, or of other channels than the weight's."""
    if x.shape is None:
        return
    axes = len(kernel) + 2
    require(x.rank == axes, f"kernel={kernel} takes data of {axes} axes, and they have {x.rank}")
    same = may_be_same(x.known[1], channels)
    require(same, f"the weight has {channels} input channels, and the data have {x.known[1]}")


def in_channels_first(g, layout: str | None, apply, *tensors: Value):
    """Apply a function of tensors in NC… (weights in OI…), whatever the layout."""
    if layout in CHANNELS_FIRST:
        return apply(*tensors)
    require(layout in CHANNELS_LAST, f"layout={layout!r} is unknown")
    order = (0, len(layout) - 1, *range(1, len(layout) - 1))
    y = apply(*(g.Transpose(x, perm=order) for x in tensors))
    return g.Transpose(y, perm=inverse(order))


@reads("Convolution", "Convolution_v1", ignore=TUNING)
def read_convolution(
    g,
    x,
    w,
    b=None,
    *,
    kernel: Ints,
    stride=(),
    dilate=(),
    pad=(),
    num_group=1,
    layout: str | None = None,
):
    frame = window(kernel, stride, dilate, pad)

    def apply(x, w):
        check_channels(x, kernel, w.known[1] * num_group if isinstance(w.known[1], int) else None)
        return g.Conv(x, w, b, group=num_group, **frame)

    return in_channels_first(g, layout, apply, x, w)


@reads("Deconvolution", ignore=TUNING)
def read_deconvolution(
    g, x, w, b=None, *, kernel: Ints, stride=(), dilate=(), pad=(), adj=(), target_shape=(),
    num_group=1, layout: str | None = None, requantized=False,
):  # fmt: skip
    frame = window(kernel, stride, dilate, pad)
    is_plain = not any(target_shape) and num_group == 1 and layout in CHANNELS_FIRST
    if requantized and is_plain and (found := phases(x, w, frame, adj or (0, 0))):
        return in_phases(g, x, w, b, found)

    def apply(x, w):
        check_channels(x, kernel, w.known[0])
        pads = {"pads": frame["pads"], "output_padding": adj or None}
        if any(target_shape):
            pads = to_target(x, target_shape, frame)
        return g.ConvTranspose(x, w, b, group=num_group, **{**frame, **pads})

    return in_channels_first(g, layout, apply, x, w)


def to_target(x: Value, target: Ints, frame):
    """Pads and output padding that give ``target``, as MXNet's InferPad computes them."""
    require(all(target), f"target_shape={target} leaves a size open")
    dilate = frame["dilations"]
    require(set(dilate) == {1}, f"target_shape with dilate={dilate}, which MXNet computes wrongly")
    sizes = x.known[2:]
    static = all(isinstance(size, int) for size in sizes)
    require(static, f"target_shape needs to know the sizes {show_shape(sizes)}")
    pads, adjs = [], []
    for size, wanted, k, s in zip(
        sizes, target, frame["kernel_shape"], frame["strides"], strict=True
    ):
        surplus = s * (size - 1) + k - wanted
        require(surplus >= 0, f"target_shape={target} is larger than the output can be")
        pads.append((surplus + 1) // 2)
        adjs.append(surplus % 2)
    return {"pads": tuple(pads) * 2, "output_padding": tuple(adjs)}
