"""Systems of linear equations, inverses and factors of matrices."""

from __future__ import annotations

from serde.decompositions.linear_systems import (
    cholesky,
    factor_rows,
    identity_like,
    inverse,
    solve,
    swap_last_axes,
)
from serde.errors import require
from serde.ir.graph import DType

from ..rules import reads
from .linear import add_multiples


@reads("linalg_inv", "inverse")
def read_inverse(g, a):
    return inverse(g, a)


@reads("linalg_inv_ex")
def read_inverse_checked(g, a):
    return inverse(g, a), no_errors(g, a)


def no_errors(g, a):
    """The codes of factorizations that succeed."""
    batch = [g.size_of(a, k) for k in range(a.rank - 2)]
    return g.Expand(g.const(0, DType.INT32), g.shape_from(batch))


@reads("linalg_solve")
def read_solve(g, a, b, *, left):
    """``b`` holds vectors where it has one axis, or an axis less than ``a`` and its sizes."""
    return solve_either(g, a, b, left)


@reads("_linalg_solve_ex", "linalg_solve_ex")
def read_solve_checked(g, a, b, *, left):
    return solve_either(g, a, b, left), no_errors(g, a)


def solve_either(g, a, b, left):
    is_vector = b.rank == 1 or (b.rank == a.rank - 1 and b.ranked_shape == a.ranked_shape[:-1])
    if is_vector:
        return g.Squeeze(solve_wide(g, a, g.Unsqueeze(b, [b.rank])), [a.rank - 1])
    if left:
        return solve_wide(g, a, b)
    return swap_last_axes(g, solve_wide(g, swap_last_axes(g, a), swap_last_axes(g, b)))


def solve_wide(g, a, b):
    """Of operands whose batches are broadcast to each other."""
    if a.ranked_shape[:-2] != b.ranked_shape[:-2]:
        require(a.is_static and b.is_static, "batches of unknown sizes: fix them")
        zero = g.scalar(0, a)
        lead = g.Mul(g.Mul(g.slice_axis(a, a.rank - 1, 0, 1), zero), zero)
        other = g.Mul(g.slice_axis(b, b.rank - 1, 0, 1), zero)
        a, b = g.Add(a, other), g.Add(b, lead)
    return solve(g, a, b)


@reads("linalg_solve_triangular")
def read_solve_triangular(g, a, b, *, upper, left, unitriangular):
    triangle = g.Trilu(a, 0, upper=int(upper))
    if unitriangular:
        eye = identity_like(g, a)
        triangle = g.Add(g.Mul(triangle, g.Sub(g.scalar(1, a), eye)), eye)
    return solve_either(g, triangle, b, left)


@reads("triangular_solve")
def read_triangular_solve(g, b, a, upper, transpose, unitriangular):
    triangle = g.Trilu(a, 0, upper=int(upper))
    require(not unitriangular, "unitriangular=True: use torch.linalg.solve_triangular")
    triangle = swap_last_axes(g, triangle) if transpose else triangle
    return solve_wide(g, triangle, b), g.Identity(a)


@reads("linalg_cholesky", "cholesky")
def read_cholesky(g, a, upper):
    return swap_last_axes(g, cholesky(g, a)) if upper else cholesky(g, a)


@reads("linalg_cholesky_ex")
def read_cholesky_checked(g, a, upper):
    return read_cholesky(g, a, upper), no_errors(g, a)


@reads("cholesky_inverse")
def read_cholesky_inverse(g, factor, upper):
    return inverse(g, multiply_factor(g, factor, upper))


@reads("cholesky_solve")
def read_cholesky_solve(g, b, factor, upper):
    return solve_wide(g, multiply_factor(g, factor, upper), b)


def multiply_factor(g, factor, upper):
    """The matrix that a triangle is a factor of."""
    triangle = g.Trilu(factor, 0, upper=int(upper))
    turned = swap_last_axes(g, triangle)
    return g.MatMul(turned, triangle) if upper else g.MatMul(triangle, turned)


@reads("linalg_slogdet", "slogdet")
def read_log_determinant(g, a):
    value = g.Det(a)
    return g.Sign(value), g.Log(g.Abs(value))


@reads("logdet")
def read_logdet(g, a):
    return g.Log(g.Det(a))


@reads("linalg_qr")
def read_qr(g, a, mode):
    """Of matrices that are not wider than high, in the reduced form."""
    height, width = a.ranked_shape[-2:]
    is_high = isinstance(height, int) and isinstance(width, int) and height >= width
    require(mode == "reduced" and is_high, "the QR factors of a wide matrix, or other than the "
            "reduced ones: factor the transposed matrix, with mode='reduced'")  # fmt: skip
    rows, lower = factor_rows(g, swap_last_axes(g, a))
    return swap_last_axes(g, rows), swap_last_axes(g, lower)


@reads("linalg_multi_dot", "chain_matmul")
def read_products(g, xs):
    product = xs[0]
    for x in xs[1:]:
        product = g.MatMul(product, x)
    return product


@reads("inner")
def read_inner(g, a, b):
    """The last axes of both are summed over."""
    if a.rank == 0 or b.rank == 0:
        return g.Mul(a, b)
    rows = [g.reshape(x, [-1, g.size_of(x, x.rank - 1)]) for x in (a, b)]
    product = g.MatMul(rows[0], g.Transpose(rows[1], perm=[1, 0]))
    sizes = [*g.sizes_of(a)[:-1], *g.sizes_of(b)[:-1]]
    return g.reshape(product, sizes) if sizes else g.Reshape(product, g.const([], DType.INT64))


@reads("tensordot")
def read_tensordot(g, a, b, dims_a, dims_b):
    letters = "abcdefghijklmnopqrstuvwxyz"
    require(a.rank + b.rank <= len(letters), f"a product of {a.rank + b.rank} axes")
    left, right = list(letters[: a.rank]), list(letters[a.rank : a.rank + b.rank])
    for i, j in zip(dims_a, dims_b, strict=True):
        right[j % b.rank] = left[i % a.rank]
    rest = [c for c in left if c not in right] + [c for c in right if c not in left]
    return g.Einsum(a, b, equation=f"{''.join(left)},{''.join(right)}->{''.join(rest)}")


@reads("linalg_vecdot")
def read_vecdot(g, a, b, *, dim):
    return g.ReduceSum(g.Mul(a, b), [dim], keepdims=0)


@reads("addr")
def read_addr(g, x, a, b, *, beta, alpha):
    product = g.Mul(g.Unsqueeze(a, [1]), g.Unsqueeze(b, [0]))
    return add_multiples(g, x, product, beta, alpha)


@reads("addbmm")
def read_addbmm(g, x, a, b, *, beta, alpha):
    product = g.ReduceSum(g.MatMul(a, b), [0], keepdims=0)
    return add_multiples(g, x, product, beta, alpha)
