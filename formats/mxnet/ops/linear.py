"""Products of matrices."""

from __future__ import annotations

from serde.decompositions.expressions import reshape, size_of, sizes_of
from serde.ir.geometry import Ints, swapped
from serde.ir.graph import Value

from ..rules import reads

STORAGE = {"forward_stype": ("None", "default")}


@reads("FullyConnected", ignore=("num_hidden", "no_bias"))
def read_fully_connected(g, x, w, b=None, *, flatten=True):
    """``flatten`` takes all axes but the first as one; otherwise only the last is multiplied."""
    if flatten or x.rank == 2:
        return g.Gemm(g.Flatten(x, axis=1), w, b, transB=1)
    y = g.MatMul(x, g.Transpose(w, perm=(1, 0)))
    return y if b is None else g.Add(y, b)


@reads("dot", only=STORAGE)
def read_dot(g, a, b, *, transpose_a=False, transpose_b=False):
    """The last axis of ``a`` with the first of ``b``; transposing turns all axes round by one."""
    a = g.Transpose(a, perm=rotated(a.rank, 1)) if transpose_a and a.rank > 1 else a
    b = g.Transpose(b, perm=rotated(b.rank, -1)) if transpose_b and b.rank > 1 else b
    if a.rank == b.rank == 1:
        return g.Unsqueeze(g.MatMul(a, b), [0])
    if b.rank <= 2:
        return g.MatMul(a, b)
    inner = size_of(g, b, 0)
    wide = g.MatMul(a, reshape(g, b, [inner, -1]))
    return reshape(g, wide, [*sizes_of(g, a)[:-1], *sizes_of(g, b)[1:]])


def rotated(rank: int, by: int) -> Ints:
    return tuple((a + by) % rank for a in range(rank))


@reads("batch_dot", only=STORAGE)
def read_batch_dot(g, a, b, *, transpose_a=False, transpose_b=False):
    return g.MatMul(flipped(g, a, transpose_a), flipped(g, b, transpose_b))


def flipped(g, x: Value, flip: bool):
    """``x`` with its last two axes exchanged."""
    return g.Transpose(x, perm=swapped(x.rank, x.rank - 2, x.rank - 1)) if flip else x
