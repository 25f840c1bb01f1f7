"""Operators that put elements into another shape or order."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value

from ..quantization import Forms
from ..rules import reads


def long(g, x: Value) -> Value:
    """Integers as int64, as sizes and axes are in the IR."""
    return g.cast(x, DType.INT64)


@reads("RESHAPE")
def read_reshape(g, x, shape=None, *, new_shape: tuple[int, ...] = ()):
    """The operand tells the shape; else the option does, in which 0 alone stands for no axes."""
    if shape is None or (shape.tensor is None and shape.rank != 1):
        sizes = () if new_shape == (0,) else new_shape
        return g.Reshape(x, g.const(np.asarray(sizes, np.int64)), allowzero=int(0 in sizes))
    has_zero = shape.tensor is not None and bool((shape.array() == 0).any())
    return g.Reshape(x, long(g, shape), allowzero=int(has_zero))


@reads("SQUEEZE")
def read_squeeze(g, x, *, squeeze_dims: tuple[int, ...] = ()):
    axes = squeeze_dims or [a for a, d in enumerate(x.ranked_shape) if d == 1]
    return g.Squeeze(x, list(axes))


@reads("EXPAND_DIMS")
def read_expand_dims(g, x, axis):
    return g.Unsqueeze(x, g.Reshape(long(g, axis), [-1]))


@reads("TRANSPOSE")
def read_transpose(g, x, perm):
    require(perm.tensor is not None, "a computed order of axes. Make it a constant")
    return g.Transpose(x, perm=tuple(axis_of(a, x.rank) for a in perm.ints()))


@reads("CONCATENATION")
def read_concat(g, *xs, axis: int = 0):
    return g.Concat(*xs, axis=axis_of(axis, xs[0].rank))


@reads("PACK", ignore=("values_count",))
def read_pack(g, *xs, axis: int = 0):
    return g.stack(xs, axis)


@reads("UNPACK")
def read_unpack(g, x, *, num: int = 0, axis: int = 0):
    place = axis_of(axis, x.rank)
    return tuple(g.Gather(x, g.const(n, DType.INT64), axis=place) for n in range(num))


@reads("SPLIT")
def read_split(g, axis, x, *, num_splits: int = 1):
    place = axis_of(axis.ints()[0], x.rank)
    size = x.ranked_shape[place]
    require(
        isinstance(size, int) and 0 < num_splits <= max(size, 1) and size % num_splits == 0,
        f"{num_splits} parts of an axis of {size}. Give its size (--static, --input)",
    )
    return as_tuple(g.Split(x, [size // num_splits] * num_splits, axis=place, outputs=num_splits))


def as_tuple(results):
    """Results of an operator that may be one."""
    return results if isinstance(results, tuple) else (results,)


@reads("SPLIT_V")
def read_split_v(g, x, sizes, axis, *, num_splits: int = 1):
    """One size may be -1, for what is left."""
    place, parts = axis_of(axis.ints()[0], x.rank), list(sizes.ints())
    require(len(parts) == num_splits, f"{len(parts)} sizes of {num_splits} parts. Give as many")
    if -1 in parts:
        size = x.ranked_shape[place]
        require(isinstance(size, int), "an open part of an axis of unknown size. Give its size "
                "(--static, --input)")  # fmt: skip
        parts[parts.index(-1)] = size - sum(parts) - 1
    return as_tuple(g.Split(x, parts, axis=place, outputs=num_splits))


@reads("TILE")
def read_tile(g, x, multiples):
    return g.Tile(x, long(g, multiples))


@reads("BROADCAST_TO")
def read_broadcast_to(g, x, shape):
    return g.Expand(x, long(g, shape))


@reads("BROADCAST_ARGS")
def read_broadcast_args(g, x, y):
    """The shape that two shapes are repeated to."""
    rank = max(v.static_shape[0] for v in (x, y))
    x, y = (
        g.Concat(g.const(np.ones(rank - v.static_shape[0], v.type.numpy)), v, axis=0)
        for v in (x, y)
    )
    return g.Where(g.Equal(x, g.scalar(1, x)), y, x)


@reads("SHAPE")
def read_shape(g, x, *, out_type: int = 0):
    shape = g.Shape(x)
    return shape if out_type == 4 else g.cast(shape, DType.INT32)


@reads("RANK")
def read_rank(g, x):
    return g.const(x.rank, DType.INT32)


@reads("FILL")
def read_fill(g, dims, value):
    return g.Expand(value, long(g, dims))


@reads("RANGE")
def read_range(g, start, limit, delta):
    return g.Range(start, limit, delta)


def fill_of(g, x: Value, forms: Forms):
    """What stands for 0 in pads: the zero point of integers that have one."""
    form = forms[0] if x.type.kind != "f" else None
    return None if form is None else g.const(form.zero.reshape(()).astype(x.type.numpy))


def swap_blocks(g, x, sizes, order, result):
    """Axes split into parts, in another order, and joined again."""
    return g.reshape(g.Transpose(g.reshape(x, sizes), perm=order), result)


@reads("REVERSE_V2")
def read_reverse(g, x, axes):
    return reverse(g, x, [axis_of(a, x.rank) for a in axes.ints()])


def reverse(g, x, axes):
    """Elements from the last to the first along axes."""
    n = len(axes)
    return g.Slice(x, [-1] * n, [-(2**31)] * n, axes, [-1] * n)


@reads("REVERSE_SEQUENCE")
def read_reverse_sequence(g, x, lengths, *, seq_dim: int = 0, batch_dim: int = 0):
    """ONNX's operator has time and batch on the first two axes."""
    rest = [a for a in range(x.rank) if a not in (seq_dim, batch_dim)]
    order = [seq_dim, batch_dim, *rest]
    moved = g.Transpose(x, perm=order)
    y = g.ReverseSequence(moved, long(g, lengths), time_axis=0, batch_axis=1)
    return g.Transpose(y, perm=[order.index(a) for a in range(x.rank)])
