"""Systems of linear equations, inverses and triangular factors, one column or row a step.

ONNX has none of these operators. What MXNet refuses to solve while it runs gives NaN or infinities.
"""

from __future__ import annotations

from typing import Any

from serde.decompositions.linear_systems import cholesky, factor_rows, inverse, solve
from serde.errors import require
from serde.ir.geometry import Ints, axis_of
from serde.ir.graph import DType, Value

from ..rules import reads
from .linear import transpose_if

reads("_npi_cholesky", only={"lower": (True,)})(cholesky)
reads("_linalg_potrf")(cholesky)
reads("_linalg_gelqf")(factor_rows)


@reads("_linalg_inverse")
def read_inverse(g, a):
    return inverse(g, a)


@reads("_linalg_potri")
def read_potri(g, a):
    """The inverse of the matrices whose Cholesky factors ``a`` are."""
    low = g.Trilu(a, 0, upper=0)
    half = inverse(g, low)
    return g.MatMul(transpose_if(g, half, True), half)


@reads("_linalg_trsm")
def read_trsm(g, a, b, *, transpose=False, rightside=False, lower=True, alpha=1.0):
    """One triangle of ``a`` counts."""
    low = transpose_if(g, g.Trilu(a, 0, upper=int(not lower)), bool(transpose) != bool(rightside))
    y = transpose_if(g, solve(g, low, transpose_if(g, b, rightside)), rightside)
    return y if alpha == 1.0 else g.Mul(y, alpha)


def as_float(g, x: Value):
    return x if x.type.kind == "f" else g.cast(x, DType.FLOAT64)


@reads("_npi_solve")
def read_solve(g, a, b):
    """``b`` holds vectors where it has an axis less than ``a``."""
    a, b = as_float(g, a), as_float(g, b)
    if b.rank == a.rank:
        return solve(g, a, b)
    return g.Squeeze(solve(g, a, g.Unsqueeze(b, [b.rank])), [b.rank])


@reads("_npi_tensorinv")
def read_tensorinv(g, a, *, ind=2):
    """The inverse of a matrix whose rows are the first ``ind`` axes."""
    require(0 < ind < a.rank, f"ind={ind} of {a.rank} axes")
    a = as_float(g, a)
    sizes = g.sizes_of(a)
    matrix = g.Reshape(a, g.shape_from([g.multiply_sizes(sizes[:ind]), -1]))
    return g.Reshape(read_inverse(g, matrix), g.shape_from(sizes[ind:] + sizes[:ind]))


@reads("_npi_tensorsolve")
def read_tensorsolve(g, a, b, *, a_axes: Ints = ()):
    """``a_axes`` are brought to the end of ``a``; its last axes are those of the result."""
    a, b = as_float(g, a), as_float(g, b)
    order = list(range(a.rank))
    for axis in a_axes:
        order.remove(axis_of(axis, a.rank))
        order.append(axis_of(axis, a.rank))
    a = g.Transpose(a, perm=order)
    sizes: Any = g.sizes_of(a)[b.rank :]
    matrix = g.Reshape(a, g.shape_from([-1, g.multiply_sizes(sizes)]))
    y = solve(g, matrix, g.Reshape(b, [-1, 1]))
    return g.Reshape(y, g.shape_from(sizes))
