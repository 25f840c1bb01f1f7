"""Convolutions, in one to three dimensions and any layout."""

from __future__ import annotations

from functools import partial
from itertools import product
from math import prod

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from ..rules import reads
from ..target import format_pads, halves, legalizations, writes
from .integer_range import FLOAT32_EXACT, INT32_MOST, abs_max, as_bytes
from .layouts import pack_layout, require_static_sizes, unpack_layout
from .shape import FAR

LAYOUTS = {1: ("NCW", "OIW", "IOW"), 2: ("NCHW", "OIHW", "IOHW"), 3: ("NCDHW", "OIDHW", "IODHW")}
FIXED_PADS = {"auto_pad": ("NOTSET",)}
MOST_GROUPS, MOST_PLACES = 64, 121  # of convolutions that are unrolled
TUNING = ("channels", "kernel_size")  # attributes that the kernel tells as well
CONVOLUTIONS = {  # and over how many axes
    "nn.conv1d": 1,
    "nn.conv2d": 2,
    "nn.conv3d": 3,
    "nn.contrib_conv2d_NCHWc": 2,
    "nn.contrib_depthwise_conv2d_NCHWc": 2,
}
UNTRANSFORMED = {
    f"nn.contrib_{name}_without_weight_transform": count
    for name, count in (
        ("conv2d_winograd", 2), ("conv2d_winograd_nnpack", 2), ("conv3d_winograd", 3),
        ("conv2d_gemm", 2),
    )
}  # fmt: skip


def spatial(count: int) -> str:
    """The letters of so many spatial axes."""
    return "DHW"[3 - count :]


def normalize_pads(padding: Ints, count: int) -> Ints:
    """Pads at the begin of each axis and at the end: one number, one an axis, or all."""
    if len(padding) == 1:
        return padding * 2 * count
    if len(padding) == count:
        return padding * 2
    require(len(padding) == 2 * count, f"padding={padding} of {count} axes")
    return padding


def repeat_per_axis(values: Ints, count: int) -> Ints:
    """One number for each axis."""
    return values * count if len(values) == 1 else values


def window(w: Value, strides: Ints, dilation: Ints, padding: Ints):
    """A sliding window as ONNX spells it."""
    kernel = require_static_sizes(w)
    return {
        "kernel_shape": kernel,
        "strides": repeat_per_axis(strides, len(kernel)),
        "dilations": repeat_per_axis(dilation, len(kernel)),
        "pads": normalize_pads(padding, len(kernel)),
    }


@reads.for_each(CONVOLUTIONS, ignore=TUNING)
def read_conv(
    count, g, x, w, *, strides: Ints | None = None, padding: Ints = (0,),
    dilation: Ints = (1,), groups=1, data_layout: str | None = None,
    kernel_layout: str | None = None, out_layout="", out_dtype: DType | None = None,
):  # fmt: skip
    axes = spatial(count)
    layout = data_layout or "NC" + axes
    x = unpack_layout(g, x, layout, "NC" + axes)
    w = unpack_kernel(g, w, kernel_layout or "OI" + axes, count, groups, x)
    frame = window(w, strides or (1,), dilation, padding)
    y = convolve(g, x, w, groups, frame, out_dtype or x.type)
    return pack_layout(g, y, "NC" + axes, out_layout or layout)


def unpack_kernel(g, w: Value, layout: str, count: int, groups: int, x: Value) -> Value:
    """The kernel of ``x``, which has its channels second, with output channels first."""
    w = unpack_layout(g, w, layout, "OI" + spatial(count))
    outputs, inputs = w.ranked_shape[:2]
    if groups > 1 and outputs == groups == x.ranked_shape[1] and inputs != 1:
        # depthwise, so many for each channel
        return g.Reshape(w, (groups * w.static_shape[1], 1, *w.static_shape[2:]))
    return w


def convolve(g, x: Value, w: Value, groups: int, frame, dtype: DType):
    """Products summed in ``dtype``."""
    if dtype.kind == "f":
        return g.Conv(g.cast(x, dtype), g.cast(w, dtype), group=groups, **frame)
    return g.cast(convolve_integers(g, x, w, groups, frame, dtype), dtype)


def convolve_integers(g, x: Value, w: Value, groups: int, frame, dtype: DType):
    """Products of integers, summed as floats where those count exactly; else as bytes or int32."""
    largest = abs_max(g, x) * max_weight_sum(g, w)
    padded = min(frame["pads"], default=0) >= 0  # not cut
    if padded and largest <= FLOAT32_EXACT:
        floats = (g.cast(v, DType.FLOAT32) for v in (x, w))
        return g.cast(g.Conv(*floats, group=groups, **frame), DType.INT32)
    narrow = padded and (dtype.bits <= 32 or largest <= INT32_MOST)
    if narrow and (parts := as_bytes(g, x, w)) is not None:
        return g.ConvInteger(*parts, group=groups, **frame)
    sum_dtype = DType.INT64 if dtype.bits == 64 else DType.INT32
    return convolve_by_patches(g, g.cast(x, sum_dtype), g.cast(w, sum_dtype), groups, frame)


def convolve_by_patches(g, x: Value, w: Value, groups: int, frame):
    """A product of matrices of integers, which is exact: the kernel with the patches it meets."""
    half = len(frame["kernel_shape"])
    pads = (0, 0, *frame["pads"][:half], 0, 0, *frame["pads"][half:])
    x = g.Pad(x, pads)
    spans = [d * (k - 1) for k, d in zip(frame["kernel_shape"], frame["dilations"], strict=True)]
    axes, patches = list(range(2, x.rank)), []
    for at in product(*map(range, frame["kernel_shape"])):
        starts = [i * d for i, d in zip(at, frame["dilations"], strict=True)]
        ends = [i - span or FAR for i, span in zip(starts, spans, strict=True)]
        patches.append(g.Slice(x, starts, ends, axes, list(frame["strides"])))
    places = g.sizes_of(patches[0])[2:]
    stacked = g.stack(patches, 2)
    outputs, depth = w.static_shape[0], prod(w.static_shape[1:])
    batch = g.size_of(x, 0)
    flat = g.reshape(stacked, [batch, groups, depth, g.multiply_sizes(places)])
    kernel = g.Reshape(w, [groups, outputs // groups, depth])
    return g.reshape(g.MatMul(kernel, flat), [batch, outputs, *places])


def max_weight_sum(g, w: Value) -> int:
    """The largest sum of absolute weights of one output channel."""
    if w.tensor is not None and w.tensor.size:
        sums = abs(w.array().astype("int64")).reshape(w.static_shape[0], -1).sum(1)
        return int(sums.max())
    return abs_max(g, w) * prod(w.static_shape[1:])


@reads.for_each(UNTRANSFORMED, ignore=("channels", "tile_size"))
def read_untransformed(
    count, g, x, w, *, kernel_size: Ints, strides: Ints | None = None, padding: Ints = (0,),
    dilation: Ints = (1,), groups=1, data_layout: str | None = None,
    kernel_layout: str | None = None, out_layout="", out_dtype: DType | None = None,
):  # fmt: skip
    """A kernel that was not transformed after all; see ``undo_weight_transforms.py``."""
    layout = kernel_layout or "OI" + spatial(count)
    axes = [layout.index(a) for a in spatial(count)] if w.rank == len(layout) else []
    kernel_shape = tuple(w.static_shape[a] for a in axes)
    require(kernel_shape == kernel_size, "its kernel was transformed before the module was written")
    return read_conv(
        count, g, x, w, strides=strides, padding=padding, dilation=dilation, groups=groups,
        data_layout=data_layout, kernel_layout=kernel_layout, out_layout=out_layout,
        out_dtype=out_dtype,
    )  # fmt: skip


def explicit_pads(pads: Ints) -> Ints:
    """Both pads of one axis, which ``nn.conv1d`` asks for."""
    return pads if len(pads) == 2 else format_pads(pads)


def add_bias(r, y: Value, b: Value | None) -> Value:
    return y if b is None else r.nn.bias_add(y, b, axis=1)


@legalizations("Conv", only=FIXED_PADS)
def legalize_conv(g, x, w, b=None, *, pads, group, **window):
    """Pads below zero are cut off; one axis is none of Relay's where there are groups.

    Of dynamic sizes TVM has images only, pads that are the same at both ends, and no groups.
    """
    form = {**window, "pads": pads}
    axes = len(window["kernel_shape"])
    if (known := with_channels(g, x, w, w.ranked_shape[1], group)) is not None:
        return g.Conv(known, w, b, group=group, **form)
    begin, end = halves(pads)
    if min(pads) < 0 or (begin != end and not x.is_static):
        padded, none = g.Pad(x, (0, 0, *begin, 0, 0, *end)), (0,) * len(pads)
        return g.Conv(padded, w, b, group=group, **{**form, "pads": none})
    if axes == 1 and (group > 1 or not x.is_static):
        return convolve_as_image("Conv", g, x, w, b, group=group, **form)
    if axes == 3 and not x.is_static and w.is_static and not has_dynamic_axes(x, 3):
        return _convolve_by_slices(g, x, w, b, group=group, **form)
    has_sizes = w.is_static and isinstance(x.ranked_shape[1], int) and axes == 2
    if group > 1 and has_dynamic_axes(x) and has_sizes:
        if x.ranked_shape[1] == group:
            return _convolve_by_positions(g, x, w, b, **form)
        return convolve_by_groups(partial(g.Conv, **form), g, x, w, b, group, 0)
    return None


def convolve_as_image(op, g, x, w, *operands, pads, group, **window):
    """The convolution ``op`` of a signal, which becomes an image of height 1."""
    image_window = {n: (0 if n == "output_padding" else 1, *v) for n, v in window.items()}
    flat = g[op](
        g.Unsqueeze(x, [2]), g.Unsqueeze(w, [2]), *operands, pads=(0, pads[0], 0, pads[1]),
        group=group, **image_window,
    )  # fmt: skip
    return g.Squeeze(flat, [2])


def has_dynamic_axes(x: Value, first: int = 2) -> bool:
    """Whether a size behind batch and channels is open."""
    return not all(isinstance(d, int) for d in x.ranked_shape[first:])


def _convolve_by_slices(g, x, w, b, *, kernel_shape, strides, dilations, pads, group):
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
        cut = g.Slice(x, [at * step], [(at + 1 - depth) * step or FAR], [2], [strides[0]])
        images = g.Reshape(
            g.Transpose(cut, perm=(0, 2, 1, 3, 4)), [-1, x.ranked_shape[1], *x.ranked_shape[3:]]
        )
        kernel_slice = g.Squeeze(g.Slice(w, [at], [at + 1], [2], [1]), [2])
        parts.append(g.Conv(images, kernel_slice, None if at else b, **form))
    total = g.Sum(*parts)
    lead = g.Concat(g.Shape(cut, end=1), g.Shape(cut, start=2, end=3), axis=0)
    volume = g.Reshape(total, g.Concat(lead, g.Shape(total, start=1), axis=0))
    return g.Transpose(volume, perm=(0, 2, 1, 3, 4))


def convolve_by_groups(convolve, g, x, w, b, group: int, outputs: int):
    """A convolution for each group; ``outputs`` is the axis of the weight that has the results."""
    require(group <= MOST_GROUPS, f"{group} groups of channels, which TVM has no kernel for")
    each, parts = x.ranked_shape[1] // group, []
    count = w.ranked_shape[0] // group if outputs == 0 else w.ranked_shape[1]
    cut = w.ranked_shape[0] // group
    for at in range(group):
        channels_of_group = g.Slice(x, [at * each], [(at + 1) * each], [1], [1])
        weight = g.Slice(w, [at * cut], [(at + 1) * cut], [0], [1])
        bias = b and g.Slice(b, [at * count], [(at + 1) * count], [0], [1])
        parts.append(convolve(channels_of_group, weight, bias))
    return g.Concat(*parts, axis=1)


def _convolve_by_positions(g, x, w, b, *, kernel_shape, strides, dilations, pads):
    """A channel alone: the sum over the places of the kernel of what lies there."""
    (rows, columns), filters = kernel_shape, w.ranked_shape[0]
    require(rows * columns <= MOST_PLACES, f"a kernel of {rows}×{columns} over dynamic sizes")
    x = g.Pad(x, (0, 0, *pads[:2], 0, 0, *pads[2:])) if any(pads) else x
    if filters != x.ranked_shape[1]:
        x = g.Gather(x, [i * x.ranked_shape[1] // filters for i in range(filters)], axis=1)
    parts = []
    for at in product(range(rows), range(columns)):
        starts = [i * d for i, d in zip(at, dilations, strict=True)]
        ends = [(i + 1 - k) * d or FAR for i, k, d in zip(at, kernel_shape, dilations, strict=True)]
        number = g.Slice(w, at, [i + 1 for i in at], [2, 3], [1, 1])
        part = g.Slice(x, starts, ends, [2, 3], strides)
        parts.append(g.Mul(part, g.Reshape(number, [filters, 1, 1])))
    total = g.Sum(*parts)
    return total if b is None else g.Add(total, g.Reshape(b, [filters, 1, 1]))


def with_channels(g, x: Value, w: Value, each, group: int = 1) -> Value | None:
    """``x`` with its number of channels, which TVM has to know, from the weight; None if it has."""
    if isinstance(x.ranked_shape[1], int) or not isinstance(each, int):
        return None
    return g.Reshape(x, [0, each * group, *[0] * (x.rank - 2)])  # type: ignore[no-any-return]


@writes("Conv", only=FIXED_PADS)
def write_conv(r, x, w, b=None, *, kernel_shape, strides, dilations, pads, group):
    axes = len(kernel_shape)
    require(axes in LAYOUTS, f"a convolution over {axes} axes")
    require(x.type.kind == "f", f"a convolution of {x.type.value} elements")
    data, kernel, _ = LAYOUTS[axes]
    channels = w.ranked_shape[0]
    require(isinstance(channels, int), "a convolution whose weight has a dynamic size")
    out_dtype_name = "float32" if x.type is DType.FLOAT16 else None
    y = r[f"nn.conv{axes}d"](
        x, w, strides=strides, padding=explicit_pads(pads), dilation=dilations, groups=group,
        channels=channels, kernel_size=kernel_shape, data_layout=data, kernel_layout=kernel,
        out_dtype=out_dtype_name,
    )  # fmt: skip
    return add_bias(r, r.cast(y, dtype=x.type.value) if out_dtype_name else y, b)
