"""Operators on images: grids, patches, kernels that are moved."""

from __future__ import annotations

from functools import reduce
from math import prod

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from . import decomposition, downgrades, upgrades
from .common import (
    cast,
    count_range,
    lay_along,
    make_full,
    require_expandable,
    reshape_exactly,
    size,
    sum_by_factors,
    widen_float,
)
from .interpolation import (
    batch_indices,
    clamp_index,
    cubic_taps,
    linear_taps,
    move_channels_second,
    nearest_tap,
    reflect_index,
    terms,
)

TAPS = {"nearest": nearest_tap, "linear": linear_taps, "cubic": cubic_taps}
OLD_MODES = {"linear": "bilinear", "cubic": "bicubic"}
NEW_MODES = {old: new for new, old in OLD_MODES.items()}


def axis_borders(g, n: Value, align: int, dtype: DType):
    """Where an axis of ``n`` elements begins and ends: at their centres, or their edges."""
    last = cast(g, g.Sub(n, 1), dtype)
    edge = 0.0 if align else 0.5
    return g.const([-edge], dtype), g.Add(last, edge)


def decompose_grid_sample(
    g, x: Value, grid: Value, *, align_corners: int, mode: str, padding_mode: str
):
    """GridSample, decomposed for any number of axes.

    ``border`` holds the place itself between the borders, but the cubic mode weighs the neighbours
    of the place as it is and holds each of those: so ONNX Runtime and PyTorch, not onnx.reference.
    """
    u, grid = widen_float(g, x), widen_float(g, grid)
    axes, places = x.rank - 2, []
    for i in range(axes):
        n = size(g, x, 2 + i)
        low, high = axis_borders(g, n, align_corners, grid.type)
        unit = g.Mul(g.Add(g.Gather(grid, axes - 1 - i, axis=grid.rank - 1), 1.0), 0.5)
        at = g.Add(g.Mul(unit, g.Sub(high, low)), low)
        at = g.Round(at) if mode == "nearest" else at
        if padding_mode == "border" and mode != "cubic":
            outside = g.Or(g.Less(at, low), g.Greater(at, high))
            at = g.Where(outside, clamp_index(g, at, n), at)
        elif padding_mode == "reflection":
            at = reflect_index(g, at, low, high)
        places.append(cast(g, at, u.type))

    def bring(g, index, n):
        if padding_mode == "reflection":
            index = reflect_index(g, index, *axis_borders(g, n, align_corners, index.type))
        return clamp_index(g, index, n)

    parts = terms(
        g, u, batch_indices(g, size(g, x, 0), grid.rank - 1), places, TAPS[mode], bring,
        padding_mode == "zeros",
    )  # fmt: skip
    return cast(g, move_channels_second(g, reduce(g.Add, parts)), x.dtype)


@downgrades[20]("GridSample")
def grid_sample_of_images(g, x: Value, grid: Value, *, mode: str, **rest):
    """Before opset 20 grids had two axes, and modes the names they have for those."""
    if x.rank != 4:
        with g.at_opset(20):
            return decompose_grid_sample(g, x, grid, mode=mode, **rest)
    return g.GridSample(x, grid, mode=OLD_MODES.get(mode, mode), **rest)


@decomposition(16, "GridSample")
def grid_sample_by_gathering(g, x: Value, grid: Value, *, mode: str, **rest):
    return decompose_grid_sample(g, x, grid, mode=NEW_MODES.get(mode, mode), **rest)


@upgrades[20]("GridSample")
def upgrade_grid_sample_modes(g, x: Value, grid: Value, *, mode: str, **rest):
    return g.GridSample(x, grid, mode=NEW_MODES.get(mode, mode), **rest)


@decomposition(20, "AffineGrid")
def affine_grid(g, theta: Value, size: Value, *, align_corners: int):
    """Each position, and 1, times the rows of ``theta``."""
    u, axes = widen_float(g, theta), size.static_shape[0] - 2
    space = g.Slice(size, [2], [2 + axes], [0], [1])
    steps: list[Value] = []
    for i in range(axes):
        n = g.Slice(space, [i], [i + 1], [0], [1])
        along, count = cast(g, count_range(g, n), u.type), cast(g, n, u.type)
        if align_corners:
            apart = g.Max(g.Sub(count, 1.0), 1.0)
            unit = g.Sub(g.Mul(along, g.Div(2.0, apart)), 1.0)
        else:
            unit = g.Sub(g.Div(g.Add(g.Mul(along, 2.0), 1.0), count), 1.0)
        behind = list(range(axes))
        behind.remove(i)
        steps.insert(0, g.Expand(g.Unsqueeze(unit, behind) if behind else unit, space))
    points = [g.Reshape(v, [1, -1, 1]) for v in (*steps, make_full(g, 1.0, space, u.type))]
    grid = g.MatMul(g.Concat(*points, axis=2), g.Transpose(u, perm=(0, 2, 1)))
    batch = g.Slice(size, [0], [1], [0], [1])
    return cast(g, g.Reshape(grid, g.Concat(batch, space, [axes], axis=0)), theta.dtype)


@decomposition(19, "DeformConv")
def deformable_convolution(
    g, x: Value, w: Value, offset: Value, b=None, mask=None, *, dilations: Ints, group: int,
    kernel_shape: Ints, offset_group: int, pads: Ints, strides: Ints,
):  # fmt: skip
    """Sample each kernel's elements where its offset puts them, then multiply by the weights.

    Halves in float32: places beyond 2048 are no float16.
    """
    kind = x.dtype
    x, w, offset = widen_float(g, x), widen_float(g, w), widen_float(g, offset)
    b, mask = (None if v is None else widen_float(g, v) for v in (b, mask))
    axes, taps = len(kernel_shape), require_expandable(prod(kernel_shape), "a kernel", 1 << 16)
    n, c, grid = size(g, x, 0), size(g, x, 1), g.Shape(offset, start=2)
    moved = g.Reshape(offset, g.Concat([-1, taps, axes], grid, axis=0))
    places = []
    for i in range(axes):
        inner = arrays.indices(kernel_shape)[i].ravel() * dilations[i] - pads[i]
        first = g.const(inner.reshape(1, taps, *[1] * axes), x.type)
        steps = g.Mul(cast(g, count_range(g, size(g, offset, 2 + i)), x.type), float(strides[i]))
        steps = lay_along(g, steps, i + 2, 2 + axes)
        places.append(g.Add(g.Add(first, steps), g.Gather(moved, i, axis=2)))
    parted = g.Concat([-1], g.Div(c, offset_group), g.Shape(x, start=2), axis=0)
    groups = g.Mul(n, offset_group)
    parts = terms(
        g,
        g.Reshape(x, parted),
        batch_indices(g, groups, 2 + axes),
        places,
        linear_taps,
        clamp_index,
        True,
    )
    value = reduce(g.Add, parts)  # (N·groups, taps, *grid, channels)
    if mask is not None:
        share = g.Reshape(mask, g.Concat([-1, taps], grid, axis=0))
        value = g.Mul(value, g.Unsqueeze(share, [2 + axes]))
    value = g.Transpose(value, perm=(0, 2 + axes, *range(1, 2 + axes)))
    grid_size = g.ReduceProd(grid, [0], keepdims=1)
    each = g.Div(g.Mul(c, taps), group)
    columns = g.Reshape(value, g.Concat(n, [group], each, grid_size, axis=0))
    rows = g.Reshape(w, g.Concat([1, group, -1], each, axis=0))
    y = g.Reshape(g.MatMul(rows, columns), g.Concat(n, size(g, w, 0), grid, axis=0))
    return cast(g, y if b is None else g.Add(y, g.Reshape(b, [1, -1, *[1] * axes])), kind)


@decomposition(18, "Col2Im")
def columns_to_image(
    g, x: Value, image: Value, block: Value, *, dilations: Ints | None = None,
    pads: Ints | None = None, strides: Ints | None = None,
):  # fmt: skip
    """Put each patch back by a transposed convolution with ones in the right places."""
    axes = (
        image.ranked_shape[0] if isinstance(image.ranked_shape[0], int) else block.static_shape[0]
    )
    ones, (d, s) = (1,) * axes, (list(v or (1,) * axes) for v in (dilations, strides))
    p, taps = list(pads or (0,) * (2 * axes)), g.ReduceProd(block, [0], keepdims=1)
    require(len(d) == len(s) == axes and len(p) == 2 * axes, "pads or strides of another length")
    kernel = block.ints() if block.tensor is not None else None
    if kernel is not None:
        require(len(kernel) == axes and min((0, *kernel)) == 0, "a block of another length")
        require_expandable(prod(kernel), "a block", 1 << 12)
    reach = g.Mul(g.Sub(block, 1), d)
    counts = g.Add(
        g.Div(g.Sub(g.Sub(g.Add(image, [a + b for a, b in split_pads(p)]), reach), 1), s), 1
    )
    covered = g.Add(g.Add(g.Mul(g.Sub(counts, 1), s), reach), 1)
    patches = g.Reshape(x, g.Concat([-1], taps, counts, axis=0))
    along = count_range(g, taps)
    same = cast(g, g.Equal(g.Unsqueeze(along, [1]), g.Unsqueeze(along, [0])), x.type)
    spread = g.Reshape(same, g.Concat(taps, [1], block, axis=0))

    def place(values: Value):
        frame = {"kernel_shape": kernel, "strides": s, "dilations": d, "pads": ones[:0]}
        y = g.ConvTranspose(values, spread, **frame)
        if y.shape is None:  # onnx infers none without kernel_shape before opset 11
            y.shape = (None,) * (2 + axes)
        return y

    canvas = sum_by_factors(g, patches, place)
    ends = g.Sub(g.Add(image, p[:axes]), covered)
    cut = g.Pad(canvas, g.Concat([0, 0, *(-v for v in p[:axes]), 0, 0], ends, axis=0))
    channels = g.Div(size(g, x, 1), taps)
    return g.Reshape(cut, g.Concat(size(g, x, 0), channels, image, axis=0))


def split_pads(pads: list[int]):
    """The padding before and behind each axis."""
    return zip(pads[: len(pads) // 2], pads[len(pads) // 2 :], strict=True)


@decomposition(9, "MaxUnpool")
def max_unpool(
    g, x: Value, indices: Value, output_shape=None, *, kernel_shape: Ints,
    pads: Ints | None = None, strides: Ints | None = None,
):  # fmt: skip
    """Scatter into zeros of the size the pool began with, ``output_shape`` where it is given.

    ONNX Runtime counts the places in that shape; onnx.reference, in the one that follows from the
    window, which does not hold the places that a MaxPool over other sizes gives.
    """
    shape = output_shape
    if shape is None:
        axes = len(kernel_shape)
        s, p = strides or (1,) * axes, pads or (0,) * (2 * axes)
        grown = g.Mul(g.Sub(g.Shape(x, start=2), 1), list(s))
        space = g.Add(grown, [k - p[i] - p[axes + i] for i, k in enumerate(kernel_shape)])
        shape = g.Concat(g.Shape(x, start=0, end=2), space, axis=0)
    zeros = g.Reshape(make_full(g, 0.0, shape, x.type), [-1])
    flat = g.ScatterElements(zeros, g.Reshape(indices, [-1]), g.Reshape(x, [-1]), axis=0)
    return reshape_exactly(g, flat, shape)
