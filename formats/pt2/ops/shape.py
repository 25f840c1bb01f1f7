"""Shapes: views, axes, joins and parts of tensors."""

from __future__ import annotations

import math

from serde.errors import require
from serde.ir.arrays import arange, charge_elements
from serde.ir.geometry import axis_of, swap_axes_perm
from serde.ir.graph import DType, Value
from serde.spec.expressions import END

from ..promotion import as_type, result_type
from ..rules import reads


@reads("view", "reshape", "_unsafe_view", "view_copy")
def read_view(g, x, sizes):
    has_zero = any(isinstance(s, int) and s == 0 for s in sizes)
    return g.Reshape(x, g.shape_from(sizes), allowzero=int(has_zero))


@reads("view_as", "reshape_as")
def read_view_as(g, x, like):
    return g.Reshape(
        x, g.Shape(like), allowzero=0 if x.is_static and 0 not in x.static_shape else 1
    )


@reads("flatten.using_ints")
def read_flatten(g, x, start, end):
    if x.rank == 0:
        return g.Reshape(x, [1])
    start, end = axis_of(start, x.rank), axis_of(end, x.rank)
    sizes = g.sizes_of(x)
    merged = g.multiply_sizes(sizes[start : end + 1])
    return g.reshape(x, [*sizes[:start], merged, *sizes[end + 1 :]])


@reads("unflatten.int")
def read_unflatten(g, x, dim, sizes):
    dim, old = axis_of(dim, x.rank), g.sizes_of(x)
    return g.reshape(x, [*old[:dim], *sizes, *old[dim + 1 :]])


@reads("squeeze")
def read_squeeze(g, x):
    return g.Squeeze(x, [i for i, d in enumerate(x.ranked_shape) if d == 1])


@reads("squeeze.dim", "squeeze.dims")
def read_squeeze_dims(g, x, dims):
    dims = dims if isinstance(dims, tuple) else (dims,)
    axes = [axis_of(d, x.rank) for d in dims] if x.rank else []
    return g.Squeeze(x, [a for a in axes if x.ranked_shape[a] == 1])


@reads("unsqueeze")
def read_unsqueeze(g, x, dim):
    return g.Unsqueeze(x, [axis_of(dim, x.rank + 1)])


@reads("permute", "permute_copy")
def read_permute(g, x, dims):
    return g.Transpose(x, perm=[axis_of(d, x.rank) for d in dims])


@reads("transpose.int", "swapaxes", "swapdims", "transpose_copy.int")
def read_transpose(g, x, a, b):
    if x.rank == 0:
        return g.Identity(x)
    return g.Transpose(x, perm=swap_axes_perm(x.rank, axis_of(a, x.rank), axis_of(b, x.rank)))


@reads("t", "numpy_T")
def read_t(g, x):
    return g.Transpose(x, perm=list(reversed(range(x.rank))))


@reads("mT", "mH", "adjoint", "matrix_H")
def read_mt(g, x):
    return read_transpose(g, x, -1, -2)


@reads("movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist")
def read_movedim(g, x, source, target):
    pairs = [v if isinstance(v, tuple) else (v,) for v in (source, target)]
    source, target = ([axis_of(a, x.rank) for a in axes] for axes in pairs)
    order = [a for a in range(x.rank) if a not in source]
    for place, axis in sorted(zip(target, source, strict=True)):
        order.insert(place, axis)
    return g.Transpose(x, perm=order)


@reads("expand", "expand_copy")
def read_expand(g, x, sizes):
    sizes = [1 if isinstance(s, int) and s == -1 else s for s in sizes]
    return g.Expand(x, g.shape_from(sizes))


@reads("expand_as")
def read_expand_as(g, x, like):
    return g.Expand(x, g.Shape(like))


@reads("repeat_interleave.self_Tensor", ignore=("output_size",))
def read_repeat_each(g, x, repeats, dim):
    """Each row as often as a tensor says: rows are looked up."""
    if dim is None:
        x, dim = g.Reshape(x, [-1]), 0
    axis = axis_of(dim, x.rank)
    counts = g.cast(g.Reshape(repeats, [-1]), DType.INT64)
    counts = g.Expand(counts, g.shape_from([g.size_of(x, axis)]))
    return g.Gather(x, read_repeated_places(g, counts), axis=axis)


@reads("repeat_interleave.Tensor", ignore=("output_size",))
def read_repeated_places(g, counts):
    """The number of each element, as often as it says."""
    ends = g.CumSum(g.cast(counts, DType.INT64), g.const(0, DType.INT64))
    total = g.ReduceSum(g.cast(counts, DType.INT64), keepdims=0)
    places = g.Range(g.const(0, DType.INT64), total, g.const(1, DType.INT64))
    is_behind = g.GreaterOrEqual(g.Unsqueeze(places, [1]), ends)
    return g.ReduceSum(g.cast(is_behind, DType.INT64), [1], keepdims=0)


@reads("broadcast_tensors")
def read_broadcast_tensors(g, xs):
    total = g.full_like(xs[0], 0, DType.INT64)
    for x in xs[1:]:
        total = g.Add(total, g.full_like(x, 0, DType.INT64))
    shape = g.Shape(total)
    return tuple(g.Expand(x, shape) for x in xs)


@reads("repeat")
def read_repeat(g, x, repeats):
    extra = len(repeats) - x.rank
    x = g.Unsqueeze(x, list(range(extra))) if extra else x
    counts = zip(x.ranked_shape, repeats, strict=True)
    if all(size == 1 or (isinstance(n, int) and n == 1) for size, n in counts):
        sizes = [n if size == 1 else size for size, n in zip(g.sizes_of(x), repeats, strict=True)]
        return g.Expand(x, g.shape_from(sizes)) if repeats else g.Identity(x)
    return g.Tile(x, g.shape_from(repeats))


@reads("tile")
def read_tile(g, x, repeats):
    return read_repeat(g, x, (1,) * (x.rank - len(repeats)) + tuple(repeats))


@reads("repeat_interleave.self_int", ignore=("output_size",))
def read_repeat_interleave(g, x, repeats, dim):
    if dim is None:
        x, dim = g.Reshape(x, [-1]), 0
    return g.repeat(x, repeats, axis_of(dim, x.rank))


@reads("cat", "concat", "concatenate")
def read_cat(g, xs, dim):
    dtype = result_type(*xs)
    kept = [x for x in xs if x.shape != (0,)] or list(xs[:1])
    dim = axis_of(dim, kept[0].rank)
    return g.Concat(*(as_type(g, x, dtype) for x in kept), axis=dim)


@reads("stack")
def read_stack(g, xs, dim):
    dtype = result_type(*xs)
    return g.stack([as_type(g, x, dtype) for x in xs], dim)


@reads("split.Tensor", "split_copy.Tensor", "unsafe_split.Tensor")
def read_split(g, x, size, dim, *, outputs=1):
    dim = axis_of(dim, x.rank)
    total = x.ranked_shape[dim]
    if isinstance(size, int) and isinstance(total, int):
        starts = arange(0, total, size or 1).tolist()
        return split(g, x, [min(size, total - at) for at in starts] or [0], dim)
    return slices(g, x, size, dim, outputs)


def slices(g, x, size, axis, count):
    """Parts of one size, as many as the program has; the last one ends with the tensor."""
    size = g.shape_from([size])
    bounds = [g.Mul(size, k) for k in range(count)]
    return tuple(g.slice_axis(x, axis, at, g.Add(at, size)) for at in bounds)


@reads("split_with_sizes", "split.sizes", "split_with_sizes_copy", "unsafe_split_with_sizes")
def read_split_sizes(g, x, sizes, dim):
    return split(g, x, sizes, axis_of(dim, x.rank))


def split(g, x, sizes, axis):
    """Parts of the given sizes along an axis."""
    if len(sizes) == 1:
        return (g.Identity(x),)
    return tuple(g.Split(x, g.shape_from(sizes), axis=axis, outputs=len(sizes)))


@reads("chunk", "unsafe_chunk")
def read_chunk(g, x, chunks, dim, *, outputs=1):
    dim = axis_of(dim, x.rank)
    total = x.ranked_shape[dim]
    if isinstance(total, int):
        return read_split(g, x, math.ceil(total / chunks) or 1, dim)
    size = g.Div(g.Add(g.size_of(x, dim), chunks - 1), chunks)
    return slices(g, x, size, dim, outputs)


@reads("tensor_split.sections")
def read_tensor_split(g, x, sections, dim):
    """The first parts are longer by one where the size is no multiple."""
    dim = axis_of(dim, x.rank)
    total = x.ranked_shape[dim]
    if not isinstance(total, int):
        size = g.size_of(x, dim)
        longer = g.Less(g.const(arange(sections)), g.Mod(size, sections))
        sizes = g.Add(g.Div(size, sections), g.cast(longer, DType.INT64))
        return g.Split(x, sizes, axis=dim, outputs=sections)
    each, more = divmod(total, sections)
    return split(g, x, [each + (k < more) for k in arange(sections).tolist()], dim)


@reads("unbind.int", "unbind_copy.int")
def read_unbind(g, x, dim):
    dim = axis_of(dim, x.rank)
    count = x.ranked_shape[dim]
    require(isinstance(count, int), "a loop over an axis of unknown size: fix its size")
    charge_elements(count)
    return tuple(g.Squeeze(p, [dim]) for p in split(g, x, [1] * count, dim))


@reads("select.int", "select_copy.int")
def read_select(g, x, dim, index):
    dim = axis_of(dim, x.rank)
    if isinstance(index, Value):
        return g.Squeeze(g.Gather(x, index, axis=dim), [dim])
    return g.Gather(x, index, axis=dim)


@reads("slice.Tensor", "slice_copy.Tensor")
def read_slice(g, x, dim, start, end, step):
    end = 2**63 - 1 if end is None else end
    return g.slice_axis(x, axis_of(dim, x.rank), 0 if start is None else start, end, step)


@reads("narrow")
def read_narrow(g, x, dim, start, length):
    dim = axis_of(dim, x.rank)
    if isinstance(start, int) and isinstance(length, int):
        start += x.static_shape[dim] if start < 0 else 0
        return g.slice_axis(x, dim, start, start + length)
    end = g.Add(g.shape_from([start]), g.shape_from([length]))
    return g.slice_axis(x, dim, start, end)


@reads("diff")
def read_diff(g, x, n, dim, prepend, append):
    dim = axis_of(dim, x.rank)
    parts = [v for v in (prepend, x, append) if v is not None]
    x = read_cat(g, parts, dim)
    for _ in range(n):
        after, before = g.slice_axis(x, dim, 1, END), g.slice_axis(x, dim, 0, -1)
        x = g.Xor(after, before) if x.type is DType.BOOL else g.Sub(after, before)
    return x


@reads("flip")
def read_flip(g, x, dims):
    for dim in dims:
        x = g.slice_axis(x, axis_of(dim, x.rank), -1, -(2**63) + 1, -1)
    return g.Identity(x)


@reads("roll")
def read_roll(g, x, shifts, dims):
    if not dims:
        return g.Reshape(read_roll(g, g.Reshape(x, [-1]), shifts, (0,)), g.Shape(x))
    for shift, dim in zip(shifts, dims, strict=True):
        dim = axis_of(dim, x.rank)
        size = x.ranked_shape[dim]
        cut = -shift if not isinstance(size, int) else (-shift) % max(size, 1)
        if cut:
            last = g.slice_axis(x, dim, cut, 2**63 - 1)
            x = g.Concat(last, g.slice_axis(x, dim, 0, cut), axis=dim)
    return g.Identity(x)


@reads("pixel_shuffle")
def read_pixel_shuffle(g, x, factor):
    lead = g.sizes_of(x)[:-3]
    y = g.DepthToSpace(as_images(g, x), blocksize=factor, mode="CRD")
    return g.reshape(y, [*lead, *g.sizes_of(y)[1:]])


@reads("pixel_unshuffle")
def read_pixel_unshuffle(g, x, factor):
    *lead, c, h, w = g.sizes_of(x)
    require(all(isinstance(d, int) for d in (c, h, w)), "images of unknown sizes: fix them")
    x = g.reshape(x, [-1, c, h // factor, factor, w // factor, factor])
    y = g.Transpose(x, perm=[0, 1, 3, 5, 2, 4])
    return g.reshape(y, [*lead, c * factor * factor, h // factor, w // factor])


@reads("channel_shuffle", "native_channel_shuffle")
def read_channel_shuffle(g, x, groups):
    sizes = g.sizes_of(x)
    spread = g.reshape(x, [sizes[0], groups, sizes[1] // groups, *sizes[2:]])
    order = [0, 2, 1, *range(3, x.rank + 1)]
    return g.reshape(g.Transpose(spread, perm=order), sizes)


def as_images(g, x):
    """All axes but the last three as one."""
    return x if x.rank == 4 else g.reshape(x, [-1, *g.sizes_of(x)[-3:]])


@reads("meshgrid.indexing", "meshgrid")
def read_meshgrid(g, xs, indexing="ij"):
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        order[:2] = [1, 0]
    sizes = [g.size_of(x, 0) if x.rank else 1 for x in xs]
    shape = g.shape_from([sizes[i] for i in order])
    results = []
    for i, x in enumerate(xs):
        axes = [1] * len(xs)
        axes[order.index(i)] = -1
        results.append(g.Expand(g.Reshape(x, axes), shape))
    return tuple(results)
