"""Systems of linear equations, inverses and triangular factors, one column or row a step.

ONNX has none of these operators. What cannot be solved gives NaN or infinities.
"""

from __future__ import annotations

from serde.ir.geometry import move_axis_perm, swap_axes_perm
from serde.ir.graph import Value


def scan_columns(g, count, state: Value, step):
    """Run ``step(g, column, state)``, which gives the next state and a row that is kept.

    The rows come stacked along a first axis.
    """
    trips = count if isinstance(count, int) else g.Squeeze(count, [0])
    return g.loop(
        lambda g, column, go, states: (go, *step(g, column, states)), trips, g.const(True), state
    )


def swap_last_axes(g, x: Value):
    """Matrices, transposed."""
    return g.Transpose(x, perm=swap_axes_perm(x.rank, x.rank - 2, x.rank - 1))


def move_first_axis_back(g, stacked: Value):
    """The first axis as the last but one."""
    rank = stacked.rank
    return g.Transpose(stacked, perm=move_axis_perm(rank, 0, rank - 2))


def cholesky(g, a: Value):
    """The lower triangle whose product with its transpose ``a`` is; the upper one is not read."""
    last, count = a.rank - 1, g.size_of(a, a.rank - 1)
    rows = g.index_range(count)
    low = g.Trilu(a, 0, upper=0)
    matrix = g.Add(low, swap_last_axes(g, g.Trilu(a, -1, upper=0)))

    def step(g, column, left):
        line = g.Gather(left, column, axis=last)
        pivot = g.Gather(line, g.Unsqueeze(column, [0]), axis=last - 1)
        line = g.Where(g.Less(rows, column), g.scalar(0, a), g.Div(line, g.Sqrt(pivot)))
        product = g.Mul(g.Unsqueeze(line, [last]), g.Unsqueeze(line, [last - 1]))
        return g.Sub(left, product), line

    return swap_last_axes(g, move_first_axis_back(g, scan_columns(g, count, matrix, step)[1]))


def factor_rows(g, a: Value):
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
    return swap_last_axes(g, g.slice_axis(done, last - 1, count, 2**31 - 1)), lower


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


def inverse(g, a: Value):
    """The inverses of square matrices."""
    return solve(g, a, identity_like(g, a))
