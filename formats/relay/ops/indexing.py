"""Picking parts of a tensor by position or index."""

from __future__ import annotations

import numpy as np

from serde.decompositions.expressions import Size, cast, size_of
from serde.errors import require
from serde.ir.geometry import Ints, axes_of, axis_of
from serde.ir.graph import DType, Value

from ..rules import reads
from .layouts import fixed

FAR = 2**31 - 1


@reads("strided_slice")
def read_strided_slice(
    g, x, *, begin: Ints | None = None, end: Ints | None = None, strides: Ints | None = None,
    slice_mode="end", axes: Ints | None = None,
):  # fmt: skip
    """In mode ``size``, ``end`` is a count, -1 for all that is left, and strides are 1."""
    begin, end = begin or (), end or ()
    chosen = list(axes_of(axes, x.rank)) if axes else list(range(max(len(begin), len(end))))
    count = len(chosen)
    begin = begin + (0,) * (count - len(begin))
    if slice_mode == "size":
        steps: Ints = (1,) * count
        ends = [FAR if e < 0 else b + e for b, e in zip(begin, end, strict=False)]
        ends = [FAR if b < 0 <= e else e for b, e in zip(begin, ends, strict=False)]
    else:
        require(slice_mode == "end", f"slice_mode={slice_mode!r} is unknown")
        steps = (strides or ()) + (1,) * (count - len(strides or ()))
        ends = list(end)
    ends += [FAR if s > 0 else -FAR for s in steps[len(ends) :]]
    return g.Slice(x, list(begin), list(ends), chosen, list(steps))


@reads("dyn.strided_slice", ignore=("begin", "end", "strides", "axes"))
def read_dyn_strided_slice(g, x, begin, end, strides, *, slice_mode="end"):
    begin, end, strides = (cast(g, v, DType.INT64) for v in (begin, end, strides))
    (count,) = begin.dims
    if slice_mode == "size":
        whole = g.Less(end, g.const(0, DType.INT64))
        ends = g.Where(whole, g.const(FAR, DType.INT64), g.Add(begin, end))
        return g.Slice(x, begin, ends, list(range(count)), [1] * count)
    return g.Slice(x, begin, end, list(range(count)), strides)


@reads("strided_set")
def read_strided_set(g, x, v, begin, end, strides):
    """``x`` with ``v`` in place of a slice: positions are computed, then scattered to."""
    bounds = [w.ints() for w in (begin, end, strides)]
    bounds[2] = bounds[2] or (1,) * len(bounds[0])
    cuts = [slice(*b) for b in zip(*bounds, strict=True)]
    rows = [np.arange(d)[c] for d, c in zip(fixed(x, 0), cuts, strict=False)]
    rows += [np.arange(d) for d in fixed(x, len(rows))]
    places = np.stack(np.meshgrid(*rows, indexing="ij"), -1)
    return g.ScatterND(x, g.const(places.astype(np.int64)), v)


def clipped(g, index: Value, size: Size):
    """Indices as int64, those outside ``0 … size - 1`` moved to the nearest end."""
    index = cast(g, index, DType.INT64)
    low = g.const(0, DType.INT64)
    high = g.const(size - 1, DType.INT64) if isinstance(size, int) else g.Squeeze(
        g.Sub(size, [1]), [0]
    )  # fmt: skip
    return g.Min(g.Max(index, low), high)


@reads("take")
def read_take(g, x, index, *, batch_dims=0, axis: int | None = None, mode="clip"):
    """Indices count from the front; ``clip`` and ``wrap`` say what those outside mean."""
    if axis is None:
        x, axis = g.Reshape(x, [-1]), 0
    axis = axis_of(axis, x.rank)
    size = size_of(g, x, axis)
    require(mode in ("clip", "wrap", "fast"), f"mode={mode!r} is unknown")
    if mode == "clip":
        index = clipped(g, index, size)
    elif mode == "wrap":
        index = g.Mod(cast(g, index, DType.INT64), g.const(size) if isinstance(size, int) else size)
    else:
        index = cast(g, index, DType.INT64)
    if batch_dims:
        return batched_take(g, x, index, axis, batch_dims % index.rank)
    return g.Gather(x, index, axis=axis)


def batched_take(g, x: Value, index: Value, axis: int, batch: int):
    """The first ``batch`` axes of both run along together."""
    require(axis == batch, f"batch_dims={batch} with axis={axis}")
    return g.GatherND(x, g.Unsqueeze(index, [index.rank]), batch_dims=batch)


@reads("gather")
def read_gather(g, x, index, *, axis: int):
    return g.GatherElements(x, cast(g, index, DType.INT64), axis=axis_of(axis, x.rank))


@reads("gather_nd", ignore=("index_rank",))
def read_gather_nd(g, x, index, *, batch_dims=0):
    """Relay counts the indices' axes along their first axis, ONNX along the last."""
    order = (*range(1, index.rank), 0)
    index = cast(g, g.Transpose(index, perm=order), DType.INT64)
    return g.GatherND(x, index, batch_dims=batch_dims)


@reads("adv_index")
def read_adv_index(g, x, *indices):
    """Arrays of indices for the first axes, broadcast against each other."""
    rank = max(i.rank for i in indices)
    parts = [cast(g, i, DType.INT64) for i in indices]
    shape = parts[0]
    for part in parts[1:]:
        shape = g.Add(shape, part)
    wide = [g.Unsqueeze(g.Expand(p, g.Shape(shape)), [rank]) for p in parts]
    return g.GatherND(x, g.Concat(*wide, axis=rank) if len(wide) > 1 else wide[0])


@reads("argwhere")
def read_argwhere(g, condition):
    """The coordinates of what is not 0, one row each."""
    found = g.NonZero(cast(g, condition, DType.BOOL))
    return cast(g, g.Transpose(found, perm=(1, 0)), DType.INT32)


@reads("reverse_sequence")
def read_reverse_sequence(g, x, lengths, *, seq_axis=1, batch_axis=0):
    seq, batch = axis_of(seq_axis, x.rank), axis_of(batch_axis, x.rank)
    order = (seq, batch, *(a for a in range(x.rank) if a not in (seq, batch)))
    back = tuple(order.index(a) for a in range(x.rank))
    turned = g.Transpose(x, perm=order)
    y = g.ReverseSequence(turned, cast(g, lengths, DType.INT64), time_axis=0, batch_axis=1)
    return g.Transpose(y, perm=back)


REDUCTIONS = {"update": "none", "add": "add", "mul": "mul", "min": "min", "max": "max"}


@reads("scatter_elements")
def read_scatter_elements(g, x, index, updates, *, axis=0, reduction="update"):
    require(reduction != "mean", "reduction='mean', which depends on the order of the updates")
    require(reduction in REDUCTIONS, f"reduction={reduction!r} is unknown")
    return g.ScatterElements(
        x, cast(g, index, DType.INT64), updates,
        axis=axis_of(axis, x.rank), reduction=REDUCTIONS[reduction],
    )  # fmt: skip


@reads("scatter")
def read_scatter(g, x, index, updates, *, axis=0):
    """As TVM had it up to 0.11."""
    return read_scatter_elements(g, x, index, updates, axis=axis)


@reads("scatter_add")
def read_scatter_add(g, x, index, updates, *, axis=0):
    """As TVM had it up to 0.11."""
    return read_scatter_elements(g, x, index, updates, axis=axis, reduction="add")


@reads("scatter_nd")
def read_scatter_nd(g, x, index, updates, *, mode="update"):
    require(mode in REDUCTIONS, f"mode={mode!r}")
    order = (*range(1, index.rank), 0)
    index = cast(g, g.Transpose(index, perm=order), DType.INT64)
    return g.ScatterND(x, index, updates, reduction=REDUCTIONS[mode])


@reads("sparse_to_dense")
def read_sparse_to_dense(g, index, values, default, *, output_shape: Ints):
    return dense(g, index, values, default, g.const(list(output_shape), DType.INT64))


@reads("dyn.sparse_to_dense")
def read_dyn_sparse_to_dense(g, index, values, default, shape):
    return dense(g, index, values, default, cast(g, shape, DType.INT64))


def dense(g, index: Value, values: Value, default: Value, shape: Value):
    """``values`` at ``index`` (a position, a row of positions, or of coordinates)."""
    index = cast(g, index, DType.INT64)
    if index.rank == 0:
        index, values = g.Reshape(index, [1, 1]), g.Reshape(values, [1])
    elif index.rank == 1:
        index = g.Unsqueeze(index, [1])
    if values.rank == 0:
        values = g.Expand(values, g.Shape(index, start=0, end=1))
    base = g.Expand(g.Reshape(default, []), shape)
    return g.ScatterND(base, index, values)


@reads("matrix_set_diag")
def read_matrix_set_diag(
    g, x, diagonal, *, k1=0, k2=0, super_diag_right_align=True, sub_diag_right_align=False
):
    """Each diagonal from ``k1`` to ``k2``, the uppermost first, in place of that of ``x``."""
    rows, columns = x.known[-2:]
    require(isinstance(rows, int) and isinstance(columns, int), "a matrix of unknown size")
    diagonal = diagonal if k1 != k2 else g.Unsqueeze(diagonal, [x.rank - 2])
    i, j = np.indices((rows, columns))
    for k in range(k1, k2 + 1):
        length = min(rows + min(k, 0), columns - max(k, 0))
        right = super_diag_right_align if k >= 0 else sub_diag_right_align
        first = diagonal.known[-1] - length if right else 0
        inside = j - i == k
        places = np.where(inside, np.minimum(i, j) + first, 0)
        row = g.Gather(diagonal, g.const(k2 - k, DType.INT64), axis=x.rank - 2)
        spread = g.Gather(row, g.const(places.astype(np.int64)), axis=x.rank - 2)
        x = g.Where(g.const(inside), spread, x)
    return x
