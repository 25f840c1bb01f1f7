"""Systems of linear equations, inverses and triangular factors, one column or row a step.

ONNX has none of these operators. What MXNet refuses to solve while it runs gives NaN or infinities.
"""

from __future__ import annotations

from typing import Any

from serde.errors import require
from serde.ir.geometry import Ints, axis_of, move_axis_perm
from serde.ir.graph import DType, Value

from ..rules import reads
from .linear import transpose_if


def scan_columns(g, count, state: Value, step):
    """Run ``step(g, column, state)``, which gives the next state and a row that is kept.

    The rows come stacked along a first axis.
    """
    trips = count if isinstance(count, int) else g.Squeeze(count, [0])
    return g.loop(
        lambda g, column, go, states: (go, *step(g, column, states)), trips, g.const(True), state
    )


def move_first_axis_back(g, stacked: Value):
    """The first axis as the last but one."""
    rank = stacked.rank
    return g.Transpose(stacked, perm=move_axis_perm(rank, 0, rank - 2))


@reads("_npi_cholesky", only={"lower": (True,)})
@reads("_linalg_potrf")
def read_cholesky(g, a):
    """The lower triangle whose product with its transpose ``a`` is; the upper one is not read."""
    last, count = a.rank - 1, g.size_of(a, a.rank - 1)
    rows = g.index_range(count)
    low = g.Trilu(a, 0, upper=0)
    matrix = g.Add(low, transpose_if(g, g.Trilu(a, -1, upper=0), True))

    def step(g, column, left):
        line = g.Gather(left, column, axis=last)
        pivot = g.Gather(line, g.Unsqueeze(column, [0]), axis=last - 1)
        line = g.Where(g.Less(rows, column), g.scalar(0, a), g.Div(line, g.Sqrt(pivot)))
        product = g.Mul(g.Unsqueeze(line, [last]), g.Unsqueeze(line, [last - 1]))
        return g.Sub(left, product), line

    return transpose_if(g, move_first_axis_back(g, scan_columns(g, count, matrix, step)[1]), True)


@reads("_linalg_gelqf")
def read_lower_and_orthogonal(g, a):
    """Rows of unit length at right angles, and the lower triangle that gives ``a`` with them.

    One reflection a row turns it onto the diagonal (Householder), away from the sign it has there,
    as LAPACK does. The same reflections make the rows from the identity, which lies below ``a``.
    """
    last = a.rank - 1
    count, width = g.size_of(a, last - 1), g.size_of(a, last)
    columns = g.index_range(width)
    zero = g.scalar(0, a)

    def step(g, column, both):
        row = g.Gather(both, column, axis=last - 1)
        here, behind_it = g.Equal(columns, column), g.Greater(columns, column)
        pivot = g.Gather(row, g.Unsqueeze(column, [0]), axis=last - 1)
        rest = g.ReduceSumSquare(g.Where(behind_it, row, zero), [last - 1], keepdims=1)
        length = g.Sqrt(g.Add(rest, g.Mul(pivot, pivot)))
        first = g.Add(pivot, g.Where(g.Less(pivot, zero), g.Neg(length), length))
        normal = g.Where(here, first, g.Where(behind_it, row, zero))
        square = g.Add(rest, g.Mul(first, first))
        share = g.Where(g.Equal(rest, zero), zero, g.Div(g.scalar(2, a), square))
        along = g.MatMul(both, g.Unsqueeze(normal, [last]))
        return g.Sub(both, g.Mul(along, g.Unsqueeze(g.Mul(normal, share), [last - 1]))), share

    eye = g.cast_like(g.Equal(g.Unsqueeze(columns, [1]), columns), a)
    batch = [g.size_of(a, i) for i in range(last - 1)]
    eye = g.Expand(eye, g.shape_from([*batch, width, width]))
    done, _ = scan_columns(g, count, g.Concat(a, eye, axis=last - 1), step)
    done = g.slice_axis(done, last, 0, count)
    lower = g.Trilu(g.slice_axis(done, last - 1, 0, count), 0, upper=0)
    return transpose_if(g, g.slice_axis(done, last - 1, count, 2**31 - 1), True), lower


def solve(g, a: Value, b: Value):
    """What times square matrices ``a`` gives ``b``: by Gauss and Jordan, the largest pivot first.

    A last column counts how often each row was the pivot.
    """
    last, count = a.rank - 1, g.size_of(a, a.rank - 1)
    rows = g.Unsqueeze(g.index_range(count), [1])
    unused = g.Mul(g.Slice(b, [0], [1], [last], [1]), g.scalar(0, b))

    def step(g, column, both):
        line = g.Gather(both, g.Unsqueeze(column, [0]), axis=last)
        free = g.Equal(g.Gather(both, [-1], axis=last), g.scalar(0, both))
        at = g.ArgMax(g.Where(free, g.Abs(line), g.scalar(-1, both)), axis=last - 1, keepdims=1)
        chosen = g.Equal(rows, at)
        row = g.ReduceSum(g.Where(chosen, both, g.scalar(0, both)), [last - 1], keepdims=1)
        row = g.Div(row, g.Gather(row, g.Unsqueeze(column, [0]), axis=last))
        used = g.Pad(g.cast_like(chosen, both), g.Concat([0] * last, more, [0] * a.rank, axis=0))
        cleared = g.Where(chosen, row, g.Sub(both, g.Mul(line, row)))
        return g.Add(keep_last_column(g, both, cleared), used), g.cast_like(
            g.Squeeze(chosen, [last]), both
        )

    def keep_last_column(g, both, cleared):
        """``cleared`` with the last column as it was."""
        counts = g.Gather(both, [-1], axis=last)
        return g.Concat(g.Slice(cleared, [0], [-1], [last], [1]), counts, axis=last)

    both = g.Concat(a, b, unused, axis=last)
    more = g.Sub(g.shape_from([g.size_of(both, last)]), [1])
    done, order = scan_columns(g, count, both, step)
    right = g.slice_axis(done, last, count, -1)
    return g.MatMul(move_first_axis_back(g, order), right)


def identity_like(g, a: Value):
    """Identity matrices of the shape of ``a``."""
    line = g.index_range(g.size_of(a, a.rank - 1))
    eye = g.cast_like(g.Equal(g.Unsqueeze(line, [1]), line), a)
    return g.Expand(eye, g.Shape(a))


@reads("_linalg_inverse")
def read_inverse(g, a):
    return solve(g, a, identity_like(g, a))


@reads("_linalg_potri")
def read_potri(g, a):
    """The inverse of the matrices whose Cholesky factors ``a`` are."""
    low = g.Trilu(a, 0, upper=0)
    half = read_inverse(g, low)
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
