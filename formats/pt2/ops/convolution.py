"""Convolutions and their transposes."""

from __future__ import annotations

from serde.errors import require

from ..rules import reads
from .resize import read_im2col

CONVS = {f"conv{n}d": n for n in (1, 2, 3)}
TRANSPOSED = {"conv_transpose1d": 1, "conv_transpose2d.input": 2, "conv_transpose3d.input": 3}


def for_each_axis(values, n):
    """A number for each axis."""
    return tuple(values) * n if len(values) == 1 else tuple(values)


def convolve(g, x, w, b, n, *, transposed=False, extra=(0,), **attrs):
    """A convolution over ``n`` axes, of one image too."""
    single = x.rank == n + 1
    x = g.Unsqueeze(x, [0]) if single else x
    if transposed:
        y = g.ConvTranspose(x, w, b, output_padding=for_each_axis(extra, n), **attrs)
    else:
        y = g.Conv(x, w, b, **attrs)
    return g.Squeeze(y, [0]) if single else y


def frame(n, stride, padding, dilation, groups):
    """The window's attributes."""
    return {"strides": for_each_axis(stride, n), "pads": for_each_axis(padding, n) * 2,
            "dilations": for_each_axis(dilation, n), "group": groups}  # fmt: skip


@reads.for_each(CONVS)
def read_conv(n, g, x, w, b, stride, padding, dilation, groups):
    if not isinstance(groups, int):
        frames = list_frames(f"conv{n}d", x, b, (stride, padding, dilation))
        return convolve_groups(g, x, w, frames, groups)
    return convolve(g, x, w, b, n, **frame(n, stride, padding, dilation, groups))


def list_frames(op, x, b, numbers):
    """Numbers for both axes of a convolution of images whose groups are of a size by name."""
    require("2d" in op and b is None and x.rank == 4, f"groups of a size by name in {op}: fix that "
            "size when you export")  # fmt: skip
    return [for_each_axis(v, 2) for v in numbers]


def convolve_groups(g, x, w, frames, groups):
    """A convolution whose groups are of a size by name, as one of an image by its own weights.

    Its windows are columns, which the weights are multiplied with.
    """
    channels, *kernel = list_known(w, x)
    stride, padding, dilation = frames
    axes = zip(x.shape[2:], kernel, *frames, strict=True)
    sizes = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in axes]
    images = g.reshape(x, [-1, channels, *x.shape[2:]])
    columns = read_im2col(g, images, kernel, dilation, padding, stride)
    area = channels * kernel[0] * kernel[1]
    columns = g.reshape(columns, [-1, groups, area, sizes[0] * sizes[1]])
    y = g.MatMul(g.reshape(w, [groups, -1, area]), columns)
    return g.reshape(y, [g.size_of(x, 0), g.size_of(w, 0), *sizes])


def list_known(w, x):
    """The sizes of one group's weights, which are known."""
    is_known = all(isinstance(s, int) for s in (*w.shape[1:], *x.shape[2:]))
    require(is_known, "groups of a size by name over images of unknown size: fix the image's")
    return w.shape[1:]


def transpose_groups(g, x, w, frames, groups):
    """The transpose of such a convolution: its columns are added up to images."""
    filters, *kernel = list_known(w, x)
    stride, padding, dilation, _ = frames
    axes = zip(x.shape[2:], kernel, *frames, strict=True)
    sizes = [(s - 1) * t - 2 * p + d * (k - 1) + e + 1 for s, k, t, p, d, e in axes]
    area = filters * kernel[0] * kernel[1]
    weights = g.Transpose(g.reshape(w, [groups, -1, area]), perm=[0, 2, 1])
    pixels = g.Div(g.size_of(w, 0), groups), x.shape[2] * x.shape[3]
    columns = g.MatMul(weights, g.reshape(x, [-1, groups, *pixels]))
    images = g.Col2Im(
        g.reshape(columns, [-1, area, pixels[1]]), g.const(sizes), g.const(list(kernel)),
        dilations=dilation, pads=padding * 2, strides=stride,
    )  # fmt: skip
    return g.reshape(images, [g.size_of(x, 0), g.multiply_sizes([groups, filters]), *sizes])


@reads.for_each({f"conv{n}d.padding": n for n in (1, 2, 3)})
def read_conv_padding(n, g, x, w, b, stride, padding, dilation, groups):
    """``same`` puts the odd row at the end."""
    attrs = frame(n, stride, (0,), dilation, groups)
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(attrs["dilations"], w.static_shape[2:], strict=True)]
        attrs["pads"] = (*(t // 2 for t in totals), *(t - t // 2 for t in totals))
    return convolve(g, x, w, b, n, **attrs)


@reads.for_each(TRANSPOSED)
def read_conv_transpose(n, g, x, w, b, stride, padding, output_padding, groups, dilation):
    if not isinstance(groups, int):
        numbers = stride, padding, dilation, output_padding
        frames = list_frames(f"conv_transpose{n}d", x, b, numbers)
        return transpose_groups(g, x, w, frames, groups)
    return convolve(g, x, w, b, n, transposed=True, extra=output_padding,
                    **frame(n, stride, padding, dilation, groups))  # fmt: skip


@reads("convolution")
def read_convolution(g, x, w, b, stride, padding, dilation, transposed, output_padding, groups):
    n = w.rank - 2
    require(n > 0, "a convolution over no axis")
    return convolve(g, x, w, b, n, transposed=transposed, extra=output_padding or (0,),
                    **frame(n, stride, padding, dilation, groups))  # fmt: skip
