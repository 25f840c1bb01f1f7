"""Regions of images: RoiAlign of static shape, where every element of an image is weighed, and
MaxRoiPool.
"""

from __future__ import annotations

from typing import NamedTuple

from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.spec.expressions import lowest_value

from .table import decompositions

MARGIN = 5  # samples of a cell beside those that an image is long
NO_WEIGHT = 2.0  # more than any weight


def average_regions(
    g, x: Value, rois: Value, batch: Value, *, output_height: int, output_width: int,
    spatial_scale: float, half: bool,
):  # fmt: skip
    """RoiAlign's means of as many samples as a region is large (``sampling_ratio=0``).

    Bilinear interpolation is a product of weights along both axes, and so is the mean of it: the
    rows of an image are weighed, then its columns.
    """
    images, channels, height, width = x.static_shape
    cells = (output_height, output_width)
    rows, columns = (
        mean_weights(g, locate_samples(g, rois, n, count, spatial_scale, half, 1 - axis), n)
        for axis, (n, count) in enumerate(zip((height, width), cells, strict=True))
    )
    order = g.Transpose(x, perm=(0, 2, 1, 3))
    if images == 1:
        image = g.Reshape(order, [height, channels * width])
        sums = g.MatMul(g.Reshape(rows, [-1, height]), image)
    else:
        image = g.Gather(g.Reshape(order, [images, height, channels * width]), batch, axis=0)
        sums = g.MatMul(rows, image)
    sums = g.Reshape(sums, [-1, output_height * channels, width])
    means = g.MatMul(sums, g.Transpose(columns, perm=(0, 2, 1)))
    means = g.Reshape(means, [-1, output_height, channels, output_width])
    return g.Transpose(means, perm=(0, 2, 1, 3))


class Samples(NamedTuple):
    """Where the cells of regions are sampled along an axis, and which samples lie in the image.

    ``at`` and ``inside`` are (regions, cells, samples), ``total``, of a cell, is (regions, 1, 1).
    """

    at: Value
    inside: Value
    total: Value


def locate_samples(g, rois: Value, size: int, cells: int, scale: float, half: bool, axis: int):
    """The samples along an axis of ``size`` elements.

    They are at most one element apart, so no more than ``size + MARGIN`` of a cell lie in the
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
    cell = g.const(arrays.arange(cells).reshape(1, -1, 1), rois.type)
    first = g.Add(start, g.Mul(cell, each))
    before = g.Div(g.Sub(-2.0, first), g.Max(g.Div(each, often), 1e-6))
    skipped = g.Max(g.Floor(before), 0.0)
    number = g.Add(skipped, g.const(arrays.arange(size + MARGIN).reshape(1, 1, -1), rois.type))
    at = g.Add(first, g.Div(g.Mul(g.Add(number, 0.5), each), often))
    out = g.Or(g.Less(at, -1.0), g.Greater(at, float(size)))
    inside = g.And(g.Less(number, count), g.Not(out))
    return Samples(g.Min(g.Max(at, 0.0), float(size - 1)), inside, count)


def mean_weights(g, samples: Samples, size: int):
    """How much each of ``size`` elements counts in each cell: (regions, cells, size)."""
    element = g.const(arrays.arange(size), samples.at.type)
    share = g.Max(g.Sub(1.0, g.Abs(g.Sub(g.Unsqueeze(samples.at, [3]), element))), 0.0)
    kept = g.Where(g.Unsqueeze(samples.inside, [3]), share, 0.0)
    return g.Div(g.ReduceSum(kept, [2], keepdims=0), g.Max(samples.total, 1.0))


def maximize_regions(
    g, x: Value, rois: Value, batch: Value, *, output_height: int, output_width: int,
    spatial_scale: float, half: bool,
):  # fmt: skip
    """RoiAlign's maxima of as many samples as a region is large (``sampling_ratio=0``).

    A sample is the largest of its four elements, each times its weight: of an element above 0 the
    largest weight in a cell counts, of one below 0 the smallest. A sample outside the image is 0.
    """
    images, _, height, width = x.static_shape
    rows, columns = (
        locate_samples(g, rois, n, count, spatial_scale, half, 1 - axis)
        for axis, (n, count) in enumerate(((height, output_height), (width, output_width)))
    )
    image = x if images == 1 else g.Gather(x, batch, axis=0)
    (most_h, least_h), (most_w, least_w) = (
        extreme_weights(g, *of) for of in ((rows, height), (columns, width))
    )
    above = _largest_by_cell(g, g.Max(image, 0.0), most_h, most_w)
    below = _largest_by_cell(g, g.Min(image, 0.0), least_h, least_w)
    counts = []
    for shape, one in (((-1, 1, output_height, 1), rows), ((-1, 1, 1, output_width), columns)):
        counts_inside = g.ReduceSum(g.Where(one.inside, 1.0, 0.0), [2], keepdims=0)
        counts.append((g.Reshape(counts_inside, shape), g.Reshape(one.total, [-1, 1, 1, 1])))
    (inside_h, all_h), (inside_w, all_w) = counts
    inside, total = g.Mul(inside_h, inside_w), g.Mul(all_h, all_w)
    value = g.Where(g.Greater(inside, 0.0), g.Add(above, below), 0.0)
    return g.Where(g.Less(inside, total), g.Max(value, 0.0), value)


def extreme_weights(g, samples: Samples, size: int):
    """The largest weight of each element in each cell, 0 where it has none, and the smallest, there
    ``NO_WEIGHT``: (regions, cells, size).
    """
    low = g.Floor(samples.at)
    share = g.Sub(samples.at, low)
    element = g.const(arrays.arange(size), samples.at.type)
    most = least = None
    for at, weight in ((low, g.Sub(1.0, share)), (g.Min(g.Add(low, 1.0), float(size - 1)), share)):
        is_here = g.And(g.Equal(g.Unsqueeze(at, [3]), element), g.Unsqueeze(samples.inside, [3]))
        weight = g.Unsqueeze(weight, [3])
        large, small = (g.Where(is_here, weight, none) for none in (0.0, NO_WEIGHT))
        most = large if most is None else g.Max(most, large)
        least = small if least is None else g.Min(least, small)
    return g.ReduceMax(most, [2], keepdims=0), g.ReduceMin(least, [2], keepdims=0)


def _largest_by_cell(g, image: Value, rows: Value, columns: Value):
    """The largest weighed element of each cell, of those that have a weight in it."""
    for weights, image_axis, axes, reduced in ((columns, 3, (1, 2), 4), (rows, 2, (1, 4), 3)):
        weights = g.Unsqueeze(weights, list(axes))
        weighed = g.Mul(g.Unsqueeze(image, [image_axis]), weights)
        weighed = g.Where(g.Less(weights, NO_WEIGHT), weighed, float(lowest_value(image)))
        image = g.ReduceMax(weighed, [reduced], keepdims=0)
    return image


@decompositions("MaxRoiPool")
def pool_regions(g, x: Value, rois: Value, *, pooled_shape: Ints, spatial_scale: float):
    """The largest element of each cell, one region after another; 0 where a cell has none."""
    kind = x.type
    x, rois = (g.cast(v, DType.FLOAT32) if v.type is DType.FLOAT16 else v for v in (x, rois))
    lowest = float(lowest_value(x))
    images = g.cast(g.Gather(rois, 0, axis=1), DType.INT64)
    rows, columns = (
        cover_cells(g, rois, count, g.Shape(x, start=2 + at, end=3 + at), spatial_scale, 1 - at)
        for at, count in enumerate(pooled_shape)
    )
    body = g.child("regions")
    turn, go = body.input("i", DType.INT64, ()), body.input("go", DType.BOOL, ())
    image = body.Gather(x, body.Gather(images, turn, axis=0), axis=0)
    along = body.Unsqueeze(body.Gather(rows, turn, axis=0), [1, 3])  # (cells, 1, height, 1)
    most = body.ReduceMax(body.Where(along, body.Unsqueeze(image, [0]), lowest), [2], keepdims=0)
    along = body.Unsqueeze(body.Gather(columns, turn, axis=0), [1, 2])  # (cells, 1, 1, width)
    most = body.ReduceMax(body.Where(along, body.Unsqueeze(most, [0]), lowest), [3], keepdims=0)
    graph = body.build([body.Identity(go), body.Transpose(most, perm=(2, 1, 0))])
    pooled = g.Loop(g.Squeeze(g.Shape(rois, start=0, end=1)), True, body=graph)
    return g.cast(g.Where(g.Equal(pooled, lowest), 0.0, pooled), kind)


def cover_cells(g, rois: Value, cells: int, count: Value, scale: float, axis: int):
    """Which elements of an axis lie in each cell: (regions, cells, elements)."""
    corners = (g.Mul(g.Gather(rois, 1 + axis + i, axis=1), scale) for i in (0, 2))
    start, end = (g.Mul(g.Sign(v), g.Floor(g.Add(g.Abs(v), 0.5))) for v in corners)
    each = g.Div(g.Max(g.Add(g.Sub(end, start), 1.0), 1.0), float(cells))
    start, each = (g.Reshape(v, [-1, 1, 1]) for v in (start, each))
    cell = g.const(arrays.arange(cells).reshape(1, -1, 1), rois.type)
    begin = g.Add(g.Floor(g.Mul(cell, each)), start)
    end = g.Add(g.Ceil(g.Mul(g.Add(cell, 1.0), each)), start)
    place = g.cast(g.Range(0, g.Squeeze(count), 1), rois.type)
    return g.And(g.GreaterOrEqual(place, begin), g.Less(place, end))
