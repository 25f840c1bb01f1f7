"""Matrix products. ``out_dtype`` is the type they are summed in."""

from __future__ import annotations

from functools import partial

from serde.decompositions.expressions import cast, in_float32
from serde.ir.graph import DType, Value

from ..rules import reads
from ..upgrade import was_transposed


def wide(g, dtype: DType | None, *xs: Value):
    """Operands in the type the products are summed in."""
    return [cast(g, x, dtype or xs[0].type) for x in xs]


def product(g, a: Value, b: Value, dtype: DType | None):
    a, b = wide(g, dtype, a, b)
    if a.type.bits < 32 and a.type.kind in "iu":
        return cast(g, g.MatMul(cast(g, a, DType.INT32), cast(g, b, DType.INT32)), a.type)
    return g.MatMul(a, b)


def turned(g, x: Value):
    """The last two axes exchanged."""
    return g.Transpose(x, perm=(*range(x.rank - 2), x.rank - 1, x.rank - 2))


@reads("nn.dense", ignore=("units",))
def read_dense(g, x, w, *, out_dtype: DType | None = None):
    """``x`` times the transpose of ``w``."""
    return product(g, x, turned(g, w), out_dtype)


@reads("nn.matmul", "nn.batch_matmul", ignore=("units",))
def read_matmul(
    g, a, b, *, out_dtype: DType | None = None, transpose_a=False, transpose_b=False, untold=False
):
    transpose_b = was_transposed(a, b) if untold else transpose_b
    a = turned(g, a) if transpose_a else a
    b = turned(g, b) if transpose_b else b
    return product(g, a, b, out_dtype)


@reads("nn.contrib_dense_pack", ignore=("units",))
def read_dense_pack(g, x, w, *, out_dtype: DType | None = None, weight_layout="NC8n"):
    from .layouts import unpacked

    return product(g, x, turned(g, unpacked(g, w, weight_layout, "NC")), out_dtype)


@reads("nn.bias_add")
def read_bias_add(g, x, b, *, axis=1):
    return g.Add(x, along(g, b, axis % x.rank, x.rank))


def along(g, x: Value, axis: int, rank: int):
    """A vector as a tensor of ``rank`` whose elements lie along ``axis``."""
    behind = rank - 1 - axis
    return g.Unsqueeze(x, list(range(1, behind + 1))) if behind else x


@reads("einsum")
def read_einsum(g, *xs, equation: str):
    return g.Einsum(*xs, equation=equation)


def read_loss_of(logits, g, x, y):
    """Minus the mean over the rows of ``y * log(x)``, summed."""

    def apply(g, x, y):
        log = g.LogSoftmax(x, axis=x.rank - 1) if logits else g.Log(x)
        return row_mean_of_products(g, log, y)

    return in_float32(g, apply, x, y)


def row_mean_of_products(g, x: Value, y: Value):
    """Minus the sum of ``x * y``, divided by the number of rows."""
    total = g.ReduceSum(g.Mul(x, y), list(range(x.rank)), keepdims=0)
    rows = cast(g, g.Squeeze(g.Shape(x, start=0, end=1), [0]), x.type)
    return g.Neg(g.Div(total, rows))


reads("nn.cross_entropy")(partial(read_loss_of, False))


@reads("nn.cross_entropy_with_logits")
def read_cross_entropy_with_logits(g, x, y):
    """Minus the mean over the rows of ``x * y``, summed."""
    return in_float32(g, row_mean_of_products, x, y)


@reads("nn.nll_loss")
def read_nll_loss(g, x, target, weights, *, ignore_index: int, reduction="mean"):
    return g.NegativeLogLikelihoodLoss(
        x, target, weights, ignore_index=ignore_index, reduction=reduction
    )
