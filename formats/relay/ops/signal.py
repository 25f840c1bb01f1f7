"""Fourier transforms as products with tables, and products with sparse matrices that are known."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from ..rules import reads
from .layouts import require_static_sizes


def make_waves(rows: int, count: int, dtype: DType):
    """Cosines and sines, (count, rows)."""
    arrays.charge_elements(count, rows)
    angle = 2 * np.pi * np.outer(np.arange(count), np.arange(rows)) / count
    return np.cos(angle).astype(dtype.numpy), np.sin(angle).astype(dtype.numpy)


@reads("stft")
def read_stft(
    g, x, window, *, n_fft: int, hop_length: int, win_length: int, normalized=False, onesided=True
):
    """Real and imaginary parts of each frequency and frame."""
    size = x.ranked_shape[-1]
    require(isinstance(size, int), "a signal of unknown length")
    frames = 1 + (size - n_fft) // hop_length
    rows = n_fft // 2 + 1 if onesided else n_fft
    arrays.charge_elements(frames, win_length)
    at = np.arange(frames)[:, None] * hop_length + np.arange(win_length)
    pieces = g.Mul(g.Gather(x, g.const(at), axis=x.rank - 1), window)
    cosines, sines = make_waves(rows, win_length, x.type)
    parts = [g.MatMul(pieces, g.const(table)) for table in (cosines, -sines)]
    order = (*range(x.rank - 1), x.rank, x.rank - 1)
    y = g.Concat(*(g.Unsqueeze(g.Transpose(p, perm=order), [x.rank + 1]) for p in parts),
                 axis=x.rank + 1)  # fmt: skip
    return g.Div(y, float(np.sqrt(n_fft))) if normalized else y


@reads("dft")
def read_dft(g, real, imaginary, *, inverse=False):
    count = real.ranked_shape[-1]
    require(isinstance(count, int), "a signal of unknown length")
    cosines, sines = make_waves(count, count, real.type)
    sines = -sines if inverse else sines
    c, s = g.const(cosines), g.const(sines)
    re = g.Add(g.MatMul(real, c), g.MatMul(imaginary, s))
    im = g.Sub(g.MatMul(imaginary, c), g.MatMul(real, s))
    return (g.Div(re, float(count)), g.Div(im, float(count))) if inverse else (re, im)


def load_parts(*parts: Value) -> list[np.ndarray]:
    """The arrays of a sparse matrix, which have to be known."""
    require(all(v.tensor is not None for v in parts), "a sparse matrix that the model computes")
    return [v.array() for v in parts]


def to_dense_matrix(data: Value, indices: Value, starts: Value, columns: int) -> np.ndarray:
    """The dense matrix of one in CSR or BSR form."""
    values, at, begin = load_parts(data, indices, starts)
    blocks = values if values.ndim == 3 else values.reshape(-1, 1, 1)
    height, width = blocks.shape[1:]
    full = arrays.zeros(((len(begin) - 1) * height, columns), values.dtype)
    for row in range(len(begin) - 1):
        for i in range(begin[row], begin[row + 1]):
            top, left = row * height, at[i] * width
            full[top : top + height, left : left + width] = blocks[i]
    return full


@reads("nn.sparse_dense")
def read_sparse_dense(g, x, data, indices, starts, *, sparse_lhs=False):
    """The dense operand times the transpose of the sparse one."""
    (columns,) = require_static_sizes(x, x.rank - 1)
    sparse = to_dense_matrix(data, indices, starts, columns)
    if sparse_lhs:
        return g.MatMul(g.const(sparse), g.Transpose(x, perm=(1, 0)))
    return g.MatMul(x, g.const(np.ascontiguousarray(sparse.T)))


@reads("nn.sparse_transpose")
def read_sparse_transpose(g, data, indices, starts):
    """The rows of a square matrix, by single elements, as its columns."""
    elements, columns, begin = load_parts(data, indices, starts)
    count = len(begin) - 1
    rows = np.repeat(arrays.arange(count), np.diff(begin))
    order = np.argsort(columns, kind="stable")
    ends = np.searchsorted(columns[order], arrays.arange(count + 1))
    parts = (elements[order], rows[order], ends)
    kinds = (v.type.numpy for v in (data, indices, starts))
    return tuple(g.const(v.astype(t)) for v, t in zip(parts, kinds, strict=True))


@reads("nn.sparse_conv2d")
def read_sparse_conv2d(g, x, data, indices, starts, *, layout="NHWC", kernel_size: Ints = (1, 1)):
    """A kernel of one element: the channels times the sparse matrix."""
    require(set(kernel_size) == {1}, f"kernel_size={kernel_size}: only a kernel of one element")
    require(layout in ("NHWC", "NCHW"), f"layout={layout!r}")
    channels = x.ranked_shape[layout.index("C")]
    require(isinstance(channels, int), "an input of unknown size")
    w = to_dense_matrix(data, indices, starts, channels)
    if layout == "NHWC":
        return g.MatMul(x, g.const(np.ascontiguousarray(w.T)))
    return g.Conv(x, g.const(w[:, :, None, None]), kernel_shape=(1, 1), strides=(1, 1),
                  dilations=(1, 1), pads=(0, 0, 0, 0))  # fmt: skip


@reads("sparse_fill_empty_rows")
def read_sparse_fill_empty_rows(g, index, values, shape, fill):
    """An element of ``fill`` at the begin of each row that has none; then all by row."""
    require(values.type.kind in "iu", "values that are not whole, whose fractions TVM cuts off")
    rows = g.Gather(g.cast(index, DType.INT64), 0, axis=1)
    count = g.Gather(g.cast(shape, DType.INT64), 0, axis=0)
    all_rows = g.Range(g.const(0, DType.INT64), count, g.const(1, DType.INT64))
    same = g.cast(g.Equal(g.Unsqueeze(rows, [0]), g.Unsqueeze(all_rows, [1])), DType.INT32)
    empty = g.Equal(g.ReduceSum(same, [1], keepdims=0), g.const(0, DType.INT32))
    added = g.Transpose(g.NonZero(empty), perm=(1, 0))
    zeros = g.Expand(g.const([[0]], DType.INT64), g.Concat(
        g.Shape(added, start=0, end=1), g.Sub(g.Shape(index, start=1, end=2), [1]), axis=0
    ))  # fmt: skip
    indices = g.Concat(g.cast(index, DType.INT64), g.Concat(added, zeros, axis=1), axis=0)
    fills = g.Expand(g.Reshape(fill, [1]), g.Shape(added, start=0, end=1))
    filled = g.Concat(values, fills, axis=0)
    keys = g.Gather(indices, 0, axis=1)
    _, order = g.TopK(keys, g.Shape(keys), axis=0, largest=0, sorted=1, outputs=2)
    return (g.cast(g.Gather(indices, order, axis=0), index.type), g.Gather(filled, order, axis=0),
            empty)  # fmt: skip


@reads("nn.sparse_add")
def read_sparse_add(g, x, data, indices, starts):
    return g.Add(
        x, g.const(to_dense_matrix(data, indices, starts, require_static_sizes(x, x.rank - 1)[0]))
    )


@reads("sparse_reshape")
def read_sparse_reshape(g, index, before, after):
    """Rows of coordinates in one shape as those in another; one size may be -1."""
    old = [int(v) for v in before.ints()]
    new = [int(v) for v in after.ints()]
    total = int(np.prod(old))
    if -1 in new:
        new[new.index(-1)] = total // -int(np.prod(new))
    strides = [int(np.prod(s[i + 1 :])) for s in (old, new) for i in range(len(s))]
    index_int64 = g.cast(index, DType.INT64)
    flat = g.ReduceSum(g.Mul(index_int64, np.array(strides[: len(old)], np.int64)), [1], keepdims=1)
    steps = np.array(strides[len(old) :], np.int64)
    rows = g.Mod(g.Div(flat, steps), np.array(new, np.int64))
    return g.cast(rows, index.type), g.const(np.array(new).astype(before.type.numpy))
