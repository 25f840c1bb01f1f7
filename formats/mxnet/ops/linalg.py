"""Linear algebra: products along any axes, triangles and determinants."""

from __future__ import annotations

import string
from functools import reduce

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints, axes_of, axis_of, invert_perm, move_axis_perm, other_axes
from serde.ir.graph import DType, Value

from ..rules import reads, reads_second
from .linear import transpose_if


@reads("_linalg_gemm2")
def read_gemm2(g, a, b, *, transpose_a=False, transpose_b=False, alpha=1.0, axis=-2):
    """``axis`` counts the rows of the matrices, the last axis their columns."""
    order = move_axis_perm(a.rank, axis_of(axis, a.rank), a.rank - 2)
    a, b = g.Transpose(a, perm=order), g.Transpose(b, perm=order)
    y = g.MatMul(transpose_if(g, a, transpose_a), transpose_if(g, b, transpose_b))
    return g.Transpose(multiply_by(g, y, alpha), perm=invert_perm(order))


@reads("_linalg_gemm")
def read_gemm(g, a, b, c, *, transpose_a=False, transpose_b=False, alpha=1.0, beta=1.0, axis=-2):
    y = read_gemm2(
        g, a, b, transpose_a=transpose_a, transpose_b=transpose_b, alpha=alpha, axis=axis
    )
    return g.Add(y, multiply_by(g, c, beta))


def multiply_by(g, x: Value, factor: float):
    return x if factor == 1.0 else g.Mul(x, factor)


@reads("_linalg_syrk")
def read_syrk(g, a, *, transpose=False, alpha=1.0):
    y = g.MatMul(transpose_if(g, a, transpose), transpose_if(g, a, not transpose))
    return multiply_by(g, y, alpha)


@reads("_linalg_trmm")
def read_trmm(g, a, b, *, transpose=False, rightside=False, lower=True, alpha=1.0):
    """One triangle of ``a`` counts."""
    triangle = transpose_if(g, g.Trilu(a, 0, upper=int(not lower)), transpose)
    return multiply_by(g, g.MatMul(b, triangle) if rightside else g.MatMul(triangle, b), alpha)


@reads("_linalg_det")
def read_det(g, a):
    """MXNet's older operators have no scalars."""
    y = g.Det(a)
    return g.Reshape(y, [1]) if a.rank == 2 else y


def sign_and_logarithm(g, y: Value):
    return g.Sign(y), g.Log(g.Abs(y))


reads("_linalg_slogdet")(lambda g, a: sign_and_logarithm(g, read_det(g, a)))
reads_second("_linalg_det")(lambda g, a: g.Det(a))
reads_second("_linalg_slogdet")(lambda g, a: sign_and_logarithm(g, g.Det(a)))


def triangle_indices(size: int, offset: int, lower: bool):
    """Rows and columns of a triangle's elements: a lower one's row by row, an upper one's column
    by column.
    """
    across, along = np.tril_indices(size, -abs(offset))
    return (across, along) if offset < 0 or (offset == 0 and lower) else (along, across)


@reads("_linalg_extracttrian")
def read_extracttrian(g, a, *, offset=0, lower=True):
    """The elements on a diagonal and beyond it."""
    size = a.ranked_shape[-1]
    require(isinstance(size, int), "needs to know the size of the matrices")
    rows, columns = triangle_indices(size, offset, lower)
    flat = g.reshape(a, [*(g.size_of(a, i) for i in range(a.rank - 2)), -1])
    return g.Gather(flat, g.const(rows * size + columns, DType.INT64), axis=a.rank - 2)


@reads("_linalg_maketrian")
def read_maketrian(g, x, *, offset=0, lower=True):
    """Matrices with the last axis of ``x`` on a diagonal and beyond it, and zeros elsewhere."""
    count = x.ranked_shape[-1]
    require(isinstance(count, int), "needs to know how many elements the triangle has")
    side = round((np.sqrt(8 * count + 1) - 1) / 2)
    require(side * (side + 1) // 2 == count,
            f"{count} elements fill no triangle: 1, 3, 6, 10, … elements do")  # fmt: skip
    size = side + abs(offset)
    places = arrays.full((size, size), count)
    places[triangle_indices(size, offset, lower)] = arrays.arange(count)
    last = x.rank - 1
    padded = g.Pad(x, [0] * (x.rank + last) + [1])
    return g.Gather(padded, g.const(places, DType.INT64), axis=last)


@reads("khatri_rao", ignore=("num_args",))
def read_khatri_rao(g, *xs):
    """Column by column the products of all elements with all."""

    def product(a, b):
        return g.Reshape(g.Mul(g.Unsqueeze(a, [1]), g.Unsqueeze(b, [0])), [-1, columns])

    columns = xs[0].ranked_shape[1]
    require(isinstance(columns, int), "needs to know the number of columns")
    return reduce(product, xs)


@reads("_np_dot", "_npi_dot")
def read_numpy_dot(g, a, b):
    """The last axis of ``a`` with the last but one of ``b``; beside a scalar all elements."""
    if a.rank == 0 or b.rank == 0:
        return g.Mul(a, b)
    if b.rank <= 2:
        return g.MatMul(a, b)
    return contract_axes(g, a, b, (a.rank - 1,), (b.rank - 2,))


reads("_npi_matmul")(lambda g, a, b: g.MatMul(a, b))


@reads("_npi_cross")
def read_cross(g, a, b, *, axisa=-1, axisb=-1, axisc=-1):
    """Vectors of two or three numbers lie along an axis of each; two of two give one number."""
    parts, counts = [], []
    for x, axis in ((a, axisa), (b, axisb)):
        at = axis_of(axis, x.rank)
        count = x.ranked_shape[at]
        require(count in (2, 3), f"a vector product of {count} numbers")
        components = [g.Gather(x, i, axis=at) for i in range(count)]
        counts.append(count)
        parts.append([*components, g.Sub(components[0], components[0])][:3])
    (a0, a1, a2), (b0, b1, b2) = parts
    last = g.Sub(g.Mul(a0, b1), g.Mul(a1, b0))
    if counts == [2, 2]:
        return last
    first, second = g.Sub(g.Mul(a1, b2), g.Mul(a2, b1)), g.Sub(g.Mul(a2, b0), g.Mul(a0, b2))
    zero = g.Sub(last, last)
    full = [g.Add(first, zero), g.Add(second, zero), last]
    return g.stack(full, axis_of(axisc, last.rank + 1))


@reads("_npi_kron")
def read_kron(g, a, b):
    """Each element of ``a`` times all of ``b``, in its place."""
    rank = max(a.rank, b.rank)
    a, b = (g.Unsqueeze(x, list(range(rank - x.rank))) for x in (a, b))
    sizes = [g.multiply_sizes([g.size_of(a, i), g.size_of(b, i)]) for i in range(rank)]
    spread = g.Unsqueeze(a, [2 * i + 1 for i in range(rank)])
    full = g.Mul(spread, g.Unsqueeze(b, [2 * i for i in range(rank)]))
    return g.Reshape(full, g.shape_from(sizes))


def contract_axes(g, a: Value, b: Value, mine: Ints, other: Ints):
    """Sums of products over pairs of axes; what is left of ``a`` comes before what is of ``b``."""
    letters = iter(string.ascii_letters)
    left = [next(letters) for _ in range(a.rank)]
    right = [next(letters) for _ in range(b.rank)]
    for i, j in zip(mine, other, strict=True):
        right[j] = left[i]
    kept = [left[i] for i in other_axes(mine, a.rank)] + [
        right[j] for j in other_axes(other, b.rank)
    ]
    return g.Einsum(a, b, equation=f"{''.join(left)},{''.join(right)}->{''.join(kept)}")


@reads("_npi_tensordot")
def read_tensordot(g, a, b, *, a_axes_summed: Ints, b_axes_summed: Ints):
    return contract_axes(g, a, b, axes_of(a_axes_summed, a.rank), axes_of(b_axes_summed, b.rank))


@reads("_npi_tensordot_int_axes")
def read_tensordot_int_axes(g, a, b, *, axes: int):
    return contract_axes(g, a, b, tuple(range(a.rank - axes, a.rank)), tuple(range(axes)))


@reads("_npi_einsum", ignore=("num_args", "optimize"))
def read_einsum(g, *xs, subscripts=""):
    return g.Einsum(*xs, equation=subscripts.replace(" ", ""))
