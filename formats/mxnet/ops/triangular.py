"""Diagonals and triangles of matrices."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import axis_of, other_axes
from serde.ir.graph import DType, Value

from ..rules import dtype_of, reads


def diagonal(g, x: Value, k: int, axis1: int, axis2: int):
    """The diagonal ``k`` above the main one, over two axes, as the last axis."""
    a, b = axis_of(axis1, x.rank), axis_of(axis2, x.rank)
    require(a != b, f"axis1={axis1} and axis2={axis2} are one axis")
    kept = other_axes((a, b), x.rank)
    rows, columns = (g.shape_from([g.size_of(x, axis)]) for axis in (a, b))
    top, left = max(-k, 0), max(k, 0)
    count = g.Min(g.Sub(rows, [top]), g.Sub(columns, [left]))
    places = g.Add(
        g.Mul(g.index_range(count), g.Add(columns, [1])), g.Add(g.Mul(columns, [top]), [left])
    )
    last = g.Transpose(x, perm=(*kept, a, b))
    sizes = [g.size_of(x, axis) for axis in kept]
    flat = g.Reshape(last, g.shape_from([*sizes, -1]))
    return g.Gather(flat, places, axis=len(kept))


def embed_diagonal(g, x: Value, k: int):
    """Square matrices with the last axis of ``x`` on their diagonal ``k``, and zeros elsewhere."""
    last, edge = x.rank - 1, abs(k)
    lines = g.index_range(g.Add(g.shape_from([g.size_of(x, last)]), [edge]))
    on = g.Equal(lines, g.Add(g.Unsqueeze(lines, [1]), k))
    padded = g.Pad(x, [0] * (x.rank + last) + [edge])
    return g.Where(on, g.Unsqueeze(padded, [x.rank if k >= 0 else last]), g.scalar(0, x))


@reads("diag")
def read_diag(g, x, *, k=0, axis1=0, axis2=1):
    return embed_diagonal(g, x, k) if x.rank == 1 else diagonal(g, x, k, axis1, axis2)


@reads("_np_diag", "_npi_diag")
def read_numpy_diag(g, x, *, k=0):
    return embed_diagonal(g, x, k) if x.rank == 1 else diagonal(g, x, k, 0, 1)


@reads("_np_diagflat", "_npi_diagflat")
def read_diagflat(g, x, *, k=0):
    return embed_diagonal(g, g.Reshape(x, [-1]), k)


@reads("_np_diagonal", "_npi_diagonal")
def read_diagonal(g, x, *, offset=0, axis1=0, axis2=1):
    return diagonal(g, x, offset, axis1, axis2)


@reads("_np_trace", "_npi_trace")
def read_trace(g, x, *, offset=0, axis1=0, axis2=1):
    return g.ReduceSum(diagonal(g, x, offset, axis1, axis2), [x.rank - 2], keepdims=0)


def read_triangle(upper, g, x, *, k=0):
    """A single line is repeated to a square first."""
    if x.rank == 1:
        size = g.size_of(x, 0)
        x = g.Expand(x, g.shape_from([size, size]))
    return g.Trilu(x, k, upper=upper)


reads("_npi_tril")(partial(read_triangle, 0))
reads("_npi_triu")(partial(read_triangle, 1))


@reads("_npi_tri", ignore=("ctx",))
def read_tri(g, *, N: int, M: int | None = None, k=0, dtype="float32"):
    """Ones up to a diagonal."""
    arrays.charge_elements(N * (N if M is None else M))
    return g.const(np.tri(N, M, k, dtype_of(dtype).numpy))


@reads("_npi_tril_indices")
def read_tril_indices(g, *, n: int, m: int, k=0):
    """The rows and the columns of the elements up to a diagonal."""
    arrays.charge_elements(2 * n * m)
    rows, columns = np.tril_indices(n, k, m)
    return g.const(rows, DType.INT64), g.const(columns, DType.INT64)


@reads("_npi_diag_indices_from")
def read_diag_indices(g, x):
    """The place along every axis of each element of the diagonal."""
    line = g.index_range(g.size_of(x, 0))
    return g.Expand(line, g.Concat([x.rank], g.Shape(line), axis=0))


@reads("_linalg_extractdiag")
def read_extractdiag(g, x, *, offset=0):
    return diagonal(g, x, offset, -2, -1)


@reads("_linalg_makediag")
def read_makediag(g, x, *, offset=0):
    return embed_diagonal(g, x, offset)


@reads("_linalg_sumlogdiag")
def read_sumlogdiag(g, x):
    total = g.ReduceSum(g.Log(diagonal(g, x, 0, -2, -1)), [x.rank - 2], keepdims=0)
    return g.Reshape(total, [1]) if x.rank == 2 else total
