"""Sums of products of integers, as int32."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from serde.ir import arrays
from serde.ir.constants import shift_bytes
from serde.ir.graph import DType, Value

from ..convolution import window
from .layers import round_to_type

MIDDLE = 128  # what stands for 0 where uint8 hold signed numbers
MOST_PLACES = 9  # of a kernel whose convolution is a product of matrices
MOST_INDICES = 1 << 20  # of a table of patches: 4 MiB
LEAST_CHANNELS = 16  # of images, whose patches are copied a few bytes at a time otherwise


def channels_last(g, x: Value):
    return g.Transpose(x, perm=(0, *range(2, x.rank), 1))


def channels_first(g, x: Value):
    return g.Transpose(x, perm=(0, x.rank - 1, *range(1, x.rank - 1)))


def round_and_saturate(g, y: Value, dtype: DType):
    """The nearest integers; what is less than 0 is 0 as uint8."""
    if dtype is DType.UINT8:
        return round_to_type(g, y, dtype)
    q = g.QuantizeLinear(y, g.const(np.float32(1)), g.const(np.array(MIDDLE, np.uint8)))
    return g.cast(g.Sub(g.cast(q, DType.INT32), MIDDLE), dtype)


def find_unsigned_source(g, q: Value) -> Value | None:
    """The uint8 that ``round_and_saturate`` made an int8 of."""
    for op in ("Cast", "Sub", "Cast"):
        node = g.maker(q, op)
        if node is None:
            return None
        q, *less = node.inputs
        if op == "Sub" and (less[0].tensor is None or less[0].array() != MIDDLE):
            return None
    return q if q.type is DType.UINT8 else None


def to_unsigned(g, q: Value):
    """Integers as uint8, and the zero among them.

    ONNX Runtime adds products of uint8 exactly on every processor; those of uint8 and int8 it adds
    in int16 that saturate, on x86 processors without VNNI.
    """
    if q.type is DType.UINT8:
        return q, g.const(np.zeros((), np.uint8))
    middle = g.const(np.array(MIDDLE, np.uint8))
    if q.tensor is not None:
        return g.const(shift_bytes(q.tensor), name=f"{q.name}/unsigned"), middle
    if (node := g.maker(q, "QuantizeLinear")) is not None:
        return g.QuantizeLinear(*node.inputs[:2], middle), middle
    if (before := find_unsigned_source(g, q)) is not None:
        return before, middle
    return g.cast(g.Add(g.cast(q, DType.INT32), MIDDLE), DType.UINT8), middle


def convolve(g, x: Value, w: Value, *, kernel, stride=(), dilate=(), pad=(), num_group=1):
    """What a convolution adds up, channels last.

    One of many channels by a small kernel is a product of matrices, for which runtimes have faster
    kernels than for convolutions.
    """
    (x, x_zero), (w, w_zero) = to_unsigned(g, x), to_unsigned(g, w)
    frame = window(kernel, stride, dilate, pad)
    is_image = num_group == 1 and x.rank == 4 and prod(kernel) <= MOST_PLACES
    channels = w.ranked_shape[1]
    if is_image and isinstance(channels, int) and channels >= LEAST_CHANNELS:
        columns = g.Transpose(g.Flatten(channels_last(g, w), axis=1), perm=(1, 0))
        return g.MatMulInteger(gather_patches(g, x, x_zero, **frame), columns, x_zero, w_zero)
    return channels_last(g, g.ConvInteger(x, w, x_zero, w_zero, group=num_group, **frame))


def gather_patches(g, x: Value, zero: Value, **frame):
    """What lies under each place of a kernel, one after another in the last axis."""
    x, kernel, strides = channels_last(g, x), frame["kernel_shape"], frame["strides"]
    if prod(kernel) == 1 and set(strides) == {1} and not any(frame["pads"]):
        return x
    index = index_patches(x.ranked_shape[1:3], **frame) if prod(kernel) > 1 else None
    if index is None:
        return slice_patches(g, x, zero, **frame)
    _, height, width, channels = x.ranked_shape
    pixels = g.Reshape(x, [0, height * width, channels])
    if any(frame["pads"]):
        pixels = g.Pad(pixels, [0, 0, 0, 0, 1, 0], zero)
    patches = g.Gather(pixels, g.const(index.reshape(-1)), axis=1)
    return g.Reshape(patches, [0, *index.shape[:2], index.shape[2] * channels])


def index_patches(sizes, *, kernel_shape, strides, dilations, pads):
    """Which pixel lies under each place of a kernel, by rows: shape (height, width, places), int32.

    Padding is one pixel behind the last. None where sizes are unknown or too small for the kernel,
    or the table is too large.
    """
    if not all(isinstance(s, int) for s in sizes):
        return None
    around = [*zip(pads[:2], pads[2:], strict=True)]
    padded = [size + sum(both) for size, both in zip(sizes, around, strict=True)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel_shape, dilations, strict=True)]
    if prod(padded) > MOST_INDICES or any(r > n for r, n in zip(reach, padded, strict=True)):
        return None
    count = prod(sizes)
    pixels = arrays.arange(count, dtype=np.int32).reshape(sizes)
    pixels = np.pad(pixels, around, constant_values=count)
    under = np.lib.stride_tricks.sliding_window_view(pixels, reach)
    index = under[:: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    return index.reshape(*index.shape[:2], -1) if index.size <= MOST_INDICES else None


def slice_patches(g, x: Value, zero: Value, *, kernel_shape, strides, dilations, pads):
    """The patches of images of any size."""
    if any(pads):
        x = g.Pad(x, [0, *pads[:2], 0, 0, *pads[2:], 0], zero)
    reach = [(k - 1) * d for k, d in zip(kernel_shape, dilations, strict=True)]
    parts = []
    for place in product(*map(range, kernel_shape)):
        starts = [at * d for at, d in zip(place, dilations, strict=True)]
        ends = [at - most or 2**63 - 1 for at, most in zip(starts, reach, strict=True)]
        parts.append(g.Slice(x, starts, ends, [1, 2], strides))
    return g.Concat(*parts, axis=3) if len(parts) > 1 else parts[0]


def multiply(g, x: Value, w: Value, flatten: bool):
    """A product with a transposed matrix."""
    x = g.Flatten(x, axis=1) if flatten else x
    (x, x_zero), (w, w_zero) = to_unsigned(g, x), to_unsigned(g, w)
    return g.MatMulInteger(x, g.Transpose(w, perm=(1, 0)), x_zero, w_zero)
