"""Fourier transforms, whose results have the parts of complex numbers along a further last axis.

A rule ``complex.OP`` is that of ``OP`` where the operand is complex.
"""

from __future__ import annotations

from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint

from ..rules import reads
from .shapes import long


@reads("RFFT2D")
def read_rfft2d(g, x, lengths):
    """Along rows, which gives one half of them, then along columns."""
    (columns, row), rank = lengths.ints(), x.rank
    y = g.DFT(g.Unsqueeze(x, [rank]), g.const(row), g.const(rank - 1), onesided=1)
    return y if columns == 1 == x.shape[-2] else g.DFT(y, g.const(columns), g.const(rank - 2))


@reads.for_each({"complex.REAL": 0, "complex.IMAG": 1})
def read_part(at, g, x):
    return g.Gather(x, g.const(at), axis=-1)


@reads("complex.CAST", ignore=("in_data_type", "out_data_type"))
def read_complex_cast(g, x, *, results: Hint[tuple[Value, ...]]):
    """Of the real part."""
    part = read_part(0, g, x)
    return part if results[0].dtype is DType.FLOAT32 else g.cast(part, results[0].type)


@reads("complex.COMPLEX_ABS")
def read_absolute(g, x):
    return g.ReduceL2(x, [-1], keepdims=0)


@reads("complex.RESHAPE", ignore=("new_shape",))
def read_complex_reshape(g, x, shape):
    return g.Reshape(x, g.Concat(long(g, shape), g.const([2], DType.INT64), axis=0))


@reads("complex.SQUEEZE")
def read_complex_squeeze(g, x, *, squeeze_dims: tuple[int, ...] = ()):
    sizes = x.ranked_shape[:-1]
    axes = squeeze_dims or [a for a, d in enumerate(sizes) if d == 1]
    return g.Squeeze(x, [axis_of(a, len(sizes)) for a in axes])


@reads("complex.EXPAND_DIMS")
def read_complex_expand_dims(g, x, axis):
    return g.Unsqueeze(x, [axis_of(a, x.rank) for a in axis.ints()])
