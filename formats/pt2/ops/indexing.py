"""Reading and writing at indices."""

from __future__ import annotations

import math

import numpy as np

from serde.errors import require
from serde.ir.arrays import arange, full
from serde.ir.geometry import axis_of
from serde.ir.graph import DType
from serde.spec.expressions import END

from ..promotion import as_type
from ..rules import reads
from ..strides import Layout

REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


@reads("embedding", ignore=("padding_idx",))
def read_embedding(g, w, indices):
    return g.Gather(w, indices, axis=0)


@reads("index_select")
def read_index_select(g, x, dim, index):
    if x.rank == 0:
        return g.Identity(x)
    index = g.Unsqueeze(index, [0]) if index.rank == 0 else index
    return g.Gather(x, index, axis=axis_of(dim, x.rank))


@reads("gather")
def read_gather(g, x, dim, index):
    if x.rank == 0:
        return g.Expand(x, g.Shape(index))
    return g.GatherElements(x, index, axis=axis_of(dim, x.rank))


@reads("take_along_dim")
def read_take_along(g, x, index, dim):
    require(dim is not None, "take_along_dim without dim: give it")
    return g.GatherElements(x, index, axis=axis_of(dim, x.rank))


@reads("nonzero", "argwhere")
def read_nonzero(g, x):
    return g.Transpose(g.NonZero(x), perm=[1, 0])


@reads("where", "nonzero_numpy")
def read_places(g, x):
    """Where elements are true, an axis a result."""
    places = g.NonZero(x)
    return tuple(g.Gather(places, axis, axis=0) for axis in range(x.rank))


@reads("take")
def read_take(g, x, index):
    return g.Gather(g.Reshape(x, [-1]), index, axis=0)


@reads("masked_select")
def read_masked_select(g, x, mask):
    shape = g.Shape(g.Or(g.cast(g.full_like(x, 0), DType.BOOL), mask))
    return g.Compress(g.Reshape(g.Expand(x, shape), [-1]), g.Reshape(g.Expand(mask, shape), [-1]),
                      axis=0)  # fmt: skip


def spread_masks(g, indices):
    """Indices in which masks are replaced by where they are true."""
    result = []
    for index in indices:
        if index is not None and index.type in (DType.BOOL, DType.UINT8):
            places = g.NonZero(index)
            result += [g.Gather(places, axis, axis=0) for axis in range(index.rank)]
        else:
            result.append(None if index is None else g.cast(index, DType.INT64))
    return result


def index_tuple(g, x, indices):
    """The axes that are indexed, their indices as one tensor, and whether they lie side by side."""
    indices = spread_masks(g, indices)
    axes = [a for a, i in enumerate(indices) if i is not None]
    require(len(indices) <= x.rank and bool(axes), "indices that do not fit the tensor")
    parts = [indices[a] for a in axes]
    if len({p.shape for p in parts}) > 1 or any(None in p.ranked_shape for p in parts):
        shape = g.Shape(g.Max(*parts))
        parts = [g.Expand(p, shape) for p in parts]
    joined = g.stack(parts, parts[0].rank)
    return axes, joined, axes == list(range(axes[0], axes[-1] + 1))


def wrap(g, indices, sizes):
    """Indices of which negative ones count from the end."""
    return g.Where(g.Less(indices, 0), g.Add(indices, g.shape_from(sizes)), indices)


@reads("index.Tensor")
def read_index(g, x, indices):
    present = [i for i in indices if i is not None]
    if len(present) == 1 and present[0].type not in (DType.BOOL, DType.UINT8):
        return g.Gather(x, present[0], axis=[i is not None for i in indices].index(True))
    axes, joined, adjacent = index_tuple(g, x, indices)
    rest = [a for a in range(x.rank) if a not in axes]
    y = g.GatherND(g.Transpose(x, perm=[*axes, *rest]), joined)
    if not adjacent or axes[0] == 0:
        return y
    many, lead = joined.rank - 1, axes[0]
    order = [*range(many, many + lead), *range(many), *range(many + lead, y.rank)]
    return g.Transpose(y, perm=order)


@reads("index_put")
def read_index_put(g, x, indices, values, accumulate):
    axes, joined, adjacent = index_tuple(g, x, indices)
    rest = [a for a in range(x.rank) if a not in axes]
    order = [*axes, *rest]
    turned = g.Transpose(x, perm=order)
    many, lead = joined.rank - 1, axes[0]
    tail = [g.size_of(x, a) for a in rest]
    joined = wrap(g, joined, [g.size_of(x, a) for a in axes])
    places = g.sizes_of(joined)[:-1]
    values = g.cast(values, x.type)
    if adjacent and lead:
        values = g.Expand(values, g.shape_from([*tail[:lead], *places, *tail[lead:]]))
        values = g.Transpose(
            values, perm=[*range(lead, lead + many), *range(lead), *range(lead + many, values.rank)]
        )
    else:
        values = g.Expand(values, g.shape_from([*places, *tail]))
    y = g.ScatterND(turned, joined, values, reduction="add" if accumulate else "none")
    return g.Transpose(y, perm=[order.index(a) for a in range(x.rank)])


def scatter(g, x, dim, index, source, reduction="none"):
    """Write along an axis."""
    axis = axis_of(dim, x.rank)
    if source.shape != index.shape:
        source = g.Slice(source, [0] * source.rank, g.Shape(index), list(range(source.rank)))
    if x.type is DType.BOOL:
        y = g.ScatterElements(g.cast(x, DType.INT32), index, g.cast(source, DType.INT32), axis=axis)
        return g.cast(y, DType.BOOL)
    return g.ScatterElements(x, index, source, axis=axis, reduction=reduction)


@reads("scatter.src")
def read_scatter(g, x, dim, index, source):
    return scatter(g, x, dim, index, source)


@reads("scatter.value")
def read_scatter_value(g, x, dim, index, value):
    return scatter(g, x, dim, index, g.Expand(as_type(g, value, x.type), g.Shape(index)))


SUMS = {"add": "add", "multiply": "mul"}


@reads("scatter.reduce")
def read_scatter_sum(g, x, dim, index, source, *, reduce):
    return scatter(g, x, dim, index, source, SUMS[reduce])


@reads("scatter.value_reduce")
def read_scatter_value_sum(g, x, dim, index, value, *, reduce):
    source = g.Expand(as_type(g, value, x.type), g.Shape(index))
    return scatter(g, x, dim, index, source, SUMS[reduce])


@reads("scatter_add")
def read_scatter_add(g, x, dim, index, source):
    return scatter(g, x, dim, index, source, "add")


@reads("scatter_reduce.two")
def read_scatter_reduce(g, x, dim, index, source, reduce, *, include_self):
    if reduce == "mean":
        return scatter_means(g, x, dim, index, source, include_self)
    if not include_self:
        start = {"sum": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}[reduce]
        require(x.type.kind == "f" or abs(start) < 2, f"reduce={reduce!r} of integers without "
                "include_self: include it")  # fmt: skip
        neutral = g.Expand(as_type(g, start, x.type), g.Shape(index))
        x = scatter(g, x, dim, index, neutral)
    return scatter(g, x, dim, index, source, REDUCTIONS[reduce])


def scatter_means(g, x, dim, index, source, include_self):
    """Sums by how many numbers are in them."""
    require(x.type.kind == "f", "reduce='mean' of integers: cast them to floats")
    zeros, ones = (g.full_like(x, n) for n in (0, 1))
    same = g.Expand(as_type(g, 1, x.type), g.Shape(index))
    count = scatter(g, ones if include_self else zeros, dim, index, same, "add")
    if not include_self:  # where nothing is written it stays
        x = g.Where(g.Greater(count, zeros), zeros, x)
    return g.Div(scatter(g, x, dim, index, source, "add"), g.Max(count, ones))


@reads("index_fill.int_Scalar", "index_fill.int_Tensor")
def read_index_fill(g, x, dim, index, value):
    dim, index = axis_of(dim, x.rank), g.Reshape(index, [-1])
    sizes = g.sizes_of(x)
    sizes[dim] = g.size_of(index, 0)
    rows = g.Expand(as_type(g, value, x.type), g.shape_from(sizes))
    return write_rows(g, x, rows, dim, index)


@reads("index_add")
def read_index_add(g, x, dim, index, source, *, alpha):
    source = source if alpha == 1 else g.Mul(source, as_type(g, alpha, source.type))
    if x.rank == 0:
        return g.Add(x, g.ReduceSum(source, keepdims=0))
    index, dim = spread_rows(g, x, dim, index, source)
    return g.ScatterElements(x, index, source, axis=dim, reduction="add")


def spread_rows(g, x, dim, index, source):
    """An index of rows as one of elements, and the axis."""
    dim = axis_of(dim, x.rank)
    rows = g.Reshape(index, [-1 if axis == dim else 1 for axis in range(x.rank)])
    return g.cast(g.Expand(rows, g.Shape(source)), DType.INT64), dim


@reads("index_reduce")
def read_index_reduce(g, x, dim, index, source, reduce, *, include_self):
    index, dim = spread_rows(g, x, dim, index, source)
    return read_scatter_reduce(g, x, dim, index, source, reduce, include_self=include_self)


@reads("masked_scatter")
def read_masked_scatter(g, x, mask, source):
    """Elements of the source in order, where the mask is true."""
    mask = g.Expand(mask, g.Shape(x))
    flat = g.Reshape(g.cast(mask, DType.INT64), [-1])
    places = g.Max(g.Sub(g.CumSum(flat, g.const(0, DType.INT64)), 1), 0)
    spread = g.Reshape(g.Gather(g.Reshape(source, [-1]), places, axis=0), g.Shape(x))
    return g.Where(mask, spread, x)


@reads("index_copy")
def read_index_copy(g, x, dim, index, source):
    return write_rows(g, x, source, axis_of(dim, x.rank), g.Reshape(index, [-1]))


@reads("select_scatter")
def read_select_scatter(g, x, source, dim, index):
    dim = axis_of(dim, x.rank)
    start = g.shape_from([index])
    source = g.Unsqueeze(source, [dim])
    return write_rows(g, x, source, dim, start)


def write_rows(g, x, source, dim, rows):
    """Write slices along an axis at the given rows."""
    rows = wrap(g, rows, [g.size_of(x, dim)])
    order = [dim, *(a for a in range(x.rank) if a != dim)]
    turned, source = (g.Transpose(v, perm=order) for v in (x, g.cast(source, x.type)))
    y = g.ScatterND(turned, g.Unsqueeze(rows, [1]), source)
    return g.Transpose(y, perm=[order.index(a) for a in range(x.rank)])


@reads("slice_scatter")
def read_slice_scatter(g, x, source, dim, start, end, step):
    dim = axis_of(dim, x.rank)
    rows = g.index_range(g.size_of(x, dim))
    start, end = 0 if start is None else start, END if end is None else end
    rows = g.slice_axis(rows, 0, start, end, step)
    sizes = g.sizes_of(x)
    sizes[dim] = g.size_of(rows, 0)
    return write_rows(g, x, g.Expand(source, g.shape_from(sizes)), dim, rows)


def diagonal_places(g, x, offset, a, b):
    """The axes of a diagonal, and the indices along both."""
    a, b = axis_of(a, x.rank), axis_of(b, x.rank)
    rows, columns = x.ranked_shape[a], x.ranked_shape[b]
    require(
        isinstance(rows, int) and isinstance(columns, int), "a diagonal of unknown size: fix it"
    )
    length = max(0, min(rows - max(-offset, 0), columns - max(offset, 0)))
    at = arange(length)
    return a, b, np.stack([at + max(-offset, 0), at + max(offset, 0)], 1).astype(np.int64)


@reads("diagonal", "diagonal_copy")
def read_diagonal(g, x, offset, a, b):
    a, b, places = diagonal_places(g, x, offset, a, b)
    rest = [i for i in range(x.rank) if i not in (a, b)]
    y = g.GatherND(g.Transpose(x, perm=[a, b, *rest]), g.const(places))
    return g.Transpose(y, perm=[*range(1, y.rank), 0])


@reads("trace")
def read_trace(g, x):
    numbers = read_diagonal(g, x, 0, 0, 1)
    return g.ReduceSum(g.cast(numbers, x.type if x.type.kind == "f" else DType.INT64), keepdims=0)


@reads("fill_diagonal")
def read_filled_diagonal(g, x, value, wrap=False):
    """Of a matrix; a high one is filled once, unless it wraps."""
    require(x.rank == 2 and not wrap, "fill_diagonal_ of other than a matrix, or with wrap=True: "
            "write to torch.diagonal(x)")  # fmt: skip
    rows, columns = (g.index_range(g.size_of(x, k)) for k in range(2))
    return g.Where(g.Equal(g.Unsqueeze(rows, [1]), columns), as_type(g, value, x.type), x)


@reads("diagonal_scatter")
def read_diagonal_scatter(g, x, source, offset, a, b):
    a, b, places = diagonal_places(g, x, offset, a, b)
    order = [a, b, *(i for i in range(x.rank) if i not in (a, b))]
    source = g.Transpose(source, perm=[source.rank - 1, *range(source.rank - 1)])
    y = g.ScatterND(g.Transpose(x, perm=order), g.const(places), source)
    return g.Transpose(y, perm=[order.index(i) for i in range(x.rank)])


@reads("as_strided", "as_strided_copy")
def read_as_strided(g, x, sizes, strides, offset):
    """Of a tensor with its axes as its elements lie: the reader turns it."""
    numbers = [[n if isinstance(n, int) else None for n in of] for of in (sizes, strides)]
    layout = Layout(numbers[0], numbers[1], 0)
    is_static = x.is_static and not any(None in of for of in numbers)
    is_whole = not is_static or math.prod(sizes) == math.prod(x.static_shape)
    if is_whole and offset in (0, None) and layout.is_in_order:
        return g.Reshape(x, g.shape_from(sizes), allowzero=int(0 in numbers[0]))
    require(is_static and isinstance(offset or 0, int),
            "as_strided of unknown sizes: fix them when exporting")  # fmt: skip
    places = full(sizes, offset or 0, np.int64)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        shape = [1] * len(sizes)
        shape[axis] = size
        places = places + (arange(size) * stride).reshape(shape)
    is_inside = not places.size or (places.min() >= 0 and places.max() < math.prod(x.static_shape))
    require(is_inside, "as_strided of elements that its tensor does not have: take the tensor "
            "that has them")  # fmt: skip
    return g.Gather(g.Reshape(x, [-1]), g.const(places), axis=0)


@reads("unfold")
def read_unfold(g, x, dim, size, step):
    dim = axis_of(dim, x.rank)
    total = x.ranked_shape[dim]
    require(isinstance(total, int), "windows along an axis of unknown size: fix it")
    starts = arange(0, total - size + 1, step)
    windows = g.Gather(x, g.const(np.add.outer(starts, arange(size))), axis=dim)
    order = [*range(dim + 1), *range(dim + 2, x.rank + 1), dim + 1]
    return g.Transpose(windows, perm=order)


@reads("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag.padding_idx",
       "embedding_bag")  # fmt: skip
def read_embedding_bag(
    g, w, indices, offsets, scale_grad, mode, sparse, weights, include_last, padding_idx=-1
):  # fmt: skip
    """Bags by the number of offsets that are not behind an index."""
    require(padding_idx in (-1, None), f"padding_idx={padding_idx} in bags: leave it out")
    rows = g.Gather(w, indices, axis=0)
    if weights is not None:
        rows = g.Mul(rows, g.Unsqueeze(weights, [1]))
    offsets = g.slice_axis(offsets, 0, 0, -1) if include_last else offsets
    at = g.index_range(g.size_of(indices, 0))
    ends = g.Concat(
        g.slice_axis(offsets, 0, 1, END), g.cast_like(g.Shape(indices), offsets), axis=0
    )
    at = g.Unsqueeze(g.cast_like(at, offsets), [0])
    inside = g.And(g.GreaterOrEqual(at, g.Unsqueeze(offsets, [1])),
                   g.Less(at, g.Unsqueeze(ends, [1])))  # fmt: skip
    if mode == 2:
        low = as_type(g, -np.inf, rows.type)
        spread = g.Where(g.Unsqueeze(inside, [2]), g.Unsqueeze(rows, [0]), low)
        y = g.ReduceMax(spread, [1], keepdims=0)
        none = g.Not(g.is_true(g.ReduceMax(g.cast(inside, DType.INT32), [1], keepdims=1)))
        y = g.Where(none, as_type(g, 0.0, rows.type), y)
    else:
        y = g.MatMul(g.cast(inside, rows.type), rows)
        count = g.ReduceSum(g.cast(inside, rows.type), [1], keepdims=1)
        y = y if mode == 0 else g.Div(y, g.Max(count, 1.0))
    return (y,)
