"""Products of matrices with what is fused into them, and other linear algebra."""

from __future__ import annotations

from serde.errors import require
from serde.ir import arrays
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


INVERSE_MOST = 16  # rows of matrices whose elimination is unrolled


@reads("Inverse")
def read_inverse(g, x):
    """Gauss-Jordan elimination, unrolled: the largest pivot of each column is swapped up."""
    size = x.ranked_shape[-1]
    require(isinstance(size, int) and size <= INVERSE_MOST,
            f"matrices of more than {INVERSE_MOST} rows, or of a dynamic number")  # fmt: skip
    assert isinstance(size, int)
    eye = g.const(arrays.eye(size, dtype=x.type.numpy))
    like = g.Expand(eye, g.Shape(x))
    rows = g.Concat(x, like, axis=-1)
    places = g.const(arrays.arange(size).reshape(size, 1))
    for column in range(size):
        rows = _eliminate(g, rows, column, places)
    return g.slice_axis(rows, -1, size, 2 * size)


def _eliminate(g, rows: Value, column: int, places: Value):
    """Make a column of ``rows`` one of the identity."""
    values = g.Abs(g.slice_axis(rows, -1, column, column + 1))
    free = g.Where(g.GreaterOrEqual(places, column), values, -1.0)
    pivot = g.ArgMax(free, axis=-2, keepdims=1)
    is_pivot, is_here = g.Equal(places, pivot), g.Equal(places, column)
    chosen = g.ReduceSum(g.Where(is_pivot, rows, 0.0), [-2], keepdims=1)
    here = g.slice_axis(rows, -2, column, column + 1)
    swapped_rows = g.Where(is_pivot, here, rows)
    scaled = g.Div(chosen, g.slice_axis(chosen, -1, column, column + 1))
    factor = g.slice_axis(swapped_rows, -1, column, column + 1)
    return g.Where(is_here, scaled, g.Sub(swapped_rows, g.Mul(factor, scaled)))


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
