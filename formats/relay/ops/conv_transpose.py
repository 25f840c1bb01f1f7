"""Transposed convolutions, in one to three dimensions and any layout."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint

from ..rules import reads
from ..target import emit_scalar, halves, legalizations, writes
from ..upgrade import kernel_layout_of
from .convolution import (
    FIXED_PADS,
    LAYOUTS,
    TUNING,
    add_bias,
    convolve_as_image,
    convolve_by_groups,
    convolve_integers,
    explicit_pads,
    repeat_per_axis,
    spatial,
    window,
    with_channels,
)
from .layouts import pack_layout, unpack_layout
from .shape import FAR, dilate


@reads.for_each({f"nn.conv{n}d_transpose": n for n in (1, 2, 3)}, ignore=TUNING)
def read_conv_transpose(
    count, g, x, w, *, strides: Ints | None = None, padding: Ints = (0,),
    output_padding: Ints = (0,), dilation: Ints = (1,), groups=1,
    data_layout: str | None = None, kernel_layout: str | None = None, out_layout="",
    out_dtype: DType | None = None, decide_by_shapes: Hint[bool] = False,
):  # fmt: skip
    """Kernels are held input channels first, in ONNX as by default in Relay."""
    axes = spatial(count)
    layout = data_layout or "NC" + axes
    if decide_by_shapes:
        kernel_layout = kernel_layout_of(x, w, kernel_layout, layout)
    x = unpack_layout(g, x, layout, "NC" + axes)
    w = unpack_layout(g, w, kernel_layout or "IO" + axes, "IO" + axes)
    dtype = out_dtype or x.type
    frame = window(w, strides or (1,), dilation, padding)
    more = repeat_per_axis(output_padding, count)
    if dtype.kind == "f":
        operands = (g.cast(x, dtype), g.cast(w, dtype))
        y = g.ConvTranspose(*operands, group=groups, output_padding=more, **frame)
    else:
        y = g.cast(transposed_convolve_integers(g, x, w, groups, frame, more, dtype), dtype)
    return pack_layout(g, y, "NC" + axes, out_layout or layout)


def transposed_convolve_integers(g, x: Value, w: Value, groups: int, frame, more: Ints, dtype):
    """As a convolution of the spread-out input with the kernel turned round, which is exact."""
    count = len(more)
    sum_dtype = DType.INT64 if dtype.bits == 64 else DType.INT32
    x = dilate(g, g.cast(x, sum_dtype), (1, 1, *frame["strides"]), 0)
    spans = [d * (k - 1) for k, d in zip(frame["kernel_shape"], frame["dilations"], strict=True)]
    begins = [s - p for s, p in zip(spans, frame["pads"][:count], strict=True)]
    ends = [s - p + m for s, p, m in zip(spans, frame["pads"][count:], more, strict=True)]
    inputs, outputs = w.static_shape[:2]
    axes = list(range(2, 2 + count))
    turned = g.Slice(w, [-1] * count, [-FAR] * count, axes, [-1] * count)
    split = g.Reshape(turned, [groups, inputs // groups, outputs, *w.static_shape[2:]])
    order = (0, 2, 1, *(a + 1 for a in axes))
    kernel = g.Reshape(
        g.Transpose(split, perm=order), [groups * outputs, inputs // groups, *w.static_shape[2:]]
    )
    plain = {**frame, "strides": (1,) * count, "pads": (*begins, *ends)}
    return convolve_integers(g, x, kernel, groups, plain, dtype)


@legalizations("ConvTranspose", only=FIXED_PADS)
def legalize_conv_transpose(g, x, w, b=None, *, group, output_shape=None, **window):
    """Where a size is dynamic, TVM has images only, and no groups; of volumes, never any."""
    if (known := with_channels(g, x, w, w.ranked_shape[0])) is not None:
        return g.ConvTranspose(known, w, b, group=group, **window)
    if x.is_static and (x.rank < 5 or group == 1):
        return None
    require(w.is_static, "a transposed convolution of dynamic sizes")
    if x.rank == 3:
        return convolve_as_image("ConvTranspose", g, x, w, b, group=group, **window)
    if group > 1:
        return convolve_by_groups(partial(g.ConvTranspose, **window), g, x, w, b, group, 1)
    return None


@writes("ConvTranspose", only=FIXED_PADS, ignore=("output_shape",))
def write_conv_transpose(
    r, x, w, b=None, *, kernel_shape, strides, dilations, pads, output_padding: Ints, group
):
    axes = len(kernel_shape)
    require(axes in LAYOUTS, f"a transposed convolution over {axes} axes")
    data, _, kernel = LAYOUTS[axes]
    if set(dilations) != {1}:
        w, kernel_shape = _dilate_kernel(r, w, kernel_shape, dilations)
    if axes == 2 and not x.is_static:
        return add_bias(
            r, _convolve_with_zeros(r, x, w, kernel_shape, strides, pads, output_padding), b
        )
    y = r[f"nn.conv{axes}d_transpose"](
        x, w, strides=strides, padding=explicit_pads(pads), groups=group,
        channels=w.ranked_shape[1] * group, kernel_size=kernel_shape, data_layout=data,
        kernel_layout=kernel, output_padding=output_padding,
    )  # fmt: skip
    return add_bias(r, y, b)


def _convolve_with_zeros(r, x, w, kernel_shape, strides, pads, output_padding):
    """A convolution of ``x`` with zeros in it; TVM errs in the shape of the other."""
    dilated = r.nn.dilate(x, strides=(1, 1, *strides), dilation_value=0.0)
    turned = r.transpose(r.reverse(r.reverse(w, axis=2), axis=3), axes=(1, 0, 2, 3))
    begin, end = halves(pads)
    before = [k - 1 - p for k, p in zip(kernel_shape, begin, strict=True)]
    after = [k - 1 - p + o for k, p, o in zip(kernel_shape, end, output_padding, strict=True)]
    require(min(before + after) >= 0, "a transposed convolution with pads wider than its kernel")
    form = {"channels": w.ranked_shape[1], "kernel_size": kernel_shape}
    if before == after:
        return r.nn.conv2d(dilated, turned, padding=before, **form)
    widths = ((0, 0), (0, 0), *zip(before, after, strict=True))
    return r.nn.conv2d(
        r.nn.pad(dilated, emit_scalar(r, 0, x.type), pad_width=widths), turned, **form
    )


def _dilate_kernel(r, w, kernel_shape, dilations):
    """A kernel with zeros between its numbers: Relay has no dilations here."""
    sizes = tuple((k - 1) * d + 1 for k, d in zip(kernel_shape, dilations, strict=True))
    kernel = r.nn.dilate(w, strides=(1, 1, *dilations), dilation_value=0.0)
    kernel.dtype, kernel.shape = w.dtype, (*w.ranked_shape[:2], *sizes)
    return kernel, sizes
