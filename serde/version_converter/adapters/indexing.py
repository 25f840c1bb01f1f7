"""Picking elements by index, and putting elements where an index says."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.decompositions.indexing import one_hot
from serde.ir.graph import DType, Value

from . import decomposition, downgrades, upgrades
from .common import END, FLOATS, cast, count_range, lay_along, reshape_exactly, scalar, size

SINCE = {"add": 16, "mul": 16, "max": 18, "min": 18}  # the opset that brought each reduction
REDUCED = {
    "add": ("ReduceSum", "Add"),
    "mul": ("ReduceProd", "Mul"),
    "max": ("ReduceMax", "Max"),
    "min": ("ReduceMin", "Min"),
}


def normalize_indices(g, indices: Value, count: Value):
    """Indices that count from the back, counted from the front, without Where."""
    if indices.tensor is not None and (indices.array() >= 0).all():
        return indices
    behind = cast(g, g.Less(cast(g, indices, DType.FLOAT32), 0.0), indices.type)
    return g.Add(indices, g.Mul(behind, cast(g, count, indices.type)))


@downgrades[11]("Gather")
def gather_from_the_front(g, x: Value, indices: Value, *, axis: int):
    """Before opset 11 indices did not count from the back."""
    with g.at_opset(15):
        indices = normalize_indices(g, indices, scalar(g, size(g, x, axis)))
    return g.Gather(x, indices, axis=axis)


def strides(g, x: Value, axes: int):
    """How far apart neighbours along each of the first ``axes`` axes are, these axes made one."""
    steps = [g.const([1], DType.INT64)]
    for axis in range(axes - 1, 0, -1):
        steps.insert(0, g.Mul(steps[0], size(g, x, axis)))
    return steps


def linearize_indices(g, x: Value, indices: Value, depth: Value):
    """Tuples of ``depth`` indices, along the last axis, as indices into these axes made one."""
    dims = g.Slice(g.Shape(x), [0], depth, [0], [1])
    front = normalize_indices(g, cast(g, indices, DType.INT64), dims)
    if depth.tensor is not None:
        steps = g.Concat(*strides(g, x, depth.ints()[0]), axis=0)
    else:
        rests = [g.Slice(dims, [i + 1], [END], [0], [1]) for i in range(x.rank)]
        products = [g.ReduceProd(g.Concat(v, [1], axis=0), [0], keepdims=1) for v in rests]
        steps = g.Slice(g.Concat(*products, axis=0), [0], depth, [0], [1])
    return g.ReduceSum(g.Mul(front, steps), [-1], keepdims=0)


def flatten_indices(g, x: Value, indices: Value, axis: int):
    """Where in ``x``, flattened, the element lies that ``indices`` names along ``axis``."""
    front = normalize_indices(g, cast(g, indices, DType.INT64), size(g, x, axis))
    steps = strides(g, x, x.rank)
    total = g.Mul(front, steps[axis])
    for at, step in enumerate(steps):
        if at != axis:
            places = g.Mul(count_range(g, size(g, indices, at)), step)
            total = g.Add(total, lay_along(g, places, at, x.rank))
    return total


def trailing_shape(g, x: Value, depth: Value):
    """The sizes of the axes behind the first ``depth``."""
    return g.Slice(g.Shape(x), depth, [END], [0], [1])


@downgrades[12]("GatherND")
def gather_nd_without_batches(g, x: Value, indices: Value, *, batch_dims: int):
    """Before opset 12 no axes were shared: put their positions in front of the indices."""
    if not batch_dims:
        return g.GatherND(x, indices)
    with g.at_opset(15):
        grid = g.Shape(indices, start=0, end=indices.rank - 1)
        parts = []
        for axis in range(batch_dims):
            along = lay_along(g, count_range(g, size(g, x, axis)), axis, indices.rank - 1)
            parts.append(g.Unsqueeze(g.Expand(along, grid), [indices.rank - 1]))
        indices = g.Concat(*parts, indices, axis=indices.rank - 1)
    return g.GatherND(x, indices)


@decomposition(11, "GatherND")
def gather_nd(g, x: Value, indices: Value):
    """Make the indexed axes one, and gather from it."""
    depth = size(g, indices, indices.rank - 1)
    rows = g.Reshape(x, g.Concat([-1], trailing_shape(g, x, depth), axis=0))
    return g.Gather(rows, linearize_indices(g, x, indices, depth), axis=0)


@decomposition(11, "GatherElements")
def gather_elements(g, x: Value, indices: Value, *, axis: int):
    return g.Gather(g.Reshape(x, [-1]), flatten_indices(g, x, indices, axis), axis=0)


def extreme_value(dtype: DType, largest: bool):
    """The smallest value of a type, or the largest."""
    if dtype in FLOATS:
        return float("inf") if largest else float("-inf")
    bounds = np.iinfo(dtype.numpy)
    return int(bounds.max if largest else bounds.min)


def scatter_rows(g, rows: Value, where: Value, updates: Value, reduction: str):
    """``updates`` put into, or combined with, the rows that ``where`` names; the last one stays.

    Compares every row's number with every index, so it takes memory for all such pairs.
    """
    hit = g.Equal(g.Unsqueeze(count_range(g, size(g, rows, 0)), [1]), g.Unsqueeze(where, [0]))
    if reduction == "none":
        mask = cast(g, hit, DType.FLOAT32)
        last = g.ArgMax(mask, axis=1, keepdims=0, select_last_index=1)
        chosen = g.Gather(updates, last, axis=0)
        any_hit = g.Greater(g.ReduceMax(mask, [1], keepdims=1), 0.0)
        return g.Where(any_hit, chosen, rows)
    idle = {"add": 0, "mul": 1}.get(reduction)
    idle = extreme_value(rows.type, reduction == "min") if idle is None else idle
    reduced, combined = REDUCED[reduction]
    each = g.Where(g.Unsqueeze(hit, [2]), g.Unsqueeze(updates, [0]), g.const(idle, rows.type))
    return g[combined](rows, g[reduced](each, [1], keepdims=0))


def decompose_scatter_elements(
    g, x: Value, indices: Value, updates: Value, reduction: str, axis: int
):
    """ScatterElements, decomposed."""
    where = g.Reshape(flatten_indices(g, x, indices, axis), [-1])
    y = scatter_rows(g, g.Reshape(x, [-1, 1]), where, g.Reshape(updates, [-1, 1]), reduction)
    return reshape_exactly(g, y, g.Shape(x))


def decompose_scatter_nd(g, x: Value, indices: Value, updates: Value, reduction: str):
    """ScatterND, decomposed; without a reduction, by ScatterElements."""
    depth = size(g, indices, indices.rank - 1)
    where = g.Reshape(linearize_indices(g, x, indices, depth), [-1])
    row_size = g.ReduceProd(g.Concat(trailing_shape(g, x, depth), [1], axis=0), [0], keepdims=1)
    rows = g.Reshape(x, g.Concat([-1], row_size, axis=0))
    new = g.Reshape(updates, g.Concat(g.Shape(where), row_size, axis=0))
    if reduction == "none":
        spread = g.Expand(g.Unsqueeze(where, [1]), g.Shape(new))
        y = g.ScatterElements(rows, spread, new, axis=0)
    else:
        y = scatter_rows(g, rows, where, new, reduction)
    return reshape_exactly(g, y, g.Shape(x))


def decompose_reduction(op, decompose, version, g, x, indices, updates, *, reduction: str, **rest):
    """Decompose a reduction below the opset that brought it."""
    if SINCE.get(reduction) == version:
        with g.at_opset(20):
            return decompose(g, x, indices, updates, reduction, **rest)
    more = {} if version == 16 else {"reduction": reduction}
    return g[op](x, indices, updates, **rest, **more)


for _op, _decompose in {
    "ScatterElements": decompose_scatter_elements,
    "ScatterND": decompose_scatter_nd,
}.items():
    for _version in (16, 18):
        downgrades[_version](_op)(partial(decompose_reduction, _op, _decompose, _version))


@decomposition(11, "ScatterND")
def scatter_slices_by_elements(g, x: Value, indices: Value, updates: Value):
    return decompose_scatter_nd(g, x, indices, updates, "none")


@downgrades[11]("ScatterElements")
def downgrade_to_scatter(g, x: Value, indices: Value, updates: Value, *, axis: int):
    with g.at_opset(15):
        indices = normalize_indices(g, indices, size(g, x, axis))
    return g.Scatter(x, indices, updates, axis=axis)


@decomposition(9, "Scatter")
def scatter_by_comparing(g, x: Value, indices: Value, updates: Value, *, axis: int):
    return decompose_scatter_elements(g, x, indices, updates, "none", axis)


@upgrades[11]("Scatter")
def upgrade_to_scatter_elements(g, x: Value, indices: Value, updates: Value, *, axis: int):
    return g.ScatterElements(x, indices, updates, axis=axis)


@downgrades[11]("OneHot")
def one_hot_from_the_front(g, indices: Value, depth: Value, values: Value, *, axis: int):
    """Before opset 11 no index counted from the back: those are lit nowhere."""
    with g.at_opset(15):
        integers = cast(g, indices, DType.INT64)
        front = normalize_indices(g, integers, scalar(g, cast(g, depth, DType.INT64)))
        outside = cast(g, g.Less(cast(g, front, DType.FLOAT32), 0.0), DType.INT64)
        indices = g.Add(front, g.Mul(outside, 2**40))  # runtimes count from the back all the same
    return g.OneHot(indices, depth, values, axis=axis)


decomposition(9, "OneHot")(one_hot)


@upgrades[11]("OneHot")
def one_hot_of_the_front_only(g, indices: Value, depth: Value, values: Value, *, axis: int):
    """What counts from the back since opset 11 was out of range: keep it there."""
    if indices.tensor is None or (indices.array() < 0).any():
        with g.at_opset(16):
            indices = cast(g, indices, DType.INT64)
            outside = scalar(g, cast(g, depth, DType.INT64))
            indices = g.Where(g.Less(indices, 0), outside, indices)
    return g.OneHot(indices, depth, values, axis=axis)


@decomposition(9, "NonZero")
def nonzero_by_counting(g, x: Value):
    """The k-th element that is not 0 is where the running count of them first reaches k."""
    if 0 in x.ranked_shape:
        return g.const(np.zeros((x.rank, 0), np.int64))
    flat = g.Reshape(cast(g, x, DType.BOOL), [-1])
    along = count_range(g, g.Shape(flat))
    kept = g.LessOrEqual(g.Unsqueeze(along, [1]), g.Unsqueeze(along, [0]))
    count = g.MatMul(cast(g, flat, DType.FLOAT32), cast(g, kept, DType.FLOAT32))
    total = cast(g, g.ReduceSum(cast(g, flat, DType.INT64), [0], keepdims=1), DType.INT64)
    expected = cast(g, g.Add(count_range(g, total), 1), DType.FLOAT32)
    reached = g.Equal(g.Unsqueeze(expected, [1]), g.Unsqueeze(count, [0]))
    indices = g.ArgMax(cast(g, reached, DType.FLOAT32), axis=1, keepdims=0)
    return unravel_indices(g, x, indices)


def unravel_indices(g, x: Value, flat: Value):
    """Where in ``x`` the elements lie that ``flat`` names in the flattened tensor, by axis."""
    rows, rest = [], flat
    for step in strides(g, x, x.rank):
        rows.append(g.Div(rest, step))
        rest = g.Sub(rest, g.Mul(rows[-1], step))
    return g.Concat(*(g.Unsqueeze(r, [0]) for r in rows), axis=0)


@decomposition(9, "Compress")
def compress_by_gathering(g, x: Value, condition: Value, *, axis: int | None = None):
    chosen = g.Squeeze(g.NonZero(condition), [0])
    return g.Gather(x if axis is not None else g.Reshape(x, [-1]), chosen, axis=axis or 0)


@decomposition(24, "TensorScatter")
def write_at(g, cache: Value, update: Value, write=None, *, axis: int, mode: str):
    """Each sequence of the batch takes its update from ``write`` on, ``circular`` going round."""
    at, rank = axis % cache.rank, cache.rank
    length = size(g, cache, at)
    places = lay_along(g, count_range(g, size(g, update, at)), at, rank)
    if write is not None:
        places = g.Add(places, g.Reshape(write, [-1, *[1] * (rank - 1)]))
    if mode == "circular":
        places = g.Mod(places, length)
    return g.ScatterElements(cache, g.Expand(places, g.Shape(update)), update, axis=at)


@decomposition(10, "ReverseSequence")
def reverse_sequence_by_gathering(g, x: Value, lengths: Value, *, batch_axis: int, time_axis: int):
    """Within its length each sequence counts down, behind it up."""
    along = lay_along(g, count_range(g, size(g, x, time_axis)), time_axis, x.rank)
    ends = lay_along(g, lengths, batch_axis, x.rank)
    turned = g.Where(g.Less(along, ends), g.Sub(g.Sub(ends, 1), along), along)
    return g.GatherElements(x, g.Expand(turned, g.Shape(x)), axis=time_axis)
