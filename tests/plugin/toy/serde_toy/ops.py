"""The operators, each both ways."""

from __future__ import annotations

from serde.errors import require

from .rules import reads, writes

SAME = {"relu": "Relu", "add": "Add", "copy": "Identity"}

reads.rename(SAME)
writes.rename({ir: toy for toy, ir in SAME.items()})


@reads("scale")
def read_scale(g, x, *, by: float):
    return g.Mul(x, by)


@writes("Mul")
def write_mul(t, x, y):
    require(y.tensor is not None and y.tensor.size == 1, "a product of two tensors")
    return t.scale(x, by=float(y.array().item()))


@reads("dense")
def read_dense(g, x, w, b=None):
    """``x @ w + b``"""
    y = g.MatMul(x, w)
    return y if b is None else g.Add(y, b)


@writes("MatMul")
def write_matmul(t, x, w):
    return t.dense(x, w)


@writes("Gemm")
def write_gemm(t, x, w, b=None, *, alpha: float, beta: float, transA: int, transB: int):
    """``x @ w + b``, which the hub's passes merge into one node."""
    require(alpha == beta == 1 and not transA and not transB, "a scaled or transposed product")
    return t.dense(x, w, b)


@reads("join")
def read_join(g, *xs, axis=0):
    return g.Concat(*xs, axis=axis)


@writes("Concat")
def write_concat(t, *xs, axis):
    return t.join(*xs, axis=axis)
