"""Fourier transforms as products with tables, and products with sparse matrices that are known."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.graph import DType, Value
from serde.idioms import cast

from ..rules import reads


def waves(rows: int, count: int, dtype: DType):
    """Cosines and sines, (count, rows)."""
    angle = 2 * np.pi * np.outer(np.arange(count), np.arange(rows)) / count
    return np.cos(angle).astype(dtype.numpy), np.sin(angle).astype(dtype.numpy)


@reads("stft")
def read_stft(
    g, x, window, *, n_fft: int, hop_length: int, win_length: int, normalized=False, onesided=True
):
    """Real and imaginary parts of each frequency and frame."""
    size = x.known[-1]
    require(isinstance(size, int), "a signal of unknown length")
    frames = 1 + (size - n_fft) // hop_length
    rows = n_fft // 2 + 1 if onesided else n_fft
    at = np.arange(frames)[:, None] * hop_length + np.arange(win_length)
    pieces = g.Mul(g.Gather(x, g.const(at), axis=x.rank - 1), window)
    cosines, sines = waves(rows, win_length, x.type)
    parts = [g.MatMul(pieces, g.const(table)) for table in (cosines, -sines)]
    order = (*range(x.rank - 1), x.rank, x.rank - 1)
    y = g.Concat(*(g.Unsqueeze(g.Transpose(p, perm=order), [x.rank + 1]) for p in parts),
                 axis=x.rank + 1)  # fmt: skip
    return g.Div(y, float(np.sqrt(n_fft))) if normalized else y


@reads("dft")
def read_dft(g, real, imaginary, *, inverse=False):
    count = real.known[-1]
    require(isinstance(count, int), "a signal of unknown length")
    cosines, sines = waves(count, count, real.type)
    sines = -sines if inverse else sines
    c, s = g.const(cosines), g.const(sines)
    re = g.Add(g.MatMul(real, c), g.MatMul(imaginary, s))
    im = g.Sub(g.MatMul(imaginary, c), g.MatMul(real, s))
    return (g.Div(re, float(count)), g.Div(im, float(count))) if inverse else (re, im)


def matrix(data: Value, indices: Value, starts: Value, columns: int) -> np.ndarray:
    """A matrix held by rows, in blocks or single elements, spelled out."""
    require(all(v.tensor is not None for v in (data, indices, starts)),
            "a sparse matrix that the model computes")  # fmt: skip
    held, at, begin = data.array(), indices.array(), starts.array()
    blocks = held if held.ndim == 3 else held.reshape(-1, 1, 1)
    height, width = blocks.shape[1:]
    full = np.zeros(((len(begin) - 1) * height, columns), held.dtype)
    for row in range(len(begin) - 1):
        for i in range(begin[row], begin[row + 1]):
            top, left = row * height, at[i] * width
            full[top : top + height, left : left + width] = blocks[i]
    return full


@reads("nn.sparse_dense")
def read_sparse_dense(g, x, data, indices, starts, *, sparse_lhs=False):
    """The dense operand times the transpose of the sparse one."""
    columns = x.known[-1]
    require(isinstance(columns, int), "an operand of unknown size")
    sparse = matrix(data, indices, starts, columns)
    if sparse_lhs:
        return g.MatMul(g.const(sparse), g.Transpose(x, perm=(1, 0)))
    return g.MatMul(x, g.const(np.ascontiguousarray(sparse.T)))


@reads("nn.sparse_add")
def read_sparse_add(g, x, data, indices, starts):
    return g.Add(x, g.const(matrix(data, indices, starts, x.dims[-1])))


@reads("sparse_reshape")
def read_sparse_reshape(g, index, before, after):
    """Rows of coordinates in one shape as those in another; one size may be -1."""
    old = [int(v) for v in before.ints()]
    new = [int(v) for v in after.ints()]
    total = int(np.prod(old))
    if -1 in new:
        new[new.index(-1)] = total // -int(np.prod(new))
    strides = [int(np.prod(s[i + 1 :])) for s in (old, new) for i in range(len(s))]
    wide = cast(g, index, DType.INT64)
    flat = g.ReduceSum(g.Mul(wide, np.array(strides[: len(old)], np.int64)), [1], keepdims=1)
    steps = np.array(strides[len(old) :], np.int64)
    rows = g.Mod(g.Div(flat, steps), np.array(new, np.int64))
    return cast(g, rows, index.type), g.const(np.array(new).astype(before.type.numpy))
