"""Operators that arrange elements, and shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.decompositions.expressions import number
from serde.errors import require
from serde.ir.dim_expr import elements_of
from serde.ir.graph import Dim, DType, Tensor, Value

from ..target import cast, dims_or, scalar, typed, writes
from . import dynamic_args
from .recast import recasts

INT32_MOST = 2**31 - 1
FAR = 2**62  # beyond any size


def sizes(value: Value | None) -> tuple[int, ...] | None:
    """The numbers a shape, or a list of axes, holds; None where only the run tells them."""
    found = elements_of(value)
    if found is None and value is not None and value.tensor is not None:
        found = value.ints()
    plain = found is not None and all(isinstance(d, int) for d in found)
    return found if plain else None  # type: ignore[return-value]


def resized(r, x: Value, known: Sequence[Dim] | None):
    """``x`` with the sizes that are known, which TVM does not take from a computed shape.

    Products want to know over how much they sum.
    """
    open_ = [i for i, d in enumerate(known or ()) if not isinstance(d, int)]
    if known is None or len(open_) == len(known):
        return x
    rest = -1 if len(open_) == 1 and 0 not in known else 0  # 0 keeps a size
    return r.reshape(x, newshape=[d if isinstance(d, int) else rest for d in known])


@writes("Reshape")
def write_reshape(r, x, shape, *, allowzero: int):
    wanted = sizes(shape)
    if wanted is None:
        kept = [d if isinstance(d, int) and d > 0 else None for d in elements_of(shape) or ()]
        return resized(r, r.dyn.reshape(x, shape, allowzero=allowzero), kept)
    return r.reshape(x, newshape=wanted, allowzero=allowzero)


@recasts("Flatten")
def recast_flatten(g, x, *, axis: int):
    if axis == 1:
        return g.Reshape(x, [0, -1]) if x.is_static and 0 not in x.dims else _flat(g, x, axis)
    return _flat(g, x, axis)


def _flat(g, x: Value, axis: int):
    """The sizes in front of ``axis``, and those behind, multiplied."""
    parts = [
        g.ReduceProd(g.Shape(x, start=s, end=e), keepdims=1) for s, e in ((0, axis), (axis, x.rank))
    ]
    return g.Reshape(x, g.Concat(*parts, axis=0), allowzero=1)


@writes("Transpose")
def write_transpose(r, x, *, perm: tuple[int, ...]):
    return r.transpose(x, axes=perm)


@recasts("Squeeze")
def recast_squeeze(g, x, axes=None):
    return None if axes is None or sizes(axes) is not None else dynamic_args.squeezed(g, x, axes)


@writes("Squeeze")
def write_squeeze(r, x, axes=None):
    chosen = sizes(axes)
    if axes is None:
        dims = dims_or(x, "a Squeeze of all axes")
        chosen = tuple(at for at, d in enumerate(dims) if d == 1)
    require(chosen is not None, "a Squeeze with dynamic axes")
    return r.squeeze(x, axis=chosen)


@recasts("Unsqueeze")
def recast_unsqueeze(g, x, axes):
    return None if sizes(axes) is not None else dynamic_args.unsqueezed(g, x, axes)


@writes("Unsqueeze")
def write_unsqueeze(r, x, axes):
    chosen = sizes(axes)
    require(chosen is not None, "an Unsqueeze with dynamic axes")
    if x.rank == 0 and x.tensor is None:  # see ``lifted``
        return r.annotation.stop_fusion(r.reshape(x, newshape=(1,) * len(chosen)))
    for axis in sorted(chosen):
        x = r.expand_dims(x, axis=axis)
    return x


@recasts("Concat")
def recast_concat(g, *xs, axis: int):
    """Operands without elements add nothing; one operand is itself."""
    some = [v for v in xs if v.known[axis] != 0] or [xs[0]]
    if len(some) == 1:
        return g.Identity(some[0])
    return g.Concat(*some, axis=axis) if len(some) < len(xs) else None


@writes("Concat")
def write_concat(r, *xs, axis: int):
    made = r.concatenate(*xs, axis=axis)
    if all(isinstance(v.known[axis], int) for v in xs):
        return made
    return r.annotation.stop_fusion(made)  # as of slices, below


@writes("Split", ignore=("num_outputs",))
def write_split(r, x, parts=None, *, axis: int):
    counts = sizes(parts)
    require(counts is not None, "a Split into parts of dynamic sizes")
    if len(counts) == 1:
        return (r.copy(x),)
    ends = tuple(sum(counts[:i]) for i in range(1, len(counts)))
    return r.split(x, indices_or_sections=ends, axis=axis, outputs=len(counts))


@recasts("Split")
def recast_split(g, x, parts=None, *, axis: int, num_outputs: int | None = None, outputs: int = 1):
    """Parts of the same size, the last maybe smaller, are counted out."""
    if parts is not None:
        known = sizes(parts)
        if known is None:
            return dynamic_args.parts(g, x, parts, axis, outputs)
        return _some_empty(g, x, known, axis) if 0 in known else None
    size, count = x.known[axis], num_outputs or outputs
    if not isinstance(size, int):
        return dynamic_args.parts(g, x, dynamic_args.shares(g, x, axis, count), axis, outputs)
    each = -(-size // count)
    counts = [max(0, min(each, size - i * each)) for i in range(count)]
    return g.Split(x, counts, axis=axis, outputs=count)


def _some_empty(g, x, counts, axis: int):
    """Parts without elements are constants: Relay cuts no such."""
    dims = dims_or(x, "a Split with a part without elements,")
    made, at = [], 0
    for count in counts:
        shape = (*dims[:axis], count, *dims[axis + 1 :])
        empty = g.const(np.zeros(shape, x.type.numpy)) if not count else None
        made.append(empty or g.Slice(x, [at], [at + count], [axis], [1]))
        at += count
    return tuple(made)


@writes("Slice")
def write_slice(r, x, starts, ends, axes, steps):
    bounds = [sizes(v) for v in (starts, ends, axes, steps)]
    if None in bounds:
        return dynamic_slice(r, x, starts, ends, axes, steps)
    begin, end, step = [], [], []
    for first, last, axis, by in zip(*bounds, strict=True):
        size = x.known[axis]
        if isinstance(size, int):
            first, last = slice(first, last, by).indices(size)[:2]
            last = -size - 1 if last < 0 else last
        else:
            if by < 0:
                return dynamic_slice(r, x, starts, ends, axes, steps)
            first, last = (max(min(v, INT32_MOST), -INT32_MOST) for v in (first, last))
        begin.append(first)
        end.append(last)
        step.append(by)
    made = r.strided_slice(x, begin=begin, end=end, strides=step, axes=bounds[2])
    if all(isinstance(x.known[axis], int) for axis in bounds[2] or ()):
        return made
    return r.annotation.stop_fusion(made)  # TVM loses the sizes of two slices in one kernel


def dynamic_slice(r, x, starts, ends, axes, steps):
    """Bounds along all axes, in tensors."""
    kind = DType.INT64
    whole = r.cast(r.shape_of(x, dtype="int64"), dtype="int64")
    starts, ends, axes, steps = (cast(r, v, kind) for v in (starts, ends, axes, steps))
    axes = _counted(r, axes, scalar(r, x.rank, kind))
    low, high, by = (
        r.scatter_elements(r.const([v] * x.rank, kind), axes, given, axis=0, reduction="update")
        for v, given in ((0, starts), (FAR, ends), (1, steps))
    )
    zero, one = (scalar(r, v, kind) for v in (0, 1))
    back = r.less(by, zero)
    last = r.where(back, r.subtract(whole, one), whole)
    low = r.minimum(r.maximum(_counted(r, low, whole), zero), last)
    least = r.where(back, scalar(r, -1, kind), zero)
    high = r.minimum(r.maximum(_counted(r, high, whole), least), last)
    under = r.subtract(r.negative(whole), one)
    high = r.where(r.logical_and(back, r.less(high, zero)), under, high)
    return r.dyn.strided_slice(x, low, high, by)


def _counted(r, index: Value, size: Value) -> Value:
    """Indices below 0 counted from the end."""
    return r.where(r.less(index, scalar(r, 0, DType.INT64)), r.add(index, size), index)


@writes("Expand")
def write_expand(r, x, shape):
    asked, dims = elements_of(shape), x.known
    if asked is None:
        return dynamic_expand(r, x, shape)
    wide = (1,) * (x.rank - len(asked)) + asked
    padded = (1,) * (len(wide) - x.rank) + dims
    pairs = list(zip(padded, wide, strict=True))
    full = tuple(_larger(d, w) for d, w in pairs)
    if not all(w == 1 or (isinstance(d, int) and isinstance(w, int)) for d, w in pairs):
        return resized(r, dynamic_expand(r, x, shape), full)
    if full == dims:
        return r.copy(x)
    if not all(isinstance(d, int) for d in full):
        ones = r.ones(shape=wide, dtype=x.type.value)
        require(x.type is not DType.BOOL, "an Expand of booleans of dynamic size")
        return r.multiply(x, ones)
    return r.broadcast_to(x, shape=full)


def _larger(size: Dim, asked: Dim) -> Dim:
    """The size that two broadcast to; None where neither is known to be more than 1."""
    if asked == 1 or size == asked:
        return size
    return next((d for d in (asked, size) if isinstance(d, int) and d != 1), None)


def dynamic_expand(r, x, shape):
    """The sizes asked for, and those of ``x`` where these are larger."""
    count = shape.known[0]
    require(isinstance(count, int), "an Expand to a dynamic number of axes")
    rank = max(count, x.rank)
    if not x.rank:
        return r.dyn.broadcast_to(x, shape)
    own = r.cast(r.shape_of(x, dtype="int64"), dtype="int64")
    wanted, own = (
        r.concatenate(r.const([1] * (rank - n), DType.INT64), v, axis=0) if n < rank else v
        for v, n in ((shape, count), (own, x.rank))
    )
    return r.dyn.broadcast_to(x, r.maximum(wanted, own))


@writes("Tile")
def write_tile(r, x, repeats):
    reps = sizes(repeats)
    return r.dyn.tile(x, repeats) if reps is None else r.tile(x, reps=reps)


@recasts("Shape")
def recast_shape(g, x, *, start: int, end: int | None = None):
    """Of no axes there is nothing to compute."""
    return None if range(x.rank)[start:end] else g.const([], DType.INT64)


@writes("Shape")
def write_shape(r, x, *, start: int, end: int | None = None):
    whole = r.cast(r.shape_of(x, dtype="int64"), dtype="int64")
    first, last, _ = slice(start, end).indices(x.rank)
    if (first, last) == (0, x.rank):
        return whole
    return r.strided_slice(whole, begin=[first], end=[max(first, last)], strides=[1], axes=[0])


@writes("Size")
def write_size(r, x):
    return r.cast(r.ndarray_size(x, dtype="int64"), dtype="int64")


@writes("ConstantOfShape")
def write_constant_of_shape(r, shape, *, value: Tensor | None = None):
    fill = 0.0 if value is None else value.load().reshape(-1)[0].item()
    dtype = DType.FLOAT32 if value is None else value.dtype
    wanted = sizes(shape)
    filled = scalar(r, fill, dtype)
    if wanted is None:
        return resized(r, r.dyn.full(filled, shape, dtype=dtype.value), elements_of(shape))
    return r.full(filled, shape=wanted, dtype=dtype.value)


@writes("Range")
def write_range(r, start, limit, delta):
    return r.arange(start, limit, delta, dtype=start.type.value)


@writes("DepthToSpace")
def write_depth_to_space(r, x, *, blocksize: int, mode: str):
    return r.nn.depth_to_space(x, block_size=blocksize, mode=mode)


@recasts("DepthToSpace")
def recast_depth_to_space(g, x, *, blocksize: int, mode: str):
    if x.is_static:
        return None
    channels, b = x.known[1], blocksize
    require(isinstance(channels, int), "a dynamic number of channels")
    sizes_, c = g.Shape(x, start=2), channels // (b * b)
    split = [b, b, c] if mode == "DCR" else [c, b, b]
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    cut = g.Transpose(g.Reshape(x, g.Concat([0, *split], sizes_, axis=0)), perm=order)
    return g.Reshape(cut, g.Concat([0, c], g.Mul(sizes_, b), axis=0))


@recasts("SpaceToDepth")
def recast_space_to_depth(g, x, *, blocksize: int, mode: str):
    """Channels in front of the block, which Relay has not."""
    if mode == "DCR" and x.is_static:
        return None
    c, b = x.known[1], blocksize
    require(isinstance(c, int), "a dynamic number of channels")
    h, w = (g.Div(g.Shape(x, start=at, end=at + 1), b) for at in (2, 3))
    cut = g.Reshape(x, g.Concat([0, c], h, [b], w, [b], axis=0))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return g.Reshape(g.Transpose(cut, perm=order), g.Concat([0, c * b * b], h, w, axis=0))


@writes("SpaceToDepth", ignore=("mode",))
def write_space_to_depth(r, x, *, blocksize: int):
    return r.nn.space_to_depth(x, block_size=blocksize)


@recasts("Trilu")
def recast_trilu(g, x, k=None, *, upper: int):
    """Two axes that are known; otherwise by comparing places."""
    static = x.is_static and 0 not in x.dims
    return None if static else g.decompose("Trilu", 14, x, k, upper=upper)


@writes("Trilu")
def write_trilu(r, x, k=None, *, upper: int):
    return r.trilu(x, scalar(r, 0, DType.INT64) if k is None else k, upper=upper)


PADS = {"constant": "constant", "edge": "edge", "reflect": "reflect"}


@recasts("Pad")
def recast_pad(g, x, pads, fill=None, axes=None, *, mode: str):
    """Pads of all axes, none below zero; wrapping is a concatenation."""
    widths, chosen = sizes(pads), sizes(axes)
    if widths is None or (axes is not None and chosen is None):
        require(mode != "wrap", "wrapping by dynamic pads")
        every = dynamic_args.all_pads(g, x, pads, axes)
        return None if every is pads else g.Pad(x, every, fill, mode=mode)
    listed = list(range(x.rank)) if axes is None else list(chosen)
    half = len(listed)
    full = [0] * 2 * x.rank
    for at, axis in enumerate(listed):
        full[axis], full[axis + x.rank] = widths[at], widths[at + half]
    if min(full, default=0) < 0:
        x = _cropped(g, x, full)
        full = [max(0, p) for p in full]
    if mode == "wrap":
        return _wrapped(g, x, full)
    if tuple(full) == widths and axes is None:
        return None
    return g.Pad(x, full, fill, mode=mode)


def _cropped(g, x, pads):
    """``x`` without what pads below zero take away."""
    starts = [max(0, -p) for p in pads[: x.rank]]
    ends = [min(0, p) or INT32_MOST for p in pads[x.rank :]]
    return g.Slice(x, starts, ends, list(range(x.rank)), [1] * x.rank)


def _wrapped(g, x, pads):
    """``x`` followed by itself, as far as the pads go."""
    for axis in range(x.rank):
        before, after = pads[axis], pads[axis + x.rank]
        if not before and not after:
            continue
        size = x.known[axis]
        require(isinstance(size, int), "wrapping an axis of dynamic size")
        x = g.Gather(x, [i % size for i in range(-before, size + after)], axis=axis)
    return x


@writes("Pad", only={"mode": tuple(PADS)})
def write_pad(r, x, pads, fill=None, axes=None, *, mode: str):
    widths = sizes(pads)
    value = scalar(r, 0, x.type) if fill is None else _no_axes(r, fill)
    if widths is None:
        require(axes is None, "pads of some axes that are dynamic")
        ends = r.transpose(r.reshape(pads, newshape=(2, -1)), axes=(1, 0))
        return r.dyn.nn.pad(x, ends, value, pad_mode=mode)
    half = len(widths) // 2
    pairs = tuple(zip(widths[:half], widths[half:], strict=True))
    if mode == "reflect":
        return r.nn.mirror_pad(x, pad_width=pairs, mode="REFLECT")
    return r.nn.pad(x, value, pad_width=pairs, pad_mode=mode)


def _no_axes(r, value: Value) -> Value:
    """A number that may have an axis of size 1, without."""
    held = number(value)
    if held is not None:
        return scalar(r, held, value.type)
    return value if value.rank == 0 else typed(r.reshape(value, newshape=()), value.dtype, ())
