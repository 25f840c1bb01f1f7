"""Rounding to integers and back, as PyTorch's quantizer of exported programs leaves it."""

from __future__ import annotations

import numpy as np

from serde.ir.graph import DType, Value

from ..promotion import as_type
from ..rules import reads

SPACE = "quantized_decomposed"
BY_TENSOR = tuple(f"{SPACE}.{{}}_per_tensor{form}" for form in ("", ".tensor", ".tensor2"))


def rates(g, scale, zero_point, dtype, rank):
    """The scale and the zero point, of the types that they are stored in."""
    pair = ((scale, DType.FLOAT32), (zero_point, dtype))
    values = (g.cast(v, t) if isinstance(v, Value) else as_type(g, v, t) for v, t in pair)
    return [g.Reshape(v, [-1] if rank else []) for v in values]


def quantize(g, x, scale, zero_point, low, high, dtype, **axis):
    scale, zero_point = rates(g, scale, zero_point, dtype, len(axis))
    y = g.QuantizeLinear(x, scale, zero_point, **axis)
    limits = np.iinfo(dtype.numpy)
    if (low, high) == (limits.min, limits.max):
        return y
    return g.Clip(y, *(as_type(g, n, dtype) for n in (low, high)))


@reads(*(name.format("quantize") for name in BY_TENSOR))
def read_quantize(g, x, scale, zero_point, low, high, dtype):
    return quantize(g, x, scale, zero_point, low, high, dtype)


@reads(f"{SPACE}.quantize_per_channel")
def read_quantize_channels(g, x, scales, zero_points, axis, low, high, dtype):
    return quantize(g, x, scales, zero_points, low, high, dtype, axis=axis)


@reads(*(name.format("dequantize") for name in BY_TENSOR))
def read_dequantize(g, x, scale, zero_point, low, high, dtype, out_dtype=None):
    y = g.DequantizeLinear(x, *rates(g, scale, zero_point, dtype, 0))
    return y if out_dtype is None else g.cast(y, out_dtype)


@reads(f"{SPACE}.dequantize_per_channel")
def read_dequantize_channels(g, x, scales, zero_points, axis, low, high, dtype, out_dtype=None):
    y = g.DequantizeLinear(x, *rates(g, scales, zero_points, dtype, 1), axis=axis)
    return y if out_dtype is None else g.cast(y, out_dtype)
