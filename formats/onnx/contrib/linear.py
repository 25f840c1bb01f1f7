"""Products of matrices with what is fused into them, and other linear algebra."""

from __future__ import annotations

from serde.decompositions import linear_systems
from serde.errors import require
from serde.ir.graph import Value

from .activation import activate
from .table import reads


def _arrange_operand(g, x: Value, transpose: int, batch: int):
    """An operand of FusedMatMul: ``batch`` brings axis -2 in front of those of the batch."""
    if not transpose and not batch:
        return x
    rank = x.rank
    require(rank > 1, "a vector that is to be transposed")
    order = [*range(rank)]
    if batch:  # (M, batch…, K) is (batch…, M, K)
        order = [*range(1, rank - 1), 0, rank - 1]
    if transpose:
        order[-2], order[-1] = order[-1], order[-2]
    return g.Transpose(x, perm=order)


@reads("FusedMatMul")
def read_fused_matmul(g, a, b, *, alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0):
    product = g.MatMul(
        _arrange_operand(g, a, transA, transBatchA), _arrange_operand(g, b, transB, transBatchB)
    )
    return product if alpha == 1 else g.Mul(product, alpha)


@reads("TransposeMatMul")
def read_transpose_matmul(g, a, b, *, alpha=1.0, transA=0, transB=0):
    return read_fused_matmul(g, a, b, alpha=alpha, transA=transA, transB=transB)


@reads("FusedMatMulActivation")
def read_fused_matmul_activation(
    g, a, b, *, activation: str, activation_alpha: float | None = None,
    activation_axis: int | None = None, activation_beta: float | None = None,
    activation_gamma: float | None = None, alpha=1.0, transA=0, transB=0, transBatchA=0,
    transBatchB=0,
):  # fmt: skip
    product = read_fused_matmul(
        g, a, b, alpha=alpha, transA=transA, transB=transB, transBatchA=transBatchA,
        transBatchB=transBatchB,
    )  # fmt: skip
    if activation == "Softmax":
        return g.Softmax(product, axis=-1 if activation_axis is None else activation_axis)
    return activate(g, product, activation, (activation_alpha, activation_beta, activation_gamma))


@reads("FusedGemm")
def read_fused_gemm(
    g, a, b, c=None, *, activation="", activation_alpha: float | None = None,
    activation_beta: float | None = None, activation_gamma: float | None = None, alpha=1.0,
    beta=1.0, transA=0, transB=0,
):  # fmt: skip
    y = g.Gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return activate(g, y, activation, (activation_alpha, activation_beta, activation_gamma))


@reads("Inverse")
def read_inverse(g, x):
    return linear_systems.inverse(g, x)


@reads("CDist")
def read_cdist(g, a, b, *, metric="sqeuclidean"):
    require(metric in ("sqeuclidean", "euclidean"), f"no support for metric={metric!r}")
    apart = g.Sub(g.Unsqueeze(a, [1]), g.Unsqueeze(b, [0]))
    squares = g.ReduceSum(g.Mul(apart, apart), [-1], keepdims=0)
    return g.Sqrt(squares) if metric == "euclidean" else squares


@reads.for_each({"ComplexMul": 1, "ComplexMulConj": -1})
def read_complex_product(sign, g, a, b):
    """Of numbers whose real and imaginary parts lie along the last axis; ``sign`` is that of b."""
    (a_re, a_im), (b_re, b_im) = (g.Split(v, axis=-1, num_outputs=2, outputs=2) for v in (a, b))
    b_im = g.Neg(b_im) if sign < 0 else b_im
    real = g.Sub(g.Mul(a_re, b_re), g.Mul(a_im, b_im))
    imaginary = g.Add(g.Mul(a_re, b_im), g.Mul(a_im, b_re))
    return g.Concat(real, imaginary, axis=-1)
