"""Picking elements of a tensor by index."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.ir.geometry import Ints, axis_of
from serde.ir.graph import DType, Value

from ..rules import reads
from ..target import scalar_value, writes


def clip_indices(g, index: Value, size):
    """Indices as int64, those outside ``0 … size - 1`` moved to the nearest end."""
    if isinstance(size, int):
        bounds = (g.scalar(0, index), g.scalar(size - 1, index))
        return g.cast(g.Clip(index, *bounds), DType.INT64)
    index = g.cast(index, DType.INT64)
    return g.Clip(index, g.const(0), g.Squeeze(g.Sub(size, [1]), [0]))


def wrap_indices(g, index: Value, size):
    """Indices as int64, those outside counted on from the other end."""
    return g.Mod(g.cast(index, DType.INT64), g.const(size) if isinstance(size, int) else size)


@reads(
    "Embedding",
    "_contrib_SparseEmbedding",
    ignore=("input_dim", "output_dim", "dtype", "sparse_grad"),
)
def read_embedding(g, index, w):
    """Indices outside the table take its first or last row, as MXNet's CPU code does."""
    return g.Gather(w, clip_indices(g, index, g.size_of(w, 0)), axis=0)


@reads("take")
def read_take(g, x, index, *, axis=0, mode="clip"):
    axis = axis_of(axis, x.rank)
    size = g.size_of(x, axis)
    if mode == "clip":
        return g.Gather(x, clip_indices(g, index, size), axis=axis)
    require(mode in ("wrap", "raise"), f"mode={mode!r} is unknown")
    index = wrap_indices(g, index, size) if mode == "wrap" else g.cast(index, DType.INT64)
    return g.Gather(x, index, axis=axis)


@reads("one_hot")
def read_one_hot(g, index, *, depth: int, on_value=1.0, off_value=0.0, dtype="float32"):
    """Indices outside the table give a row of ``off_value`` only."""
    from ..rules import dtype_of

    index = g.cast(index, DType.INT64)
    hot = g.Equal(g.Unsqueeze(index, [-1]), g.Range(0, depth, 1))
    kind = dtype_of(dtype).numpy
    return g.Where(hot, g.const(kind.type(on_value)), g.const(kind.type(off_value)))


@reads("_npi_advanced_indexing")
def read_advanced_indexing(g, x, index):
    """Rows of ``x`` by their places, or those where a mask of its first axes is true."""
    if index.dtype is DType.BOOL:
        flat = g.Reshape(index, [-1])
        kept = g.sizes_of(x)[index.rank :]
        rows = x if index.rank == 1 else g.Reshape(x, g.shape_from([-1, *kept]))
        return g.Compress(rows, flat, axis=0)
    return g.Gather(x, g.cast(index, DType.INT64), axis=0)


def read_index_put(reduction, g, x, index, values):
    """Columns of ``index`` are places along the first axes, as for ``gather_nd``."""
    count = index.ranked_shape[0]
    require(isinstance(count, int), "needs to know how many axes are indexed")
    places = g.cast(g.Transpose(index, perm=(*range(1, index.rank), 0)), DType.INT64)
    shape = g.shape_from([*g.sizes_of(index)[1:], *g.sizes_of(x)[count:]])
    return g.ScatterND(x, places, g.Expand(g.cast_like(values, x), shape), reduction=reduction)


reads("_npx_index_add")(partial(read_index_put, "add"))
reads("_npx_index_update")(partial(read_index_put, "none"))


@reads("gather_nd", "_npi_advanced_indexing_multiple")
def read_gather_nd(g, x, index):
    """MXNet counts the indices' axes along their first axis, ONNX along the last."""
    require(isinstance(index.ranked_shape[0], int), "needs to know how many axes are indexed")
    order: Ints = (*range(1, index.rank), 0)
    return g.GatherND(x, g.cast(g.Transpose(index, perm=order), DType.INT64))


@reads("pick")
def read_pick(g, x, index, *, axis: int | None = -1, keepdims=False, mode="clip"):
    require(axis is not None, "axis=None")
    require(mode in ("clip", "wrap"), f"mode={mode!r} is unknown")
    axis = axis_of(axis, x.rank)
    size = g.size_of(x, axis)
    index = (clip_indices if mode == "clip" else wrap_indices)(g, index, size)
    index = index if index.rank == x.rank else g.Unsqueeze(index, [axis])
    y = g.GatherElements(x, index, axis=axis)
    return y if keepdims else g.Squeeze(y, [axis])


@writes("Gather")
def write_gather(s, x, index, *, axis):
    """ONNX counts negative indices from the end, as ``wrap`` does."""
    if index.rank == 0 and (at := scalar_value(index)) is not None:
        end = "None" if at == -1 else int(at) + 1
        one = s.slice_axis(x, axis=axis, begin=int(at), end=end)
    else:
        one = emit_take(s, x, index, axis)
    return s.squeeze(one, axis=axis) if index.rank == 0 and x.rank > 1 else one


def emit_take(s, x, index, axis: int):
    """Before 1.3 MXNet takes along the first axis only, and counts from its end not at all."""
    if s.release.number >= 10300:
        return s.take(x, index, axis=axis, mode="wrap")
    count = max(index.rank, 1)
    if index.tensor is None or int(index.array().min(initial=0)) < 0:
        size = x.ranked_shape[axis]
        require(isinstance(size, int), f"indices of a dynamic size before MXNet 1.3: {size}")
        index = s.where(
            s["_lesser_scalar"](index, scalar=0), s["_plus_scalar"](index, scalar=size), index
        )
    others = [a for a in range(x.rank) if a != axis]
    first = s.transpose(x, axes=(axis, *others)) if axis else x
    y = s.take(first, index, axis=0, mode="clip")
    kept = [*range(count, count + len(others))]
    return s.transpose(y, axes=(*kept[:axis], *range(count), *kept[axis:])) if axis else y
