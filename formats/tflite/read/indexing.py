"""Operators that pick or place elements by their places."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Tensor, Value

from ..rules import reads
from .shapes import long


def zeros(g, shape: Value, like: Value):
    """A tensor of zeros of a shape that an operand tells."""
    one = Tensor.of(np.zeros(1, like.type.numpy))
    return g.ConstantOfShape(long(g, shape), value=one)


@reads("GATHER")
def read_gather(g, x, indices, *, axis: int = 0, batch_dims: int = 0):
    place, batches = axis_of(axis, x.rank), batch_dims % (indices.rank + 1)
    if batches == 0:
        return g.Gather(x, indices, axis=place)
    return gather_by_batch(g, x, indices, place, batches)


def gather_by_batch(g, x, indices, axis: int, batches: int):
    """Indices of each batch of its own: GatherND takes the axis next to the batches."""
    order = [*range(batches), axis, *(a for a in range(batches, x.rank) if a != axis)]
    moved = g.Transpose(x, perm=order)
    y = g.GatherND(moved, g.Unsqueeze(long(g, indices), [indices.rank]), batch_dims=batches)
    between = axis - batches
    if not between:
        return y
    inner = indices.rank - batches
    back = [
        *range(batches), *range(indices.rank, indices.rank + between),
        *range(batches, batches + inner), *range(indices.rank + between, y.rank),
    ]  # fmt: skip
    return g.Transpose(y, perm=back)


@reads("GATHER_ND")
def read_gather_nd(g, x, indices):
    return g.GatherND(x, long(g, indices))


@reads("EMBEDDING_LOOKUP")
def read_embedding_lookup(g, ids, table):
    return g.Gather(table, ids, axis=0)


@reads("SCATTER_ND")
def read_scatter_nd(g, indices, updates, shape):
    """What goes to the same place is added up."""
    return g.ScatterND(zeros(g, shape, updates), long(g, indices), updates, reduction="add")


@reads("SPARSE_TO_DENSE", ignore=("validate_indices",))
def read_sparse_to_dense(g, indices, shape, values, default):
    places = long(g, indices)
    if indices.rank < 2:
        places = g.Reshape(places, [-1, 1])
    whole = g.Expand(default, long(g, shape))
    if values.rank == 0:
        values = g.Expand(values, g.Shape(places, start=0, end=1))
    return g.ScatterND(whole, places, values)


@reads("ONE_HOT")
def read_one_hot(g, indices, depth, on, off, *, axis: int = -1):
    """Indices below 0 are nowhere; ONNX counts them from the end."""
    ids, size = long(g, indices), g.Reshape(long(g, depth), [1])
    ids = g.Where(g.Less(ids, g.const(0, DType.INT64)), g.Squeeze(size, [0]), ids)
    pair = g.Concat(g.Reshape(off, [1]), g.Reshape(on, [1]), axis=0)
    return g.OneHot(ids, size, pair, axis=axis)


@reads("WHERE")
def read_where(g, condition):
    return g.Transpose(g.NonZero(condition), perm=(1, 0))


@reads("MATRIX_DIAG")
def read_matrix_diag(g, x):
    """Matrices with rows of ``x`` on their diagonals."""
    require(x.rank > 0, "a diagonal of no axes. Reshape it")
    size = x.ranked_shape[-1]
    require(isinstance(size, int), "a diagonal of unknown size. Give it (--static, --input)")
    return g.Where(arrays.eye(size, dtype=bool), g.Unsqueeze(x, [x.rank]), g.scalar(0, x))


@reads("MATRIX_SET_DIAG")
def read_matrix_set_diag(g, x, diagonal):
    rows, columns = x.ranked_shape[-2:]
    is_known = isinstance(rows, int) and isinstance(columns, int)
    require(is_known, "matrices of unknown sizes. Give them (--static, --input)")
    if rows > columns:
        diagonal = g.Pad(diagonal, [*[0] * (2 * diagonal.rank - 1), rows - columns])
        diagonal = g.slice_axis(diagonal, diagonal.rank - 1, 0, rows)
    column = g.Unsqueeze(diagonal, [diagonal.rank])
    return g.Where(arrays.eye(rows, columns, dtype=bool), column, x)


@reads.for_each({"NON_MAX_SUPPRESSION_V4": 1, "NON_MAX_SUPPRESSION_V5": 2})
def read_non_max_suppression(kept, g, boxes, scores, most, iou, lowest, sigma=None):
    """The chosen boxes, zeros behind them, and how many they are."""
    require(sigma is None or not sigma.array().any(), "a soft suppression (sigma). Set it to 0")
    count = most.ints()[0]
    chosen = g.NonMaxSuppression(
        g.Unsqueeze(boxes, [0]), g.Unsqueeze(scores, [0, 1]), g.const([count], DType.INT64),
        g.Reshape(iou, [1]), g.Reshape(lowest, [1]),
    )  # fmt: skip
    places = g.Squeeze(g.slice_axis(chosen, 1, 2, 3), [1])
    number = g.Shape(places)
    pads = g.Concat(g.const([0]), g.Sub(g.const([count]), number), axis=0)
    results = [g.cast(g.Pad(places, pads), DType.INT32)]
    if kept == 2:
        results.append(g.Pad(g.Gather(scores, places, axis=0), pads))
    return (*(g.reshape(v, [count]) for v in results), g.cast(g.Squeeze(number, [0]), DType.INT32))
