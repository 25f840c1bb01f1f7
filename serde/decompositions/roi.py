"""RoiAlign by matrix products, of static shape whatever the size of a region."""

from __future__ import annotations

from typing import Any

from serde.ir.graph import Value

MARGIN = 5  # samples of a cell beside those that an image is long


def mean_of_regions(
    g: Any, x: Value, rois: Value, batch: Value, *, output_height: int, output_width: int,
    spatial_scale: float, half: bool,
) -> Value:  # fmt: skip
    """RoiAlign's means of as many samples as a region is large (``sampling_ratio=0``).

    Bilinear interpolation is a product of weights along both axes, and so is the mean of it: the
    rows of an image are weighed, then its columns.
    """
    images, channels, height, width = x.dims
    cells = (output_height, output_width)
    rows, columns = (
        mean_weights(g, rois, n, count, spatial_scale, half, 1 - axis)
        for axis, (n, count) in enumerate(zip((height, width), cells, strict=True))
    )
    order = g.Transpose(x, perm=(0, 2, 1, 3))
    if images == 1:
        image = g.Reshape(order, [height, channels * width])
        taken = g.MatMul(g.Reshape(rows, [-1, height]), image)
    else:
        image = g.Gather(g.Reshape(order, [images, height, channels * width]), batch, axis=0)
        taken = g.MatMul(rows, image)
    taken = g.Reshape(taken, [-1, output_height * channels, width])
    made = g.MatMul(taken, g.Transpose(columns, perm=(0, 2, 1)))
    made = g.Reshape(made, [-1, output_height, channels, output_width])
    return g.Transpose(made, perm=(0, 2, 1, 3))  # type: ignore[no-any-return]


def mean_weights(
    g: Any, rois: Value, size: int, cells: int, scale: float, half: bool, axis: int
) -> Value:
    """How much each of ``size`` elements counts in each cell: (regions, cells, size).

    Samples are at most one element apart, so no more than ``size + MARGIN`` of a cell lie in the
    image; those in front of it are skipped.
    """
    shift = 0.5 if half else 0.0
    start, end = (
        g.Reshape(g.Sub(g.Mul(g.Gather(rois, i + axis, axis=1), scale), shift), [-1, 1, 1])
        for i in (0, 2)
    )
    length = g.Sub(end, start)
    each = g.Div(length if half else g.Max(length, 1.0), float(cells))
    count = g.Max(g.Ceil(each), 0.0)
    often = g.Max(count, 1.0)
    cell = g.const([[[float(i)] for i in range(cells)]], rois.type)
    first = g.Add(start, g.Mul(cell, each))
    before = g.Div(g.Sub(-2.0, first), g.Max(g.Div(each, often), 1e-6))
    skipped = g.Max(g.Floor(before), 0.0)
    number = g.Add(skipped, g.const([[[float(i) for i in range(size + MARGIN)]]], rois.type))
    at = g.Add(first, g.Div(g.Mul(g.Add(number, 0.5), each), often))
    out = g.Or(g.Less(at, -1.0), g.Greater(at, float(size)))
    inside = g.And(g.Less(number, count), g.Not(out))
    near = g.Unsqueeze(g.Min(g.Max(at, 0.0), float(size - 1)), [3])
    element = g.const([float(i) for i in range(size)], rois.type)
    share = g.Max(g.Sub(1.0, g.Abs(g.Sub(near, element))), 0.0)
    kept = g.Where(g.Unsqueeze(inside, [3]), share, 0.0)
    return g.Div(g.ReduceSum(kept, [2], keepdims=0), often)  # type: ignore[no-any-return]
