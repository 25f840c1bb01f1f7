"""Convolutions and their transposes, in one to three dimensions and any layout."""

from __future__ import annotations

from functools import partial
from itertools import product
from math import prod

from serde.decompositions.expressions import cast, reshape, size_of, sizes_of, times
from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from ..rules import reads
from ..upgrade import kernel_layout_of
from .layouts import fixed, packed, unpacked
from .shape import dilated

LARGEST_EXACT = 1 << 24  # up to here a float32 counts exactly
BYTES = (DType.INT8, DType.UINT8)
FAR = 2**31 - 1


def spatial(count: int) -> str:
    """The letters of so many spatial axes."""
    return "DHW"[3 - count :]


def pads_of(padding: Ints, count: int) -> Ints:
    """Pads at the begin of each axis and at the end: one number, one an axis, or all."""
    if len(padding) == 1:
        return padding * 2 * count
    if len(padding) == count:
        return padding * 2
    require(len(padding) == 2 * count, f"padding={padding} of {count} axes")
    return padding


def per_axis(given: Ints, count: int) -> Ints:
    """One number for each axis."""
    return given * count if len(given) == 1 else given


def window(w: Value, strides: Ints, dilation: Ints, padding: Ints):
    """A sliding window as ONNX spells it."""
    kernel = fixed(w)
    return {
        "kernel_shape": kernel,
        "strides": per_axis(strides, len(kernel)),
        "dilations": per_axis(dilation, len(kernel)),
        "pads": pads_of(padding, len(kernel)),
    }


def read_conv(
    count, g, x, w, *, strides: Ints | None = None, padding: Ints = (0,),
    dilation: Ints = (1,), groups=1, data_layout: str | None = None,
    kernel_layout: str | None = None, out_layout="", out_dtype: DType | None = None,
):  # fmt: skip
    axes = spatial(count)
    layout = data_layout or "NC" + axes
    x = unpacked(g, x, layout, "NC" + axes)
    w = unpacked(g, w, kernel_layout or "OI" + axes, "OI" + axes)
    if groups > 1 and w.known[0] == groups and w.known[1] != 1 and x.known[1] == groups:
        multiplied = (w.dims[0] * w.dims[1], 1, *w.dims[2:])  # depthwise, so many for each channel
        w = g.Reshape(w, multiplied)
    frame = window(w, strides or (1,), dilation, padding)
    y = convolved(g, x, w, groups, frame, out_dtype or x.type)
    return packed(g, y, "NC" + axes, out_layout or layout)


def convolved(g, x: Value, w: Value, groups: int, frame, dtype: DType):
    """Products summed in ``dtype``; integers as floats where those count exactly."""
    if dtype.kind == "f":
        return g.Conv(cast(g, x, dtype), cast(g, w, dtype), group=groups, **frame)
    if reach(x) * total(w) <= LARGEST_EXACT:
        floats = (cast(g, v, DType.FLOAT32) for v in (x, w))
        return cast(g, g.Conv(*floats, group=groups, **frame), dtype)
    if x.type in BYTES and w.type in BYTES:
        return cast(g, of_bytes(g, x, w, groups, frame), dtype)
    return cast(g, by_patches(g, x, w, groups, frame), dtype)


def of_bytes(g, x: Value, w: Value, groups: int, frame):
    """Signed bytes become unsigned ones, which ONNX Runtime sums exactly on any processor."""
    zeros, parts = [], []
    for v in (x, w):
        signed = v.type is DType.INT8
        raised = g.Add(cast(g, v, DType.INT32), g.const(128, DType.INT32)) if signed else v
        parts.append(cast(g, raised, DType.UINT8))
        zeros.append(g.const(128 if signed else 0, DType.UINT8))
    return g.ConvInteger(*parts, *zeros, group=groups, **frame)


def by_patches(g, x: Value, w: Value, groups: int, frame):
    """A product of matrices of int32, which is exact: the kernel with the patches it meets."""
    x, w = (cast(g, v, DType.INT32) for v in (x, w))
    half = len(frame["kernel_shape"])
    pads = (0, 0, *frame["pads"][:half], 0, 0, *frame["pads"][half:])
    x = g.Pad(x, pads)
    spans = [d * (k - 1) for k, d in zip(frame["kernel_shape"], frame["dilations"], strict=True)]
    axes, patches = list(range(2, x.rank)), []
    for at in product(*map(range, frame["kernel_shape"])):
        starts = [i * d for i, d in zip(at, frame["dilations"], strict=True)]
        ends = [i - span or FAR for i, span in zip(starts, spans, strict=True)]
        patches.append(g.Slice(x, starts, ends, axes, list(frame["strides"])))
    places = sizes_of(g, patches[0])[2:]
    stacked = g.Concat(*(g.Unsqueeze(p, [2]) for p in patches), axis=2)
    outputs, depth = w.dims[0], prod(w.dims[1:])
    batch = size_of(g, x, 0)
    flat = reshape(g, stacked, [batch, groups, depth, times(g, places)])
    kernel = g.Reshape(w, [groups, outputs // groups, depth])
    return reshape(g, g.MatMul(kernel, flat), [batch, outputs, *places])


def total(w: Value) -> int:
    """The largest sum of absolute weights of one output channel."""
    if w.tensor is not None and w.tensor.size:
        sums = abs(w.array().astype("int64")).reshape(w.dims[0], -1).sum(1)
        return int(sums.max())
    return reach(w) * prod(w.dims[1:])


def reach(x: Value) -> int:
    """The largest absolute value of an integer tensor's elements."""
    if x.tensor is not None and x.tensor.size:
        return int(abs(x.array().astype("int64")).max())
    return 1 << (x.type.bits - (x.type.kind == "i"))


TUNING = ("channels", "kernel_size")
for _count, _op in ((1, "nn.conv1d"), (2, "nn.conv2d"), (3, "nn.conv3d")):
    reads(_op, ignore=TUNING)(partial(read_conv, _count))
reads("nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc", ignore=TUNING)(
    partial(read_conv, 2)
)


def read_untransformed(
    count, g, x, w, *, kernel_size: Ints, kernel_layout: str | None = None, **attributes
):
    """A kernel that was not transformed after all; see ``undone.py``."""
    layout = kernel_layout or "OI" + spatial(count)
    held = tuple(w.dims[layout.index(a)] for a in spatial(count)) if w.rank == len(layout) else ()
    require(held == kernel_size, "its kernel was transformed before the module was written")
    return read_conv(count, g, x, w, kernel_layout=kernel_layout, **attributes)


def untransformed(count):
    """The rule with the attributes of a convolution, and the kernel's size."""

    def read(
        g, x, w, *, kernel_size: Ints, strides: Ints | None = None, padding: Ints = (0,),
        dilation: Ints = (1,), groups=1, data_layout: str | None = None,
        kernel_layout: str | None = None, out_layout="", out_dtype: DType | None = None,
    ):  # fmt: skip
        return read_untransformed(
            count, g, x, w, kernel_size=kernel_size, kernel_layout=kernel_layout,
            strides=strides, padding=padding, dilation=dilation, groups=groups,
            data_layout=data_layout, out_layout=out_layout, out_dtype=out_dtype,
        )  # fmt: skip

    return read


for _count, _op in (
    (2, "conv2d_winograd"), (2, "conv2d_winograd_nnpack"), (3, "conv3d_winograd"),
    (2, "conv2d_gemm"),
):  # fmt: skip
    reads(f"nn.contrib_{_op}_without_weight_transform", ignore=("channels", "tile_size"))(
        untransformed(_count)
    )


def read_conv_transpose(
    count, g, x, w, *, strides: Ints | None = None, padding: Ints = (0,),
    output_padding: Ints = (0,), dilation: Ints = (1,), groups=1,
    data_layout: str | None = None, kernel_layout: str | None = None, out_layout="",
    out_dtype: DType | None = None, untold=False,
):  # fmt: skip
    """Kernels are held input channels first, in ONNX as by default in Relay."""
    axes = spatial(count)
    layout = data_layout or "NC" + axes
    if untold:
        kernel_layout = kernel_layout_of(x, w, kernel_layout, layout)
    x = unpacked(g, x, layout, "NC" + axes)
    w = unpacked(g, w, kernel_layout or "IO" + axes, "IO" + axes)
    dtype = out_dtype or x.type
    frame = window(w, strides or (1,), dilation, padding)
    more = per_axis(output_padding, count)
    if dtype.kind == "f":
        operands = (cast(g, x, dtype), cast(g, w, dtype))
        y = g.ConvTranspose(*operands, group=groups, output_padding=more, **frame)
    else:
        y = cast(g, transposed_of_integers(g, x, w, groups, frame, more), dtype)
    return packed(g, y, "NC" + axes, out_layout or layout)


def transposed_of_integers(g, x: Value, w: Value, groups: int, frame, more: Ints):
    """As a convolution of the spread-out input with the kernel turned round, which is exact."""
    count = len(more)
    x = dilated(g, cast(g, x, DType.INT32), (1, 1, *frame["strides"]), 0)
    spans = [d * (k - 1) for k, d in zip(frame["kernel_shape"], frame["dilations"], strict=True)]
    begins = [s - p for s, p in zip(spans, frame["pads"][:count], strict=True)]
    ends = [s - p + m for s, p, m in zip(spans, frame["pads"][count:], more, strict=True)]
    inputs, outputs = w.dims[:2]
    axes = list(range(2, 2 + count))
    turned = g.Slice(w, [-1] * count, [-FAR] * count, axes, [-1] * count)
    split = g.Reshape(turned, [groups, inputs // groups, outputs, *w.dims[2:]])
    order = (0, 2, 1, *(a + 1 for a in axes))
    kernel = g.Reshape(
        g.Transpose(split, perm=order), [groups * outputs, inputs // groups, *w.dims[2:]]
    )
    plain = {**frame, "strides": (1,) * count, "pads": (*begins, *ends)}
    return by_patches(g, x, kernel, groups, plain)


for _count in (1, 2, 3):
    reads(f"nn.conv{_count}d_transpose", ignore=TUNING)(partial(read_conv_transpose, _count))
