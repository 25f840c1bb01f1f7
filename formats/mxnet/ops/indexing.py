"""Picking parts of a tensor by position or index."""

from __future__ import annotations

from serde.decompositions.expressions import cast, scalar, size_of, slice_axis, slice_like
from serde.errors import require
from serde.ir.geometry import Ints, axes_of, axis_of
from serde.ir.graph import DType, Value

from ..rules import Bounds, reads

FAR = 2**31 - 1  # an end beyond any axis


@reads("slice")
def read_slice(g, x, *, begin: Bounds, end: Bounds, step: Bounds = ()):
    """Axes beyond ``begin`` are left whole; those beyond ``step`` have a step of 1."""
    count = len(begin)
    require(len(end) == count, f"begin={begin} and end={end} differ in length")
    require(len(step) <= count, f"step={step} is longer than begin={begin}")
    require(count <= x.rank, f"begin={begin} of {x.rank} axes")
    require(0 not in step, f"step={step}, and no step is 0")
    steps = [s or 1 for s in step] + [1] * (count - len(step))
    starts = [(0 if s > 0 else FAR) if b is None else b for b, s in zip(begin, steps, strict=True)]
    ends = [(FAR if s > 0 else -FAR) if e is None else e for e, s in zip(end, steps, strict=True)]
    return g.Slice(x, starts, ends, list(range(count)), steps)


@reads("slice_axis")
def read_slice_axis(g, x, *, axis: int, begin: int, end: int | None):
    return slice_axis(g, x, axis_of(axis, x.rank), begin, FAR if end is None else end)


@reads("slice_like")
def read_slice_like(g, x, like, *, axes=()):
    return slice_like(g, x, like, axes=axes_of(axes, x.rank))


@reads("SliceChannel")
def read_split(g, x, *, num_outputs: int, axis=1, squeeze_axis=False):
    axis = axis_of(axis, x.rank)
    parts = equal_parts(g, x, axis, num_outputs)
    return tuple(g.Squeeze(p, [axis]) for p in parts) if squeeze_axis else tuple(parts)


def equal_parts(g, x: Value, axis: int, count: int):
    """``count`` parts of one size."""
    require(count > 0, f"a split into {count} parts")
    size = x.known[axis]
    if count == 1:
        return (x,)
    if not isinstance(size, int):
        return g.Split(x, num_outputs=count, axis=axis, outputs=count)
    require(size % count == 0, f"{size} does not split into {count} equal parts")
    return g.Split(x, [size // count] * count, axis=axis, outputs=count)


def clipped(g, index: Value, size):
    """Indices as int64, those outside ``0 … size - 1`` moved to the nearest end."""
    if isinstance(size, int):
        bounds = (scalar(g, 0, index), scalar(g, size - 1, index))
        return cast(g, g.Clip(index, *bounds), DType.INT64)
    index = cast(g, index, DType.INT64)
    return g.Clip(index, g.const(0), g.Squeeze(g.Sub(size, [1]), [0]))


@reads(
    "Embedding",
    "_contrib_SparseEmbedding",
    ignore=("input_dim", "output_dim", "dtype", "sparse_grad"),
)
def read_embedding(g, index, w):
    """Indices outside the table take its first or last row, as MXNet's CPU code does."""
    return g.Gather(w, clipped(g, index, size_of(g, w, 0)), axis=0)


@reads("take")
def read_take(g, x, index, *, axis=0, mode="clip"):
    axis = axis_of(axis, x.rank)
    size = size_of(g, x, axis)
    if mode == "clip":
        return g.Gather(x, clipped(g, index, size), axis=axis)
    require(mode in ("wrap", "raise"), f"mode={mode!r} is unknown")
    index = cast(g, index, DType.INT64)
    if mode == "wrap":
        index = g.Mod(index, g.const(size) if isinstance(size, int) else size)
    return g.Gather(x, index, axis=axis)


@reads("one_hot")
def read_one_hot(g, index, *, depth: int, on_value=1.0, off_value=0.0, dtype="float32"):
    """Indices outside the table give a row of ``off_value`` only."""
    from ..rules import dtype_of

    index = cast(g, index, DType.INT64)
    hot = g.Equal(g.Unsqueeze(index, [-1]), g.Range(0, depth, 1))
    kind = dtype_of(dtype).numpy
    return g.Where(hot, g.const(kind.type(on_value)), g.const(kind.type(off_value)))


@reads("gather_nd")
def read_gather_nd(g, x, index):
    """MXNet counts the indices' axes along their first axis, ONNX along the last."""
    require(isinstance(index.known[0], int), "needs to know how many axes are indexed")
    order: Ints = (*range(1, index.rank), 0)
    return g.GatherND(x, cast(g, g.Transpose(index, perm=order), DType.INT64))


@reads("pick")
def read_pick(g, x, index, *, axis: int | None = -1, keepdims=False, mode="clip"):
    require(axis is not None, "axis=None")
    require(mode in ("clip", "wrap"), f"mode={mode!r} is unknown")
    axis = axis_of(axis, x.rank)
    size = size_of(g, x, axis)
    if mode == "clip":
        index = clipped(g, index, size)
    else:
        index = g.Mod(cast(g, index, DType.INT64), g.const(size) if isinstance(size, int) else size)
    index = index if index.rank == x.rank else g.Unsqueeze(index, [axis])
    y = g.GatherElements(x, index, axis=axis)
    return y if keepdims else g.Squeeze(y, [axis])
