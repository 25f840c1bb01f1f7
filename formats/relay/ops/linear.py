"""Matrix products. ``out_dtype`` is the type they are summed in."""

from __future__ import annotations

from math import prod

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint
from serde.spec.folding import find_transpose_source

from ..rules import reads
from ..target import legalizations, set_type, writes
from ..upgrade import was_transposed
from .integer_range import FLOAT32_EXACT, INT32_MOST, abs_max, as_bytes
from .layouts import unpack_layout
from .shape import declare_sizes

# Whose products are summed in single precision, as other runtimes do
HALF = DType.FLOAT16


def multiply_matrices(g, a: Value, b: Value, dtype: DType | None):
    """The product, summed in ``dtype``, or else in the type of ``a``."""
    a, b = (g.cast(x, dtype or a.type) for x in (a, b))
    if a.type.kind in "iu":
        return g.cast(multiply_integers(g, a, b), a.type)
    return g.MatMul(a, b)


def multiply_integers(g, a: Value, b: Value):
    """Products of integers, summed as floats where those count exactly; else as bytes or int32."""
    depth = a.ranked_shape[-1]
    largest = abs_max(g, a) * abs_max(g, b) * depth if isinstance(depth, int) else None
    if largest is not None and largest <= FLOAT32_EXACT:
        floats = (g.cast(v, DType.FLOAT32) for v in (a, b))
        return g.cast(g.MatMul(*floats), DType.INT32)
    narrow = a.type.bits <= 32 or (largest is not None and largest <= INT32_MOST)
    if narrow and (parts := as_bytes(g, a, b)) is not None:
        return g.MatMulInteger(*parts)
    sum_dtype = DType.INT32 if a.type.bits < 32 else a.type
    return g.MatMul(g.cast(a, sum_dtype), g.cast(b, sum_dtype))


def swap_last_axes(g, x: Value):
    """The last two axes exchanged."""
    return g.Transpose(x, perm=(*range(x.rank - 2), x.rank - 1, x.rank - 2))


@reads("nn.dense", ignore=("units",))
def read_dense(g, x, w, *, out_dtype: DType | None = None):
    """``x`` times the transpose of ``w``."""
    return multiply_matrices(g, x, swap_last_axes(g, w), out_dtype)


@reads("nn.matmul", "nn.batch_matmul", ignore=("units",))
def read_matmul(
    g, a, b, *, out_dtype: DType | None = None, transpose_a=False, transpose_b=False,
    decide_by_shapes: Hint[bool] = False,
):  # fmt: skip
    transpose_b = was_transposed(a, b) if decide_by_shapes else transpose_b
    a = swap_last_axes(g, a) if transpose_a else a
    b = swap_last_axes(g, b) if transpose_b else b
    return multiply_matrices(g, a, b, out_dtype)


@reads("nn.contrib_dense_pack", ignore=("units",))
def read_dense_pack(g, x, w, *, out_dtype: DType | None = None, weight_layout="NC8n"):
    return multiply_matrices(
        g, x, swap_last_axes(g, unpack_layout(g, w, weight_layout, "NC")), out_dtype
    )


@reads("nn.bias_add")
def read_bias_add(g, x, b, *, axis=1):
    return g.Add(x, align_to_axis(g, b, axis % x.rank, x.rank))


def align_to_axis(g, x: Value, axis: int, rank: int):
    """A vector as a tensor of ``rank`` whose elements lie along ``axis``."""
    behind = rank - 1 - axis
    return g.Unsqueeze(x, list(range(1, behind + 1))) if behind else x


@reads("einsum")
def read_einsum(g, *xs, equation: str):
    return g.Einsum(*xs, equation=equation)


@reads("nn.cross_entropy")
def read_cross_entropy(g, x, y):
    """Minus the mean over the rows of ``y * log(x)``, summed."""
    return g.compute_in_float32(lambda g, x, y: row_mean_of_products(g, g.Log(x), y), x, y)


def row_mean_of_products(g, x: Value, y: Value):
    """Minus the sum of ``x * y``, divided by the number of rows."""
    total = g.ReduceSum(g.Mul(x, y), list(range(x.rank)), keepdims=0)
    rows = g.cast(g.Squeeze(g.Shape(x, start=0, end=1), [0]), x.type)
    return g.Neg(g.Div(total, rows))


@reads("nn.cross_entropy_with_logits")
def read_cross_entropy_with_logits(g, x, y):
    """Minus the mean over the rows of ``x * y``, summed."""
    return g.compute_in_float32(row_mean_of_products, x, y)


@reads("nn.nll_loss")
def read_nll_loss(g, x, target, weights, *, ignore_index: int, reduction="mean"):
    return g.NegativeLogLikelihoodLoss(
        x, target, weights, ignore_index=ignore_index, reduction=reduction
    )


@legalizations.for_each(("MatMul",))
def legalize_product(op: str, g, a: Value, b: Value, *rest: Value | None):
    """Two matrices, or two stacks of them: what is broadcast is spread out, vectors get an axis.

    TVM has no products of tensors without elements: those are zeros.
    """
    if 0 in (*a.ranked_shape, *b.ranked_shape):
        return _zero_product(g, DType.INT32 if op == "MatMulInteger" else a.type, a, b)
    if a.rank == 1 or b.rank == 1:
        return _multiply_vectors(g, op, a, b, *rest)
    if b.rank == 2:
        return None if a.rank == 2 else _multiply_flattened(g, op, a, b, *rest)
    if a.rank == b.rank == 3 and _is_stacked(a, b):
        return None
    return _multiply_broadcast(g, op, a, b, *rest)


def _zero_product(g, dtype: DType, a: Value, b: Value):
    """Zeros of the sizes of a product."""
    rows = g.Shape(a, end=a.rank - 1)
    if b.rank == 1:
        return g.Expand(g.const(0, dtype), rows)
    lead = g.Shape(b, end=b.rank - 2)
    columns = g.Shape(b, start=b.rank - 1)
    if a.rank == 1:
        return g.Expand(g.const(0, dtype), g.Concat(lead, columns, axis=0))
    ends = g.Concat(g.Shape(a, start=a.rank - 2, end=a.rank - 1), columns, axis=0)
    zeros = g.Expand(g.const(0, dtype), ends)
    for v in (a, b):
        size = g.Concat(g.Shape(v, end=v.rank - 2), [1, 1], axis=0)
        zeros = g.Add(zeros, g.Expand(g.const(0, dtype), size))
    return zeros


def _is_stacked(a: Value, b: Value) -> bool:
    one, other = a.ranked_shape[0], b.ranked_shape[0]
    return one == other or 1 in (one, other)


def _multiply_vectors(g, op: str, a: Value, b: Value, *rest: Value | None):
    rows = g.Unsqueeze(a, [0]) if a.rank == 1 else a
    columns = g.Unsqueeze(b, [1]) if b.rank == 1 else b
    product = g[op](rows, columns, *rest)
    last = product.rank - 1
    gone = ([last - 1] if a.rank == 1 else []) + ([last] if b.rank == 1 else [])
    return g.Squeeze(product, gone)


def _multiply_flattened(g, op: str, a: Value, b: Value, *rest: Value | None):
    """All axes of ``a`` but the last are rows."""
    inner, columns = b.ranked_shape
    require(isinstance(inner, int), "a product over an axis of dynamic size")
    rows = g[op](g.Reshape(a, [-1, inner]), b, *rest)
    lead = g.Shape(a, end=a.rank - 1)
    size = [columns] if isinstance(columns, int) else g.Shape(b, start=1)
    return g.Reshape(rows, g.Concat(lead, size, axis=0), allowzero=1)


def _multiply_broadcast(g, op: str, a: Value, b: Value, *rest: Value | None):
    """Leading axes spread out to a common shape, and made one.

    The two stacks are of one size even where their types do not say so.
    """
    lead_a, lead_b = (g.Shape(v, end=v.rank - 2) for v in (a, b))
    ones = g.Expand(1, lead_a), g.Expand(1, lead_b)
    lead = g.Shape(g.Add(*ones)) if a.ranked_shape[:-2] != b.ranked_shape[:-2] else lead_a
    count, flat = _product_of_sizes(lead), []
    for v in (a, b):
        last = g.Shape(v, start=v.rank - 2)
        expanded = v if lead is lead_a is lead_b else g.Expand(v, g.Concat(lead, last, axis=0))
        flat.append(g.Reshape(expanded, g.Concat([count], last, axis=0)))
    product = g.as_is(op, (*flat, *rest), {})
    ends = g.Shape(a, start=a.rank - 2, end=a.rank - 1), g.Shape(b, start=b.rank - 1)
    return g.Reshape(product, g.Concat(lead, *ends, axis=0), allowzero=1)


def _product_of_sizes(shape: Value) -> int:
    """How many elements a shape has; -1, for Reshape to infer, where that is dynamic or none."""
    sizes = shape_data_of(shape) or (None,)
    numbers = [d for d in sizes if isinstance(d, int)]
    return -1 if len(numbers) < len(sizes) else prod(numbers) or -1


@writes("MatMul")
def write_mat_mul(r, a, b):
    """``nn.dense`` has the second operand transposed; TVM 0.17 errs in one of open columns.

    It takes no rows of the second that it knows with columns of the first that it does not.
    """
    out_dtype, inner = "float32" if a.type is HALF else None, b.ranked_shape[-2]
    if isinstance(inner, int) and not isinstance(a.ranked_shape[-1], int):
        known = declare_sizes(r, a, (*(None,) * (a.rank - 1), inner))
        a = set_type(known, a.dtype, (*a.ranked_shape[:-1], inner))
    if a.rank == 3:
        product = emit_batch_matmul(r, a, b, out_dtype)
    elif isinstance(b.ranked_shape[1], int):
        before = find_transpose_source(b, (1, 0))  # the weight as a layer had it
        turned = r.transpose(b, axes=(1, 0)) if before is None else r.adopt(before)
        product = r.nn.dense(a, turned, units=b.ranked_shape[1], out_dtype=out_dtype)
    else:
        product = emit_batch_matmul(
            r, r.expand_dims(a, axis=0), r.expand_dims(b, axis=0), out_dtype
        )
        product = r.squeeze(product, axis=(0,))
    return r.cast(product, dtype=a.type.value) if out_dtype else product


def emit_batch_matmul(r, a, b, out_dtype: str | None):
    return r.nn.batch_matmul(a, b, transpose_a=False, transpose_b=False, out_dtype=out_dtype)
