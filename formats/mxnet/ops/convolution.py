"""Convolutions and their transposes, in one to three dimensions."""

from __future__ import annotations

import math

from serde.errors import ConversionError, require
from serde.ir import arrays
from serde.ir.geometry import Ints, invert_perm, may_be_same
from serde.ir.graph import DType, Value, show_shape
from serde.rewrite.rules import Hint
from serde.spec.expressions import END
from serde.version_converter.adapters.pooling import pad_window_axes

from ..rules import reads
from ..target import legalizations, require_symmetric_pads, writes
from .deconvolution_phases import convolve_turned, phases
from .padding import is_symmetric, pad_images
from .shared_attributes import with_attributes_of

TUNING = ("num_filter", "no_bias", "workspace", "cudnn_tune", "cudnn_off")
CHANNELS_FIRST = (None, "NCW", "NCHW", "NCDHW")
CHANNELS_LAST = ("NWC", "NHWC", "NDHWC")


def window(kernel: Ints, stride: Ints, dilate: Ints, pad: Ints):
    """A sliding window as ONNX spells it; MXNet leaves out what is 1 (or, for pads, 0)."""
    ones = (1,) * len(kernel)
    for values in (stride, dilate, pad):
        require(len(values) in (0, len(kernel)), f"{values} does not fit the kernel {kernel}")
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
    same = may_be_same(x.ranked_shape[1], channels)
    require(
        same, f"the weight has {channels} input channels, and the data have {x.ranked_shape[1]}"
    )


def apply_channels_first(g, layout: str | None, apply, *tensors: Value):
    """Apply a function of tensors in NC… (weights in OI…), whatever the layout."""
    if layout in CHANNELS_FIRST:
        return apply(*tensors)
    require(layout in CHANNELS_LAST, f"layout={layout!r} is unknown")
    order = (0, len(layout) - 1, *range(1, len(layout) - 1))
    y = apply(*(g.Transpose(x, perm=order) for x in tensors))
    return g.Transpose(y, perm=invert_perm(order))


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
        check_channels(
            x, kernel, w.ranked_shape[1] * num_group if isinstance(w.ranked_shape[1], int) else None
        )
        return g.Conv(x, w, b, group=num_group, **frame)

    return apply_channels_first(g, layout, apply, x, w)


@reads("Deconvolution", ignore=TUNING)
def read_deconvolution(
    g, x, w, b=None, *, kernel: Ints, stride=(), dilate=(), pad=(), adj=(), target_shape=(),
    num_group=1, layout: str | None = None, requantized: Hint[bool] = False,
):  # fmt: skip
    frame = window(kernel, stride, dilate, pad)
    is_plain = not any(target_shape) and num_group == 1 and layout in CHANNELS_FIRST
    if requantized and is_plain and (by_axis := phases(x, w, frame, adj or (0, 0))):
        return convolve_turned(g, x, w, b, by_axis)

    def apply(x, w):
        check_channels(x, kernel, w.ranked_shape[0])
        pads = {"pads": frame["pads"], "output_padding": adj or None}
        if any(target_shape):
            pads = solve_target_shape(x, target_shape, frame)
        return g.ConvTranspose(x, w, b, group=num_group, **{**frame, **pads})

    return apply_channels_first(g, layout, apply, x, w)


def solve_target_shape(x: Value, target: Ints, frame):
    """Pads and output padding that give ``target``, as MXNet's InferPad computes them."""
    require(all(target), f"target_shape={target} leaves a size open")
    dilate = frame["dilations"]
    require(set(dilate) == {1}, f"target_shape with dilate={dilate}, which MXNet computes wrongly")
    sizes = x.ranked_shape[2:]
    static = all(isinstance(size, int) for size in sizes)
    require(static, f"target_shape needs to know the sizes {show_shape(sizes)}")
    pads, adjs = [], []
    for size, expected, k, s in zip(
        sizes, target, frame["kernel_shape"], frame["strides"], strict=True
    ):
        surplus = s * (size - 1) + k - expected
        require(surplus >= 0, f"target_shape={target} is larger than the output can be")
        pads.append((surplus + 1) // 2)
        adjs.append(surplus % 2)
    return {"pads": tuple(pads) * 2, "output_padding": tuple(adjs)}


def present_operands(*values: Value | None) -> list[Value]:
    return [v for v in values if v is not None]


def window_attributes(b: Value | None, *, kernel_shape, strides, dilations, pads, group):
    """What MXNet says of a layer of windows, with a bias or without."""
    return {
        "kernel": kernel_shape,
        "stride": strides,
        "dilate": dilations,
        "pad": require_symmetric_pads(pads),
        "num_group": group,
        "no_bias": b is None,
    }


@writes("Conv")
@with_attributes_of(window_attributes)
def write_conv(s, x, w, b=None, *, kernel_shape, pads, **form):
    half = len(kernel_shape)
    if pads[:half] != pads[half:]:
        x, pads = pad_images(s, x, pads, 0.0), (0,) * 2 * half
    attrs = window_attributes(b, kernel_shape=kernel_shape, pads=pads, **form)
    return s.Convolution(x, w, *present_operands(b), num_filter=w.static_shape[0], **attrs)


@writes("ConvTranspose")
@with_attributes_of(window_attributes)
def write_conv_transpose(s, x, w, b=None, *, output_padding, group, **form):
    attrs = window_attributes(b, group=group, **form)
    return s.Deconvolution(
        x, w, *present_operands(b), num_filter=w.static_shape[1] * group, adj=output_padding,
        **attrs,
    )  # fmt: skip


@legalizations("Conv")
def legalize_conv(g, x, w, b=None, *, pads, **form):
    """MXNet pads both ends alike; images and volumes are padded by its ``Pad``."""
    if is_symmetric(pads) or x.rank != 3:
        return None
    return g.Conv(pad_window_axes(g, x, pads), w, b, **form)


@legalizations("ConvTranspose")
def legalize_conv_transpose(
    g, x, w, b=None, *, group, output_shape: Ints | None = None, auto_pad="NOTSET", **form
):
    """Pads that differ are cut off behind; zeros stand where an output is asked for beyond."""
    if w.rank == 5 and x.type is DType.FLOAT64:
        raise ConversionError("of volumes in float64, for which MXNet has no kernel")
    dilations = form.get("dilations") or (1,)
    if set(dilations) != {1} and (w.rank == 5 or x.type is DType.FLOAT64):
        dilated = dilate_kernel(g, w, dilations)
        form |= {"kernel_shape": dilated.static_shape[2:], "dilations": (1,) * len(dilations)}
        asked = {"output_shape": output_shape, "auto_pad": auto_pad}
        return g.ConvTranspose(x, dilated, b, group=group, **form, **asked)
    pads = form.get("pads")
    settled = output_shape is None and auto_pad == "NOTSET" and pads is not None
    if settled and is_symmetric(pads):
        return None
    kernel_shape = form.get("kernel_shape") or w.static_shape[2:]
    n = len(kernel_shape)
    strides, dilations = (form.get(name) or (1,) * n for name in ("strides", "dilations"))
    more = form.get("output_padding") or (0,) * n
    frame = {"kernel_shape": kernel_shape, "strides": strides, "dilations": dilations}
    if pads is None or not settled:
        pads = solve_pads(x, output_shape, more, auto_pad, **frame)
    y = g.ConvTranspose(x, w, b, output_padding=more, group=group, pads=(0,) * 2 * n, **frame)
    cut = [max(p, 0) for p in pads]
    y = g.Slice(y, cut[:n], [-p or END for p in cut[n:]], list(range(2, n + 2)), [1] * n)
    beyond = [max(-p, 0) for p in pads]
    require(b is None or not any(beyond), "an output_shape beyond what the windows reach")
    return pad_window_axes(g, y, tuple(beyond)) if any(beyond) else y


def dilate_kernel(g, w: Value, dilations: Ints):
    """A kernel with zeros between its elements.

    MXNet dilates no transposed convolution of volumes, and errs in those of float64.
    """
    for axis, gap in enumerate(dilations, 2):
        size = w.static_shape[axis]
        if gap == 1 or size == 1:
            continue
        before, behind = math.prod(w.static_shape[:axis]), math.prod(w.static_shape[axis + 1 :])
        rows = g.Reshape(w, [before, size, 1, behind])
        zeros = g.const(arrays.zeros((before, size, gap - 1, behind), w.type.numpy))
        rows = g.Reshape(g.Concat(rows, zeros, axis=2), [before, size * gap, behind])
        reach = (size - 1) * gap + 1
        shape = [*w.static_shape[:axis], reach, *w.static_shape[axis + 1 :]]
        w = g.Reshape(g.slice_axis(rows, 1, 0, reach), shape)
    return w


def solve_pads(
    x: Value, output_shape: Ints | None, more: Ints, auto_pad: str, *, kernel_shape: Ints,
    strides: Ints, dilations: Ints,
) -> Ints:  # fmt: skip
    """What is to be cut off for an output of the shape asked for; negative where it is short."""
    if output_shape is None or not x.is_static:
        raise ConversionError("an output_shape over a dynamic size")
    axes = zip(x.static_shape[2:], strides, more, kernel_shape, dilations, strict=True)
    sizes = [s * (d - 1) + m + (k - 1) * e + 1 for d, s, m, k, e in axes]
    over = [w - o for w, o in zip(sizes, output_shape[-len(sizes) :], strict=True)]
    small = [math.floor(o / 2) for o in over]
    large = [o - s for o, s in zip(over, small, strict=True)]
    return (*small, *large) if auto_pad == "SAME_UPPER" else (*large, *small)
