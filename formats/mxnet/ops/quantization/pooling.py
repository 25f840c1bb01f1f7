"""Pooling of quantized tensors."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType, Node, Value

from ...rules import reads
from ..convolution import window
from ..pooling import ceil_mode_overhang, needs_ceil, pad_input, read_pooling
from ..shared_attributes import with_attributes_of
from .integer_matmul import round_and_saturate, to_unsigned
from .layers import dequantize, dequantize_unit, floating, quantize, round_to_type

POOLING = "_contrib_quantized_pooling"
MOST_ELEMENTS = 121  # of a window whose mean is a convolution


@with_attributes_of(read_pooling, leave_out=("output_size",))
def read_quantized_pooling(average, g, q, low, high, *, pool_type="max", **attrs):
    """A mean is that of the integers, rounded; the greatest is found among them as well."""
    require(pool_type in ("max", "avg"), f"pool_type={pool_type!r} of integers")
    if pool_type == "max":
        x = dequantize_unit(g, q, g.scalar(0, q))
        return round_to_type(g, read_pooling(g, x, pool_type="max", **attrs), q.type), low, high
    q, attrs = pad_overhang(g, q, attrs)
    pool = partial(read_pooling, g, pool_type="avg", **attrs)
    return average(g, pool, q, low, high), low, high


def pad_overhang(g, q: Value, attrs):
    """Where a window may overhang the pads, integers with zeros there, and a pool of whole windows.

    oneDNN divides their sum by all elements of a window; MXNet divides one of floats by those on
    the input and its pads.
    """
    if attrs["global_pool"] or attrs["pooling_convention"] != "full":
        return q, attrs
    frame = window(attrs["kernel"], attrs["stride"], (), attrs["pad"])
    if attrs["count_include_pad"] is False or not needs_ceil(q, frame):
        return q, attrs
    q, _ = pad_input(g, q, frame, 0, ceil_mode_overhang(q, frame))
    return q, {**attrs, "pad": (), "pooling_convention": "valid"}


def average_integers(g, pool, q: Value, low: Value, high: Value):
    """The mean of integers, rounded to the nearest, even ones in the middle.

    Runtimes' own means of integers are rounded otherwise. Their depthwise convolutions of integers
    are exact, and spare a cast to floats and the layout of these.
    """
    mean = pool(g.cast(q, DType.FLOAT32))
    node = g.producer(mean)
    if isinstance(q.ranked_shape[1], int) and is_mean_of_fixed_count(node):
        return average_by_convolution(g, q, node)
    return g.cast(g.Round(mean), q.type)


def is_mean_of_fixed_count(node: Node | None) -> bool:
    """Whether a mean of images is the sum of a window times a number that rounds no mean otherwise.

    The inverse of a power of two is exact. A sum divided by an odd number is never in the middle of
    two integers: it is at least half the inverse away, which is more than what rounding adds.
    """
    if node is None or node.op != "AveragePool" or len(node.attrs["kernel_shape"]) != 2:
        return False
    attrs, count = node.attrs, prod(node.attrs["kernel_shape"])
    is_exact = count % 2 == 1 or count & (count - 1) == 0
    is_fixed = not attrs.get("ceil_mode") and (
        attrs.get("count_include_pad") or not any(attrs["pads"])
    )
    return bool(is_fixed) and is_exact and count <= MOST_ELEMENTS


def average_by_convolution(g, q: Value, node: Node):
    """An ``AveragePool`` of integers by a depthwise convolution, which ``QLinearConv`` computes."""
    names = ("kernel_shape", "strides", "dilations", "pads")
    frame: dict[str, Any] = {name: node.attrs[name] for name in names}
    kernel, channels = frame["kernel_shape"], q.ranked_shape[1]
    ones = g.const(arrays.full((channels, 1, *kernel), 1, np.int8))
    share = g.const(np.float32(1 / prod(kernel)))
    w = g.DequantizeLinear(ones, share, g.const(np.zeros((), np.int8)))
    y = g.Conv(dequantize_unit(g, *to_unsigned(g, q)), w, group=channels, **frame)
    return round_and_saturate(g, y, q.type)


def average_floats(g, pool, q: Value, low: Value, high: Value):
    """The mean of the numbers that integers stand for."""
    return quantize(g, pool(dequantize(g, q, low, high)), q.type, low, high)


for _table, _average in ((reads, average_integers), (floating, average_floats)):
    _table(POOLING, ignore=("cudnn_off",), only={"output_size": ("None",)})(
        partial(read_quantized_pooling, _average)
    )
