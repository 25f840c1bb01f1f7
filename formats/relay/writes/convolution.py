"""Convolutions."""

from __future__ import annotations

from functools import partial
from itertools import product

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from ..target import halves, scalar, windowed, writes
from .recast import recasts

LAYOUTS = {1: ("NCW", "OIW", "IOW"), 2: ("NCHW", "OIHW", "IOHW"), 3: ("NCDHW", "OIDHW", "IODHW")}
FIXED_PADS = {"auto_pad": ("NOTSET",)}
MOST_GROUPS, MOST_PLACES = 64, 121  # of convolutions laid out
INT32_MOST = 2**31 - 1


def spelled(pads: Ints) -> Ints:
    """Both pads of one axis, which ``nn.conv1d`` asks for."""
    return pads if len(pads) == 2 else windowed(pads)


def biased(r, made: Value, b: Value | None) -> Value:
    return made if b is None else r.nn.bias_add(made, b, axis=1)


@recasts("Conv")
def recast_conv(g, x, w, b=None, *, kernel_shape, strides, dilations, pads, group, auto_pad=None):
    """Pads below zero are cut off; one axis is none of Relay's where there are groups.

    Where sizes are open, TVM has images only, pads that are the same at both ends, and no groups.
    """
    if (known := with_channels(g, x, w, w.known[1], group)) is not None:
        return g.Conv(
            known, w, b, kernel_shape=kernel_shape, strides=strides, dilations=dilations,
            pads=pads, group=group,
        )  # fmt: skip
    begin, end = halves(pads)
    if min(pads) < 0 or (begin != end and not x.is_static):
        return _cut(g, x, w, b, kernel_shape, strides, dilations, pads, group)
    if len(kernel_shape) == 1 and (group > 1 or not x.is_static):
        flat = g.Conv(
            g.Unsqueeze(x, [2]), g.Unsqueeze(w, [2]), b, kernel_shape=(1, *kernel_shape),
            strides=(1, *strides), dilations=(1, *dilations), pads=(0, pads[0], 0, pads[1]),
            group=group,
        )  # fmt: skip
        return g.Squeeze(flat, [2])
    if len(kernel_shape) == 3 and not x.is_static and w.is_static and not has_open_axes(x, 3):
        return _by_slices(g, x, w, b, kernel_shape, strides, dilations, pads, group)
    told = w.is_static and isinstance(x.known[1], int) and len(kernel_shape) == 2
    if group > 1 and has_open_axes(x) and told:
        form = {"strides": strides, "dilations": dilations, "pads": pads}
        if x.known[1] == group:
            return _by_places(g, x, w, b, kernel_shape, **form)
        return _by_groups(partial(g.Conv, kernel_shape=kernel_shape, **form), g, x, w, b, group, 0)
    return None


def has_open_axes(x: Value, first: int = 2) -> bool:
    """Whether a size behind batch and channels is open."""
    return not all(isinstance(d, int) for d in x.known[first:])


def _by_slices(g, x, w, b, kernel_shape, strides, dilations, pads, group):
    """A volume as images, of which each slice of the kernel gives a part of the sum."""
    begin, end = halves(pads)
    x = g.Pad(x, (0, 0, begin[0], 0, 0, 0, 0, end[0], 0, 0)) if pads[0] or pads[3] else x
    depth, step = kernel_shape[0], dilations[0]
    form = {
        "kernel_shape": kernel_shape[1:], "strides": strides[1:], "dilations": dilations[1:],
        "pads": (*begin[1:], *end[1:]), "group": group,
    }  # fmt: skip
    parts = []
    for at in range(depth):
        cut = g.Slice(x, [at * step], [(at + 1 - depth) * step or INT32_MOST], [2], [strides[0]])
        images = g.Reshape(g.Transpose(cut, perm=(0, 2, 1, 3, 4)), [-1, x.known[1], *x.known[3:]])
        own = g.Squeeze(g.Slice(w, [at], [at + 1], [2], [1]), [2])
        parts.append(g.Conv(images, own, None if at else b, **form))
    made = g.Sum(*parts)
    lead = g.Concat(g.Shape(cut, end=1), g.Shape(cut, start=2, end=3), axis=0)
    whole = g.Reshape(made, g.Concat(lead, g.Shape(made, start=1), axis=0))
    return g.Transpose(whole, perm=(0, 2, 1, 3, 4))


def _by_groups(convolve, g, x, w, b, group: int, outputs: int):
    """A convolution for each group; ``outputs`` is the axis of the weight that has the results."""
    require(group <= MOST_GROUPS, f"{group} groups of channels in images of dynamic sizes")
    each, made = x.known[1] // group, []
    count = w.known[0] // group if outputs == 0 else w.known[1]
    cut = w.known[0] // group
    for at in range(group):
        own = g.Slice(x, [at * each], [(at + 1) * each], [1], [1])
        weight = g.Slice(w, [at * cut], [(at + 1) * cut], [0], [1])
        bias = b and g.Slice(b, [at * count], [(at + 1) * count], [0], [1])
        made.append(convolve(own, weight, bias))
    return g.Concat(*made, axis=1)


def _by_places(g, x, w, b, kernel_shape, strides, dilations, pads):
    """A channel alone: the sum over the places of the kernel of what lies there."""
    (rows, columns), filters = kernel_shape, w.known[0]
    require(rows * columns <= MOST_PLACES, f"a kernel of {rows}×{columns} over dynamic sizes")
    x = g.Pad(x, (0, 0, *pads[:2], 0, 0, *pads[2:])) if any(pads) else x
    if filters != x.known[1]:
        x = g.Gather(x, [i * x.known[1] // filters for i in range(filters)], axis=1)
    parts = []
    for at in product(range(rows), range(columns)):
        starts = [i * d for i, d in zip(at, dilations, strict=True)]
        ends = [
            (i + 1 - k) * d or INT32_MOST
            for i, k, d in zip(at, kernel_shape, dilations, strict=True)
        ]
        number = g.Slice(w, at, [i + 1 for i in at], [2, 3], [1, 1])
        part = g.Slice(x, starts, ends, [2, 3], strides)
        parts.append(g.Mul(part, g.Reshape(number, [filters, 1, 1])))
    made = g.Sum(*parts)
    return made if b is None else g.Add(made, g.Reshape(b, [filters, 1, 1]))


def with_channels(g, x: Value, w: Value, each, group: int = 1) -> Value | None:
    """``x`` with its number of channels, which TVM has to know, from the weight; None if it has."""
    if isinstance(x.known[1], int) or not isinstance(each, int):
        return None
    return g.Reshape(x, [0, each * group, *[0] * (x.rank - 2)])  # type: ignore[no-any-return]


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
    require(isinstance(channels, int), "a convolution whose weight has a dynamic size")
    wide = "float32" if x.type is DType.FLOAT16 else None
    made = r[f"nn.conv{axes}d"](
        x, w, strides=strides, padding=spelled(pads), dilation=dilations, groups=group,
        channels=channels, kernel_size=kernel_shape, data_layout=data, kernel_layout=kernel,
        out_dtype=wide,
    )  # fmt: skip
    return biased(r, r.cast(made, dtype=x.type.value) if wide else made, b)


@recasts("ConvTranspose")
def recast_conv_transpose(
    g, x, w, b=None, *, group, auto_pad=None, output_shape=None, kernel_shape, strides, dilations,
    pads, output_padding,
):  # fmt: skip
    """Where a size is open, TVM has images only, and no groups."""
    form = {
        "kernel_shape": kernel_shape, "strides": strides, "dilations": dilations, "pads": pads,
        "output_padding": output_padding,
    }  # fmt: skip
    if (known := with_channels(g, x, w, w.known[0])) is not None:
        return g.ConvTranspose(known, w, b, group=group, **form)
    if x.is_static:
        return None
    require(w.is_static, "a transposed convolution of dynamic sizes")
    if len(kernel_shape) == 1:
        wide = {n: (1, *v) for n, v in form.items() if n not in ("pads", "output_padding")}
        flat = g.ConvTranspose(
            g.Unsqueeze(x, [2]), g.Unsqueeze(w, [2]), b, group=group, pads=(0, pads[0], 0, pads[1]),
            output_padding=(0, *output_padding), **wide,
        )  # fmt: skip
        return g.Squeeze(flat, [2])
    if group > 1:
        return _by_groups(partial(g.ConvTranspose, **form), g, x, w, b, group, 1)
    return None


@writes("ConvTranspose", only=FIXED_PADS, ignore=("output_shape",))
def write_conv_transpose(
    r, x, w, b=None, *, kernel_shape, strides, dilations, pads, output_padding: Ints, group
):
    axes = len(kernel_shape)
    require(axes in LAYOUTS, f"a transposed convolution over {axes} axes")
    data, _, kernel = LAYOUTS[axes]
    if set(dilations) != {1}:
        w, kernel_shape = _dilated(r, w, kernel_shape, dilations)
    if axes == 2 and not x.is_static:
        return biased(r, _by_zeros(r, x, w, kernel_shape, strides, pads, output_padding), b)
    made = r[f"nn.conv{axes}d_transpose"](
        x, w, strides=strides, padding=spelled(pads), groups=group, channels=w.known[1] * group,
        kernel_size=kernel_shape, data_layout=data, kernel_layout=kernel,
        output_padding=output_padding,
    )  # fmt: skip
    return biased(r, made, b)


def _by_zeros(r, x, w, kernel_shape, strides, pads, output_padding):
    """A convolution of ``x`` with zeros in it; TVM errs in the shape of the other."""
    wide = r.nn.dilate(x, strides=(1, 1, *strides), dilation_value=0.0)
    turned = r.transpose(r.reverse(r.reverse(w, axis=2), axis=3), axes=(1, 0, 2, 3))
    begin, end = halves(pads)
    before = [k - 1 - p for k, p in zip(kernel_shape, begin, strict=True)]
    after = [k - 1 - p + o for k, p, o in zip(kernel_shape, end, output_padding, strict=True)]
    require(min(before + after) >= 0, "a transposed convolution with pads wider than its kernel")
    form = {"channels": w.known[1], "kernel_size": kernel_shape}
    if before == after:
        return r.nn.conv2d(wide, turned, padding=before, **form)
    widths = ((0, 0), (0, 0), *zip(before, after, strict=True))
    return r.nn.conv2d(r.nn.pad(wide, scalar(r, 0, x.type), pad_width=widths), turned, **form)


def _dilated(r, w, kernel_shape, dilations):
    """A kernel with zeros between its numbers: Relay has no dilations here."""
    wide = tuple((k - 1) * d + 1 for k, d in zip(kernel_shape, dilations, strict=True))
    made = r.nn.dilate(w, strides=(1, 1, *dilations), dilation_value=0.0)
    made.dtype, made.shape = w.dtype, (*w.known[:2], *wide)
    return made, wide
