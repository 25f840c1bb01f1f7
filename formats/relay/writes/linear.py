"""Products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.folding import transposed_of

from ..target import writes
from .recast import recasts

# Whose products are summed in single precision, as other runtimes do
HALF = DType.FLOAT16
Product = Callable[[Any, Any], Any]  # of two matrices


@recasts("Gemm")
def recast_gemm(g, a, b, c=None, *, alpha: float, beta: float, transA: int, transB: int):
    """A product with a transposed matrix, as ``nn.dense`` has it, and a sum."""
    if a.type.kind != "f":
        require(alpha == 1 and beta == 1, f"alpha={alpha}, beta={beta} of {a.type.value} elements")
    a = g.Transpose(a, perm=(1, 0)) if transA else a
    b = g.Transpose(b, perm=(1, 0)) if transB else b
    made = g.MatMul(a, b)
    made = made if alpha == 1 else g.Mul(made, alpha)
    if c is None or beta == 0:
        return made
    return g.Add(made, c if beta == 1 else g.Mul(c, beta))


@recasts("MatMul")
def recast_mat_mul(g, a, b):
    return product_of(g, a, b, g.MatMul)


def product_of(g, a: Value, b: Value, product: Product):
    """Two matrices, or two stacks of them: what is broadcast is spread out, vectors get an axis."""
    if a.rank == 1 or b.rank == 1:
        return _with_vectors(g, a, b, product)
    if b.rank == 2:
        return None if a.rank == 2 else _flattened(g, a, b, product)
    if a.rank == b.rank == 3 and _stacked(a, b):
        return None
    return _spread(g, a, b, product)


def _stacked(a: Value, b: Value) -> bool:
    one, other = a.known[0], b.known[0]
    return one == other or 1 in (one, other)


def _with_vectors(g, a, b, product: Product):
    wide = product(
        g.Unsqueeze(a, [0]) if a.rank == 1 else a, g.Unsqueeze(b, [1]) if b.rank == 1 else b
    )
    last = wide.rank - 1
    gone = ([last - 1] if a.rank == 1 else []) + ([last] if b.rank == 1 else [])
    return g.Squeeze(wide, gone)


def _flattened(g, a, b, product: Product):
    """All axes of ``a`` but the last are rows."""
    inner, columns = b.known
    require(isinstance(inner, int), "a product over an axis of dynamic size")
    rows = product(g.Reshape(a, [-1, inner]), b)
    lead = g.Shape(a, end=a.rank - 1)
    size = [columns] if isinstance(columns, int) else g.Shape(b, start=1)
    return g.Reshape(rows, g.Concat(lead, size, axis=0), allowzero=1)


def _spread(g, a, b, product: Product):
    """Leading axes spread out to a common shape, and made one."""
    lead_a, lead_b = (g.Shape(v, end=v.rank - 2) for v in (a, b))
    ones = g.Expand(1, lead_a), g.Expand(1, lead_b)
    lead = g.Shape(g.Add(*ones)) if a.known[:-2] != b.known[:-2] else lead_a
    flat = []
    for v in (a, b):
        last = g.Shape(v, start=v.rank - 2)
        wide = v if lead is lead_a is lead_b else g.Expand(v, g.Concat(lead, last, axis=0))
        flat.append(g.Reshape(wide, g.Concat([-1], last, axis=0)))
    made = product(*flat)
    ends = g.Shape(a, start=a.rank - 2, end=a.rank - 1), g.Shape(b, start=b.rank - 1)
    return g.Reshape(made, g.Concat(lead, *ends, axis=0), allowzero=1)


@writes("MatMul")
def write_mat_mul(r, a, b):
    """``nn.dense`` has the second operand transposed; TVM 0.17 errs in one of open columns."""
    wide = "float32" if a.type is HALF else None
    if a.rank == 3:
        made = stacks(r, a, b, wide)
    elif isinstance(b.known[1], int):
        before = transposed_of(b, (1, 0))  # the weight as a layer had it
        turned = r.transpose(b, axes=(1, 0)) if before is None else r.adopt(before)
        made = r.nn.dense(a, turned, units=b.known[1], out_dtype=wide)
    else:
        made = stacks(r, r.expand_dims(a, axis=0), r.expand_dims(b, axis=0), wide)
        made = r.squeeze(made, axis=(0,))
    return r.cast(made, dtype=a.type.value) if wide else made


def stacks(r, a, b, wide: str | None):
    return r.nn.batch_matmul(a, b, transpose_a=False, transpose_b=False, out_dtype=wide)
