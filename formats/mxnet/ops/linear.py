"""Products of matrices."""

from __future__ import annotations

from serde.decompositions.elementwise import gemm
from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import Ints, swap_axes_perm
from serde.ir.graph import DType, Value

from ..rules import reads
from ..target import legalizations, scalar_value, writes
from .convolution import present_operands

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
    a = g.Transpose(a, perm=rotate_axes(a.rank, 1)) if transpose_a and a.rank > 1 else a
    b = g.Transpose(b, perm=rotate_axes(b.rank, -1)) if transpose_b and b.rank > 1 else b
    if a.rank == b.rank == 1:
        return g.Unsqueeze(g.MatMul(a, b), [0])
    if b.rank <= 2:
        return g.MatMul(a, b)
    inner = g.size_of(b, 0)
    product = g.MatMul(a, g.reshape(b, [inner, -1]))
    return g.reshape(product, [*g.sizes_of(a)[:-1], *g.sizes_of(b)[1:]])


def rotate_axes(rank: int, by: int) -> Ints:
    return tuple((a + by) % rank for a in range(rank))


@reads("batch_dot", only=STORAGE)
def read_batch_dot(g, a, b, *, transpose_a=False, transpose_b=False):
    return g.MatMul(transpose_if(g, a, transpose_a), transpose_if(g, b, transpose_b))


def transpose_if(g, x: Value, flip: bool):
    """``x`` with its last two axes exchanged."""
    return g.Transpose(x, perm=swap_axes_perm(x.rank, x.rank - 2, x.rank - 1)) if flip else x


@writes("Gemm")
def write_gemm(s, a, b, c=None, *, alpha, beta, transA, transB):
    a = s.transpose(a, axes=(1, 0)) if transA else a
    plain = c is None or (c.rank == 1 and beta == 1.0)
    if transB and alpha == 1.0 and plain:
        count = b.ranked_shape[0]
        return s.FullyConnected(
            a, b, *present_operands(c), num_hidden=count, no_bias=c is None, flatten=False
        )
    y = s.dot(a, b, transpose_b=bool(transB))
    y.dtype = a.dtype
    y = y if alpha == 1.0 else s["_mul_scalar"](y, scalar=alpha)
    if c is None or beta == 0.0:
        return y
    if (n := scalar_value(c)) is not None:
        return s["_plus_scalar"](y, scalar=n * beta)
    return s.broadcast_add(y, c if beta == 1.0 else s["_mul_scalar"](c, scalar=beta))


@writes("MatMul")
def write_mat_mul(s, a, b):
    require(min(a.rank, b.rank) >= 2, "a product with a vector")
    if b.rank == 2:
        return s.dot(a, b)
    require(a.rank == b.rank, "a product that broadcasts")
    require(a.ranked_shape[:-2] == b.ranked_shape[:-2], "a product that broadcasts")
    if a.rank == 3:
        return s.batch_dot(a, b)
    is_float = a.type in (DType.FLOAT32, DType.FLOAT64)
    require(is_float, f"a product of {a.rank} axes of {a.type.value} elements")
    return s["_linalg_gemm2"](a, b)


@legalizations("MatMul")
def legalize_mat_mul(g, a: Value, b: Value):
    """MXNet multiplies floats, of two axes or with equal batches."""
    if a.rank == 1 or b.rank == 1:
        return multiply_vector(g, a, b)
    if a.type.kind != "f":
        products = g.Mul(g.Unsqueeze(a, [a.rank]), g.Unsqueeze(b, [b.rank - 2]))
        return g.ReduceSum(products, [products.rank - 2], keepdims=0)
    if b.rank == 2 or a.ranked_shape[:-2] == b.ranked_shape[:-2]:
        return None
    firsts = [first_of_last(g, v) for v in (a, b)]
    batch = g.Shape(g.Add(*firsts), end=-2)
    if None not in (shape_data_of(batch) or (None,)):
        rest = (g.Concat(batch, g.Shape(v, start=-2), axis=0) for v in (a, b))
        return g.MatMul(*(g.Expand(v, sizes) for v, sizes in zip((a, b), rest, strict=True)))
    equal = [g.Equal(v, v) for v in firsts]
    ones = [g.cast(g.Or(e, g.Not(e)), a.type) for e in equal]
    return g.MatMul(g.Mul(a, ones[1]), g.Mul(b, ones[0]))


def first_of_last(g, x: Value):
    """One element of each matrix: of it only the batch is asked."""
    return g.Slice(x, [0, 0], [1, 1], [x.rank - 2, x.rank - 1], [1, 1])


def multiply_vector(g, a: Value, b: Value):
    wide_a = g.Unsqueeze(a, [0]) if a.rank == 1 else a
    wide_b = g.Unsqueeze(b, [1]) if b.rank == 1 else b
    y = g.MatMul(wide_a, wide_b)
    gone = [y.rank - 2] * (a.rank == 1) + [y.rank - 1] * (b.rank == 1)
    return g.Squeeze(y, gone)


@legalizations("Gemm")
def legalize_gemm(g, a, b, c=None, *, alpha, beta, transA, transB):
    """MXNet has that of floats."""
    if a.type.kind == "f":
        return None
    return gemm(g, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
