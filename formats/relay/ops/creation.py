"""Tensors made of numbers, sizes and positions."""

from __future__ import annotations

import math

import numpy as np

from serde.ir import arrays
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import Ints, axis_of, check_sizes
from serde.ir.graph import DType, Tensor, Value
from serde.spec.expressions import number

from ..rules import reads
from ..target import emit_scalar, legalizations, writes
from .shape import axis_size, declare_sizes, static_sizes


@reads("full")
def read_full(g, fill, *, shape: Ints, dtype: DType | None = None):
    return g.Expand(g.cast(fill, dtype or fill.type), shape)


@reads("dyn.full", ignore=("shape",))
def read_dyn_full(g, fill, shape, *, dtype: DType | None = None):
    return g.Expand(g.cast(fill, dtype or fill.type), g.cast(shape, DType.INT64))


@reads("full_like")
def read_full_like(g, x, fill):
    return g.Expand(g.cast(fill, x.type), g.Shape(x))


@reads.for_each({"zeros": 0, "ones": 1})
def read_filled(number, g, *, shape: Ints, dtype: DType):
    check_sizes("the result", shape)
    if math.prod(shape) <= 1024:
        return g.const(arrays.full(shape, number, dtype.numpy))
    return g.ConstantOfShape(list(shape), value=Tensor.of(np.array([number], dtype.numpy)))


@reads.for_each({"dyn.zeros": 0, "dyn.ones": 1}, ignore=("shape",))
def read_dyn_filled(number, g, shape, *, dtype: DType):
    return g.Expand(g.const(number, dtype), g.cast(shape, DType.INT64))


@reads.for_each({"zeros_like": 0, "ones_like": 1})
def read_filled_like(number, g, x):
    return g.full_like(x, number)


@reads("arange")
def read_arange(g, start, end, step, *, dtype: DType):
    """Counted in the operands' own type, then converted."""
    parts = [v if v.shape == () else g.Reshape(v, []) for v in (start, end, step)]
    kind = parts[0].type
    work = DType.INT64 if kind.kind in "iu" else DType.FLOAT32 if kind.bits < 32 else kind
    return g.cast(g.Range(*(g.cast(v, work) for v in parts)), dtype)


@reads("meshgrid")
def read_meshgrid(g, *xs, indexing="ij"):
    """Each operand along an axis of its own; ``xy`` exchanges the first two."""
    count = len(xs)
    xs = tuple(x if x.rank == 1 else g.Reshape(x, [1]) for x in xs)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = [1, 0]
    sizes = [g.Shape(xs[order.index(a)]) for a in range(count)]
    shape = g.Concat(*sizes, axis=0) if count > 1 else sizes[0]
    return tuple(
        g.Expand(g.Unsqueeze(x, [a for a in range(count) if a != order[i]]), shape)
        for i, x in enumerate(xs)
    )


@reads("sequence_mask")
def read_sequence_mask(g, x, lengths, *, mask_value=0.0, axis=0):
    """Along ``axis`` (0 or 1; the other is the batch) what lies behind a length is masked."""
    axis = axis_of(axis, x.rank)
    steps = g.index_range(g.size_of(x, axis))
    inside = g.Less(
        g.Unsqueeze(steps, [1 - axis]), g.Unsqueeze(g.cast(lengths, DType.INT64), [axis])
    )
    inside = g.Unsqueeze(inside, list(range(2, x.rank))) if x.rank > 2 else inside
    return g.Where(inside, x, g.scalar(mask_value, x))


@reads("trilu")
def read_trilu(g, x, k, *, upper=True):
    return g.Trilu(x, g.cast(g.Reshape(k, []), DType.INT64), upper=int(upper))


@reads("unravel_index")
def read_unravel_index(g, index, shape):
    """The coordinates of positions in a tensor of ``shape``, one row an axis."""
    rows: list[Value] = []
    rest = g.cast(index, DType.INT64)
    for axis in reversed(range(shape.static_shape[0])):
        size = g.Gather(g.cast(shape, DType.INT64), axis, axis=0)
        rows.insert(0, g.Unsqueeze(g.Mod(rest, size), [0]))
        rest = g.Div(rest, size)
    return g.cast(g.Concat(*rows, axis=0), index.type)


@reads("invert_permutation")
def read_invert_permutation(g, x):
    _, order = g.TopK(x, axis_size(g, x, 0), axis=0, largest=0, sorted=1, outputs=2)
    return g.cast(order, x.type)


@writes("ConstantOfShape")
def write_constant_of_shape(r, shape, *, value: Tensor | None = None):
    fill = 0.0 if value is None else value.load().reshape(-1)[0].item()
    dtype = DType.FLOAT32 if value is None else value.dtype
    expected = static_sizes(shape)
    filled = emit_scalar(r, fill, dtype)
    if expected is None:
        return declare_sizes(r, r.dyn.full(filled, shape, dtype=dtype.value), shape_data_of(shape))
    return r.full(filled, shape=expected, dtype=dtype.value)


@legalizations("Range")
def legalize_range(g, start, limit, delta):
    """Of computed ends, counted by ONNX's formula: TVM's count falls below 0, or divides by 0."""
    counts_up = start.type.kind == "i" and (number(start), number(delta)) == (0, 1)
    if counts_up or all(v.tensor is not None for v in (start, limit, delta)):
        return None
    count_dtype = start.type if start.type.kind == "f" else DType.FLOAT64
    first, last, step = (g.cast(v, count_dtype) for v in (start, limit, delta))
    count = g.Max(g.cast(g.Ceil(g.Div(g.Sub(last, first), step)), DType.INT64), 0)
    places = g.Range(g.const(0, DType.INT64), count, g.const(1, DType.INT64))
    return g.Add(start, g.Mul(g.cast(places, start.type), delta))


@writes("Range")
def write_range(r, start, limit, delta):
    return r.arange(start, limit, delta, dtype=start.type.value)


@legalizations("Trilu")
def legalize_trilu(g, x, k=None, *, upper: int):
    """Two axes that are known; otherwise by comparing places."""
    static = x.is_static and 0 not in x.static_shape
    return None if static else g.decompose("Trilu", 14, x, k, upper=upper)


@writes("Trilu")
def write_trilu(r, x, k=None, *, upper: int):
    return r.trilu(x, emit_scalar(r, 0, DType.INT64) if k is None else k, upper=upper)
