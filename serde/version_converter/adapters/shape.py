"""Operators that rearrange elements, and those that make or take shapes."""

from __future__ import annotations

from serde.decompositions import indexing
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Tensor, Value

from . import decomposition, downgrades, upgrades
from .common import END, cast, make_full, require_constant_axis, scalar
from .dynamic_axes import drop_marked, known_ints, mark_axes, select_sizes, static_length


@downgrades[13]("Squeeze")
def squeeze_axes_as_attribute(g, x: Value, axes=None):
    listed = None if axes is None else known_ints(axes)
    if listed == ():
        return x  # as an attribute, no axes would mean all of size 1
    if axes is None or listed is not None:
        return g.Squeeze(x, axes=listed)
    with g.at_opset(20):
        count = static_length(axes)
        left = None if count is None else x.rank - count
        kept = drop_marked(g, g.Shape(x), mark_axes(g, axes, x.rank), left)
        return g.Reshape(x, kept, allowzero=int(0 in x.ranked_shape))


@upgrades[13]("Squeeze")
def squeeze_axes_as_operand(g, x: Value, *, axes: Ints | None = None):
    return g.Squeeze(x, None if axes is None else list(axes))


@downgrades[13]("Unsqueeze")
def unsqueeze_axes_as_attribute(g, x: Value, axes: Value):
    listed = known_ints(axes)
    if listed is not None:
        return g.Unsqueeze(x, axes=listed) if listed else x
    with g.at_opset(20):
        count = static_length(axes)
        rank = g.Add(g.Shape(axes), x.rank) if count is None else x.rank + count
        new = mark_axes(g, axes, rank)
        before = g.CumSum(g.Sub(1, new), 0, exclusive=1)  # axes of ``x`` in front of each
        sizes = g.Gather(g.Concat(g.Shape(x), [1], axis=0), before, axis=0)
        return g.Reshape(
            x, select_sizes(g, sizes, g.Sub(1, new)), allowzero=int(0 in x.ranked_shape)
        )


@upgrades[13]("Unsqueeze")
def unsqueeze_axes_as_operand(g, x: Value, *, axes: Ints):
    return g.Unsqueeze(x, list(axes))


@downgrades[14]("Reshape", sizes=lambda attrs: bool(attrs.get("allowzero")))
def reshape_without_empty_axes(g, x: Value, shape: Value, *, allowzero: int):
    """Say the size 0 of an axis, which meant the operand's own size before opset 14."""
    expected = shape.shape_data or (shape.ints() if shape.tensor is not None else None)
    if not allowzero or (expected is not None and 0 not in expected):
        return g.Reshape(x, shape)
    if expected is None:
        return keep_empty(g, x, shape)
    if expected.count(0) == 1 and all(isinstance(d, int) and d >= 0 for d in expected):
        return g.Reshape(x, [-1 if d == 0 else d for d in expected])
    with g.at_opset(15):
        return make_full(g, "" if x.type is DType.STRING else 0, shape, x.type)


def keep_empty(g, x: Value, shape: Value):
    """A shape in which 0, if it turns out to have one, is a size: then there is no element."""
    full, empty = g.child("whole"), g.child("empty")
    with full.at_opset(13), empty.at_opset(20), g.at_opset(20):
        nothing = make_full(empty, "" if x.type is DType.STRING else 0, shape, x.type)
        branches = full.build([full.Reshape(x, shape)]), empty.build([nothing])
        zeros = cast(g, g.Equal(cast(g, shape, DType.INT64), 0), DType.INT32)
        some = cast(g, g.ReduceMax(zeros, [0], keepdims=0), DType.BOOL)
        return g.If(some, then_branch=branches[1], else_branch=branches[0])


@upgrades[5]("Reshape", ignore=("consumed_inputs",))
def reshape_shape_as_operand(g, x: Value, *, shape: Ints):
    return g.Reshape(x, list(shape))


@downgrades[15]("Shape")
def part_of_shape(g, x: Value, *, start: int, end: int | None = None):
    shape = g.Shape(x)
    if start == 0 and end is None:
        return shape
    return g.Slice(shape, [start], [END if end is None else end], [0], [1])


@decomposition(8, "Expand")
def expand_by_tiling(g, x: Value, shape: Value):
    """Repeat each axis as often as it takes: ``ceil(expected / size)``, once where wanted is 1."""
    length = shape.ranked_shape[0]
    if not isinstance(length, int):
        x, shape = equalize_ranks(g, x, shape)
        length = rank = 1  # whatever they are, they are the same
    else:
        rank = max(length, x.rank)
    if x.shape is not None and x.rank < rank:
        x = g.Unsqueeze(x, list(range(rank - x.rank)))
    if length < rank:
        shape = g.Concat([1] * (rank - length), shape, axis=0)
    if rank == 0:
        return g.Identity(x)
    sizes = g.Shape(x)
    sizes = g.Add(sizes, cast(g, g.Equal(sizes, 0), DType.INT64))  # none of nothing is nothing
    return g.Tile(x, g.Div(g.Sub(g.Add(shape, sizes), 1), sizes))


def equalize_ranks(g, x: Value, shape: Value):
    """A tensor and a shape with ones put in front of the shorter one."""
    more = g.Sub(g.Shape(shape), x.rank)
    front = [g.Tile([1], g.Max(v, 0)) for v in (more, g.Neg(more))]
    x = g.Reshape(x, g.Concat(front[0], g.Shape(x), axis=0))
    return x, g.Concat(front[1], shape, axis=0)


@decomposition(9, "ConstantOfShape")
def constant_of_shape(g, shape: Value, *, value: Tensor | None = None):
    fill = g.const(value) if value is not None else g.const([0.0], DType.FLOAT32)
    return g.Expand(scalar(g, fill), shape)


@upgrades[4]("Concat")
def complete_concat_axis(g, *inputs: Value, axis=1):
    return g.Concat(*inputs, axis=axis)


@upgrades[6]("Tile")
def tile_one_axis(g, x: Value, tiles: Value, axis: Value):
    """At opset 1 Tile repeated one axis, named by a tensor."""
    at = require_constant_axis(axis, x, 6)
    repeats = g.Reshape(cast(g, tiles, DType.INT64), [1])
    ones = [[1] * n for n in (at, x.rank - at - 1)]
    parts = [g.const(part, DType.INT64) for part in ones]
    return g.Tile(x, g.Concat(parts[0], repeats, parts[1], axis=0))


@decomposition(28, "SpaceToDepth")
def space_to_depth(g, x: Value, *, blocksize: int, mode: str):
    """CRD, the order of channels PyTorch's pixel_unshuffle has, is new at opset 28."""
    if mode == "DCR":
        with g.at_opset(27):
            return g.SpaceToDepth(x, blocksize=blocksize)
    return indexing.space_to_depth(g, x, blocksize=blocksize, mode=mode)


@downgrades[11]("DepthToSpace")
def depth_to_space(g, x: Value, *, blocksize: int, mode: str):
    """Before opset 11 there was only DCR."""
    if mode == "DCR":
        return g.DepthToSpace(x, blocksize=blocksize)
    with g.at_opset(15):
        return indexing.depth_to_space(g, x, blocksize=blocksize, mode=mode)
