"""RoiAlign."""

from __future__ import annotations

from functools import partial, reduce

from serde.ir import arrays
from serde.ir.graph import DType, Value

from . import decomposition, downgrades, upgrades
from .common import cast, count_range, lay_along, size, widen_float
from .interpolation import clamp_index, linear_taps, move_channels_second, terms


def samples(g, x: Value, rois: Value, cells: int, ratio: int, scale: float, half: bool, axis: int):
    """Where regions are sampled along one axis (regions, cells, samples), and how often (regions).

    With a ratio of 0 as often as a cell has elements, rounded up: the places are as many as the
    largest cell needs, and those of other regions are in order, the ones to be left out last.
    """
    shift = 0.5 if half else 0.0
    start, end = (g.Sub(g.Mul(g.Gather(rois, i + axis, axis=1), scale), shift) for i in (0, 2))
    length = g.Sub(end, start)
    each = g.Div(length if half else g.Max(length, 1.0), float(cells))
    if ratio:
        count, most = g.Add(g.Mul(each, 0.0), float(ratio)), g.const([ratio])
    else:
        count = g.Max(g.Ceil(each), 0.0)
        longest = g.ReduceMax(g.Concat(count, [1.0], axis=0), [0], keepdims=1)
        most = cast(g, longest, DType.INT64)
    step = g.Reshape(cast(g, count_range(g, most), x.type), [1, 1, -1])
    start, each, often = (g.Reshape(v, [-1, 1, 1]) for v in (start, each, g.Max(count, 1.0)))
    within = g.Div(g.Add(step, 0.5), often)
    cell = g.const(arrays.arange(cells).reshape(1, -1, 1), x.type)
    return g.Add(start, g.Mul(g.Add(cell, within), each)), count


def roi_align(
    g, x: Value, rois: Value, batch: Value, *, mode: str, output_height=1, output_width=1,
    sampling_ratio=0, spatial_scale=1.0, half: bool,
):  # fmt: skip
    """RoiAlign decomposed; float16 in float32, as coordinates beyond 2048 are not exact in it."""
    kind = x.dtype
    x, rois = widen_float(g, x), widen_float(g, rois)
    cells, largest = (output_height, output_width), mode.lower() == "max"
    points = [
        samples(g, x, rois, n, sampling_ratio, spatial_scale, half, 1 - i)
        for i, n in enumerate(cells)
    ]
    many = [g.Shape(v, start=2) for v, _ in points]
    shape = g.Concat(size(g, rois, 0), *(g.Mul(m, n) for m, n in zip(many, cells, strict=True)),
                     axis=0)  # fmt: skip
    places, inside = [], None
    for i, (at, _) in enumerate(points):
        flat = g.Reshape(at, g.Concat(size(g, rois, 0), [-1], axis=0))
        at = g.Expand(g.Unsqueeze(flat, [2 - i]), shape)
        n = cast(g, size(g, x, 2 + i), x.type)
        here = g.Not(g.Or(g.Less(at, -1.0), g.Greater(at, n)))
        inside = here if inside is None else g.And(inside, here)
        places.append(clamp_index(g, at, size(g, x, 2 + i)))
    parts = terms(g, x, g.Reshape(batch, [-1, 1, 1]), places, linear_taps, clamp_index, False)
    value = g.Where(g.Unsqueeze(inside, [3]), reduce(g.Max if largest else g.Add, parts), 0.0)
    h, w = cells
    split = g.Concat(size(g, rois, 0), [h], many[0], [w], many[1], size(g, x, 1), axis=0)
    grid = g.Reshape(value, split)
    if sampling_ratio:
        pooled = (g.ReduceMax if largest else g.ReduceMean)(grid, [2, 4], keepdims=0)
    else:
        pooled = pool_samples(g, grid, [count for _, count in points], largest)
    return cast(g, move_channels_second(g, pooled), kind)


def align_regions(
    g, x: Value, rois: Value, batch: Value, *, coordinate_transformation_mode="half_pixel", **form
):
    """RoiAlign of the IR decomposed, with the standard's defaults."""
    half = coordinate_transformation_mode == "half_pixel"
    return roi_align(g, x, rois, batch, half=half, **form)


def pool_samples(g, grid: Value, counts: list[Value], largest: bool):
    """Of each region the samples it has; 0 where it has none."""
    is_inside = None
    for axis, count in zip((2, 4), counts, strict=True):
        step = lay_along(g, cast(g, count_range(g, size(g, grid, axis)), grid.type), axis, 6)
        here = g.Less(step, g.Reshape(count, [-1, 1, 1, 1, 1, 1]))
        is_inside = here if is_inside is None else g.And(is_inside, here)
    both = g.Reshape(g.Mul(*counts), [-1, 1, 1, 1])
    if largest:
        kept = g.ReduceMax(g.Where(is_inside, grid, float("-inf")), [2, 4], keepdims=0)
        return g.Where(g.Greater(both, 0.0), kept, 0.0)
    return g.Div(g.ReduceSum(g.Where(is_inside, grid, 0.0), [2, 4], keepdims=0), g.Max(both, 1.0))


@downgrades[16]("RoiAlign")
def roi_align_half_pixel(
    g, x: Value, rois: Value, batch: Value, *, coordinate_transformation_mode: str, **rest
):
    """Before opset 16 regions were not moved by half a pixel, and at least one pixel large."""
    if coordinate_transformation_mode == "output_half_pixel":
        return g.RoiAlign(x, rois, batch, **rest)
    with g.at_opset(18):
        return roi_align(g, x, rois, batch, half=True, **rest)


decomposition(10, "RoiAlign")(partial(roi_align, half=False))


@upgrades[16]("RoiAlign")
def roi_align_without_offset(g, x: Value, rois: Value, batch: Value, **rest):
    return g.RoiAlign(x, rois, batch, coordinate_transformation_mode="output_half_pixel", **rest)
