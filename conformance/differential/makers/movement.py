"""Nodes that move, choose and repeat elements, and those about shapes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

import numpy as np

from serde.ir.graph import DType
from serde.spec.schema import ELEMENT_CODES

from ..evaluate import Rejected
from ..generator import Generator, Maker

INDEX = (np.int64, np.int64, np.int32)


def make_reshape(g: Generator) -> None:
    x = g.operand(g.types("Reshape"))
    sizes = list(g.of(x).shape)
    if g.chance(0.5) and len(sizes) > 1:
        at = g.rng.randrange(len(sizes) - 1)
        sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
    elif g.chance(0.4):
        sizes.insert(g.rng.randint(0, len(sizes)), 1)
    elif g.chance(0.5) and prod(sizes):
        factors = [f for f in (2, 3, 4) if prod(sizes) % f == 0]
        sizes = [g.choice(factors), -1] if factors else [-1]
    if sizes and g.chance(0.5) and -1 not in sizes and 0 not in sizes:
        sizes[g.rng.randrange(len(sizes))] = -1
    shape = g.of(x).shape
    for at, size in enumerate(sizes):
        if at < len(shape) and size == shape[at] and g.chance(0.3):
            sizes[at] = 0
    g.emit("Reshape", [x, g.index(sizes)], allowzero=g.choice((0, 1, None, None, None)))


def make_transpose(g: Generator) -> None:
    x = g.operand(g.types("Transpose"), 1, 5)
    perm = g.rng.sample(range(g.of(x).ndim), g.of(x).ndim) if g.chance(0.85) else None
    g.emit("Transpose", [x], perm=perm)


def make_flatten(g: Generator) -> None:
    x = g.operand(g.types("Flatten"), 1)
    g.emit("Flatten", [x], axis=g.axis(g.of(x).ndim) if g.chance(0.8) else None)


def make_squeeze(g: Generator) -> None:
    x = g.operand(g.types("Squeeze"), 1)
    ones = [a for a, d in enumerate(g.of(x).shape) if d == 1]
    if not ones:
        raise Rejected("no axis of size 1")
    axes = g.rng.sample(ones, g.rng.randint(1, len(ones)))
    axes = [a - g.of(x).ndim if g.chance(0.3) else a for a in axes]
    g.emit("Squeeze", [x, g.index(axes)] if g.chance(0.85) else [x])


def make_unsqueeze(g: Generator) -> None:
    x = g.operand(g.types("Unsqueeze"), 0, 4)
    rank = g.of(x).ndim + 2
    axes = g.rng.sample(range(rank), 2) if g.chance(0.3) else [g.axis(rank - 1)]
    g.emit("Unsqueeze", [x, g.index(axes)])


def make_expand(g: Generator) -> None:
    x = g.operand(g.types("Expand"), 0, 4)
    sizes = [d if d != 1 or g.chance(0.4) else g.size() for d in g.of(x).shape]
    sizes = [1 if g.chance(0.2) else d for d in sizes]
    if g.chance(0.4):
        sizes.insert(0, g.size())
    g.emit("Expand", [x, g.index(sizes)])


def make_tile(g: Generator) -> None:
    x = g.operand(g.types("Tile"), 0, 4)
    g.emit("Tile", [x, g.index([g.choice((0, 1, 1, 1, 2, 2, 3)) for _ in g.of(x).shape])])


def make_concat(g: Generator) -> None:
    x = g.operand(g.types("Concat"), 1)
    shape, axis = g.of(x).shape, g.axis(g.of(x).ndim)
    more = []
    for _ in range(g.choice((0, 1, 1, 2))):
        other = [*shape]
        other[axis] = g.size() if g.chance(0.4) else shape[axis]
        more.append(g.like(g.dtype(x), other))
    g.emit("Concat", [x, *more], axis=axis)


def make_split(g: Generator) -> None:
    x = g.operand(g.types("Split"), 1)
    axis = g.axis(g.of(x).ndim)
    size, count = g.of(x).shape[axis], g.choice((1, 2, 2, 3))
    if g.chance(0.4):
        g.emit("Split", [x], outputs=count, axis=axis, num_outputs=count)
        return
    cuts = sorted(g.rng.randint(0, size) for _ in range(count - 1))
    parts = np.diff([0, *cuts, size])
    g.emit("Split", [x, g.index(parts)], outputs=count, axis=axis if g.chance(0.9) else None)


def make_slice(g: Generator) -> None:
    x = g.operand(g.types("Slice"), 1)
    rank = g.of(x).ndim
    axes = g.axes(rank, 1)
    if len({a % rank for a in axes}) < len(axes):
        raise Rejected("an axis twice")
    ends = [g.choice((-9, -3, -2, -1, 0, 1, 2, 3, 2**31 - 1, -(2**31), 2**63 - 1)) for _ in axes]
    starts = [g.choice((-9, -2, -1, 0, 0, 0, 1, 2, 9)) for _ in axes]
    kind = g.choice(INDEX)
    if kind is np.int32:
        ends = [max(min(e, 2**31 - 1), -(2**31)) for e in ends]
    operands = [g.index(starts, kind), g.index(ends, kind), g.index(axes, kind)]
    if g.chance(0.6):
        operands.append(g.index([g.choice((-2, -1, 1, 1, 2, 3)) for _ in axes], kind))
    g.emit("Slice", [x, *operands])


def make_pad(g: Generator) -> None:
    x = g.operand(g.types("Pad"), 1)
    rank = g.of(x).ndim
    mode = g.choice(("constant", "constant", "reflect", "edge", "wrap", None))
    operands = [x]
    count = rank
    axes = None
    if g.chance(0.3):
        axes = g.axes(rank, 1)
        count = len(axes)
    pads = [g.choice((-1, 0, 0, 1, 2)) for _ in range(2 * count)]
    operands.append(g.index(pads))
    filled = mode in ("constant", None) and g.chance(0.6)
    operands.append(g.leaf(g.dtype(x), ()) if filled else "")
    if axes is not None:
        operands.append(g.index(axes))
    while operands[-1] == "":
        operands.pop()
    g.emit("Pad", operands, mode=mode)


def indices(g: Generator, size: int, shape: tuple[int, ...]) -> str:
    """Indices into an axis, from the front or the back."""
    if size == 0 and prod(shape):
        raise Rejected("no index into nothing")
    low = -size if g.chance(0.4) else 0
    array = g.numbers.integers(low, max(size, low + 1), shape)
    return g.hold(array.astype(g.choice(INDEX)))


def make_gather(g: Generator) -> None:
    x = g.operand(g.types("Gather"), 1)
    axis = g.axis(g.of(x).ndim)
    at = indices(g, g.of(x).shape[axis], g.shape(0, 2))
    g.emit("Gather", [x, at], axis=axis)


def make_gather_elements(g: Generator) -> None:
    x = g.operand(g.types("GatherElements"), 1)
    axis = g.axis(g.of(x).ndim)
    shape = [g.rng.randint(min(d, 1), d) for d in g.of(x).shape]
    shape[axis] = g.size()
    g.emit("GatherElements", [x, indices(g, g.of(x).shape[axis], tuple(shape))], axis=axis)


def rows(g: Generator, shape: tuple[int, ...], lead: tuple[int, ...], last: int) -> str:
    """Indices into the first axes of a shape, in rows."""
    if 0 in shape[:last]:
        raise Rejected("no index into nothing")
    columns = [g.numbers.integers(-d if g.chance(0.3) else 0, d, lead) for d in shape[:last]]
    array = np.stack(columns, -1) if columns else np.zeros((*lead, 0))
    return g.hold(array.astype(np.int64))


def make_gather_nd(g: Generator) -> None:
    x = g.operand(g.types("GatherND"), 1)
    shape = g.of(x).shape
    batch = 1 if len(shape) > 1 and g.chance(0.3) else 0
    last = g.rng.randint(1, len(shape) - batch)
    lead = (*shape[:batch], *g.shape(0 if batch else 1, 2))
    at = rows(g, shape[batch:], lead, last)
    g.emit("GatherND", [x, at], batch_dims=batch or g.choice((0, None)))


REDUCTIONS = ("none", None, "add", "mul", "max", "min")


def make_scatter_elements(g: Generator) -> None:
    x = g.operand(g.types("ScatterElements"), 1)
    shape, axis = g.of(x).shape, g.axis(g.of(x).ndim)
    sizes = tuple(g.rng.randint(min(d, 1), d) for d in shape)
    at = indices(g, shape[axis], sizes)
    updates = g.like(g.dtype(x), sizes)
    g.emit("ScatterElements", [x, at, updates], axis=axis, reduction=g.choice(REDUCTIONS))


def make_scatter_nd(g: Generator) -> None:
    x = g.operand(g.types("ScatterND"), 1)
    shape = g.of(x).shape
    last, lead = g.rng.randint(1, len(shape)), g.shape(1, 2)
    at = rows(g, shape, lead, last)
    updates = g.like(g.dtype(x), (*lead, *shape[last:]))
    g.emit("ScatterND", [x, at, updates], reduction=g.choice(REDUCTIONS))


def make_tensor_scatter(g: Generator) -> None:
    x = g.operand(g.types("TensorScatter"), 3)
    shape = [*g.of(x).shape]
    axis = g.rng.randrange(1, len(shape)) if g.chance(0.5) else len(shape) - 2
    size = shape[axis]
    shape[axis] = g.rng.randint(1, max(size, 1))
    starts = g.numbers.integers(0, max(size - shape[axis], 0) + 1, shape[:1])
    update = g.like(g.dtype(x), shape)
    at = [g.hold(starts.astype(np.int64))] if g.chance(0.8) else []
    mode = g.choice(("linear", "circular", None))
    g.emit("TensorScatter", [x, update, *at], axis=axis, mode=mode)


def make_shape(g: Generator) -> None:
    x = g.operand(g.types("Shape"))
    ends = {n: g.rng.randint(-3, 3) for n in ("start", "end") if g.chance(0.3)}
    g.emit("Shape", [x], **ends)


def make_size(g: Generator) -> None:
    g.emit("Size", [g.operand(g.types("Size"))])


def make_computed_reshape(g: Generator) -> None:
    """A shape that is computed of another value's sizes."""
    x = g.operand(g.types("Reshape"), 2, 4)
    shape = g.emit("Shape", [x])
    order = g.rng.sample(range(g.of(x).ndim), g.of(x).ndim)
    parts = g.emit("Gather", [shape, g.const(order)], axis=0)
    if g.chance(0.5):
        g.emit("Reshape", [x, parts])
    elif g.chance(0.5):
        one = g.emit("Gather", [shape, g.const([order[0]])], axis=0)
        g.emit("Reshape", [x, g.emit("Concat", [one, g.const([-1])], axis=0)])
    else:
        value = np.array([g.choice((0, 1, -2))], g.choice((np.float32, np.int64, np.int32)))
        g.emit("ConstantOfShape", [parts], value=value)


def make_constant_of_shape(g: Generator) -> None:
    dtype = g.pick_type(set(DType) & {d for d in DType if d.kind in "fiub" and d.bits >= 8})
    value = g.leaf(dtype, (1,), True)
    array = np.asarray(g.of(value))
    g.emit("ConstantOfShape", [g.index(g.shape())], value=array if g.chance(0.8) else None)


def make_constant(g: Generator) -> None:
    g.emit("Constant", [], value=g.of(g.leaf(g.pick_type({DType.FLOAT32, DType.INT64}), g.shape())))


def make_trilu(g: Generator) -> None:
    x = g.operand(g.types("Trilu"), 2)
    k = [g.index(g.choice((-2, -1, 0, 1, 2, 5)))] if g.chance(0.6) else []
    g.emit("Trilu", [x, *k], upper=g.choice((0, 1, None)))


def make_eye_like(g: Generator) -> None:
    x = g.operand(g.types("EyeLike"), 2, 2)
    to = ELEMENT_CODES[g.pick_type(g.types("EyeLike"))] if g.chance(0.5) else None
    g.emit("EyeLike", [x], dtype=to, k=g.choice((-1, 0, 1, 2, None)))


def make_one_hot(g: Generator) -> None:
    x = g.operand(g.types("OneHot"), 0, 3)
    values = g.leaf(g.pick_type(g.types("OneHot", 2)), (2,))
    depth = g.index(g.choice((1, 2, 5, 6)) if g.chance(0.5) else [4], g.choice(INDEX))
    axis = g.axis(g.of(x).ndim + 1) if g.chance(0.8) else None
    g.emit("OneHot", [x, depth, values], axis=axis)


def make_depth_to_space(g: Generator) -> None:
    block = g.choice((1, 2, 2, 3))
    dtype = g.pick_type(g.types("DepthToSpace"))
    x = g.like(dtype, (g.size(), g.choice((1, 2)) * block**2, g.size(), g.size()))
    g.emit("DepthToSpace", [x], blocksize=block, mode=g.choice(("DCR", "CRD", None)))


def make_space_to_depth(g: Generator) -> None:
    block = g.choice((1, 2, 2, 3))
    dtype = g.pick_type(g.types("SpaceToDepth"))
    sizes = (g.size(), g.choice((1, 2, 3)), g.choice((1, 2)) * block, g.choice((1, 2)) * block)
    g.emit("SpaceToDepth", [g.like(dtype, sizes)], blocksize=block)


def make_compress(g: Generator) -> None:
    x = g.operand(g.types("Compress"), 1)
    axis = g.axis(g.of(x).ndim) if g.chance(0.7) else None
    size = g.of(x).size if axis is None else g.of(x).shape[axis]
    picks = g.leaf(DType.BOOL, (g.rng.randint(0, size),))
    g.emit("Compress", [x, picks], axis=axis)


def make_non_zero(g: Generator) -> None:
    g.emit("NonZero", [g.operand(g.types("NonZero"), 1)])


def make_reverse_sequence(g: Generator) -> None:
    x = g.operand(g.types("ReverseSequence"), 2)
    batch = g.choice((0, 1))
    shape = g.of(x).shape
    if shape[1 - batch] == 0:
        raise Rejected("no time")
    lengths = g.numbers.integers(1, shape[1 - batch] + 1, (shape[batch],)).astype(np.int64)
    g.emit("ReverseSequence", [x, g.hold(lengths)], batch_axis=batch, time_axis=1 - batch)


def make_center_crop_pad(g: Generator) -> None:
    x = g.operand(g.types("CenterCropPad"), 1)
    rank = g.of(x).ndim
    axes = g.axes(rank, 1) if g.chance(0.6) else None
    if axes is not None and len({a % rank for a in axes}) < len(axes):
        raise Rejected("an axis twice")
    sizes = [g.choice((1, 2, 3, 4, 6)) for _ in (axes if axes is not None else range(rank))]
    g.emit("CenterCropPad", [x, g.index(sizes)], axes=axes)


def make_range(g: Generator) -> None:
    dtype = g.pick_type(g.types("Range"))
    ends = [g.hold(np.array(g.rng.randint(-5, 8), dtype.numpy)) for _ in range(2)]
    step = g.hold(np.array(g.choice((-2, -1, 1, 1, 2, 0.5)), dtype.numpy))
    g.emit("Range", [*ends, step])


def makers() -> Iterator[Maker]:
    """The makers of this family."""
    for name, make in globals().items():
        if name.startswith("make_"):
            yield make
            if name in ("make_reshape", "make_transpose", "make_slice", "make_computed_reshape"):
                yield partial(make)
