"""Operators that move, choose or make elements."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from .attention import length_of
from .table import as_scalar, reads


@reads("SampleOp")
def read_sample_op(g, x):
    return x


@reads("ExpandDims")
def read_expand_dims(g, x, axis):
    (at,) = axis.ints()
    return g.Unsqueeze(x, [at])


@reads("Trilu")
def read_trilu(g, x, k=None, *, upper=1):
    return g.Trilu(x, k if k is None else as_scalar(g, k), upper=upper)


@reads("GatherND")
def read_gather_nd(g, data, indices):
    return g.GatherND(data, g.cast(indices, DType.INT64))


@reads("Pad")
def read_pad(g, data, pads, value=None, *, mode="constant"):
    flat = g.Reshape(pads, [-1])
    return g.Pad(data, flat, value if value is None else as_scalar(g, value), mode=mode)


@reads("Range")
def read_range(g, start, limit, delta=None):
    step = 1 if delta is None else as_scalar(g, delta)
    return g.Range(as_scalar(g, start), as_scalar(g, limit), step)


@reads("Unique")
def read_unique(g, x):
    y, _, inverse, counts = g.Unique(x, sorted=0, outputs=4)
    return y, inverse, counts


@reads("UnfoldTensor")
def read_unfold(g, x, *, dim=-1, size: int, step=1):
    axis = dim % x.rank
    count = g.Add(g.Div(g.Sub(length_of(g, x, axis), size), step), 1)
    starts = g.Unsqueeze(g.Mul(g.index_range(count), step), [1])
    windows = g.Gather(x, g.Add(starts, arrays.arange(size)), axis=axis)
    rest = [a for a in range(x.rank + 1) if a != axis + 1]
    return g.Transpose(windows, perm=(*rest, axis + 1))


@reads("GridSample")
def read_grid_sample(g, x, grid, *, align_corners=0, mode="bilinear", padding_mode="zeros"):
    name = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return g.GridSample(x, grid, align_corners=align_corners, mode=name, padding_mode=padding_mode)


@reads("ReduceSumInteger")
def read_reduce_sum_integer(g, x, *, axes: Ints, keepdims: int):
    integers = g.cast(x, DType.UINT32 if x.type.kind == "u" else DType.INT32)
    return g.ReduceSum(integers, axes, keepdims=keepdims)


@reads("MulInteger")
def read_mul_integer(g, a, a_zero, b, b_zero=None):
    dtype = DType.INT32 if "i" in (a.type.kind, b.type.kind) else DType.UINT32

    def subtract_zero_point(x: Value, zero: Value | None):
        integers = g.cast(x, dtype)
        return integers if zero is None else g.Sub(integers, g.cast(as_scalar(g, zero), dtype))

    return g.Mul(subtract_zero_point(a, a_zero), subtract_zero_point(b, b_zero))


@reads("NGramRepeatBlock")
def read_ngram_repeat_block(g, input_ids, scores, *, ngram_size: int):
    """Lower the scores of words that would end a sequence of words a second time, to -inf."""
    length = input_ids.ranked_shape[1]
    require(isinstance(length, int), "input_ids of a dynamic length")
    assert isinstance(length, int)
    ends = arrays.arange(ngram_size - 1, length)
    if not len(ends):
        return scores
    last = g.slice_axis(input_ids, 1, length - ngram_size + 1, length)
    arrays.charge_elements(ngram_size, len(ends))
    places = np.arange(ngram_size - 1) + (ends - ngram_size + 1)[:, None]
    earlier = g.Gather(input_ids, places.reshape(-1), axis=1)
    batch = length_of(g, input_ids, 0)
    earlier = g.Reshape(earlier, g.Concat(batch, list(places.shape), axis=0), allowzero=1)
    differs = g.cast(g.Not(g.Equal(earlier, g.Unsqueeze(last, [1]))), DType.INT32)
    is_repeat = g.Equal(g.ReduceSum(differs, [2], keepdims=0), 0)
    words = g.Unsqueeze(g.Gather(input_ids, ends, axis=1), [2])
    vocabulary = g.index_range(length_of(g, scores, 1))
    hits = g.And(g.Equal(words, vocabulary), g.Unsqueeze(is_repeat, [2]))
    blocked = g.ReduceMax(g.cast(hits, DType.INT32), [1], keepdims=0)
    return g.Where(g.cast(blocked, DType.BOOL), np.float32(-np.inf), scores)


@reads("CropAndResize")
def read_crop_and_resize(
    g, x, rois, batch_indices, crop_size, *, extrapolation_value=0.0, mode="bilinear"
):
    """Crops (R, C, h, w) of images (B, C, H, W); pixels outside have one value."""
    require(mode in ("bilinear", "nearest"), f"no support for mode={mode!r}")
    chosen = g.Gather(x, batch_indices)
    inside = None
    for axis, count in zip((2, 3), crop_size.ints(), strict=True):
        last = g.cast(g.Sub(length_of(g, x, axis), 1), x.type)
        places = _crop_places(g, rois, axis - 2, last, count)
        within = g.And(g.GreaterOrEqual(places, 0.0), g.LessOrEqual(places, last))
        within = g.Unsqueeze(within, [1, 5 - axis])
        inside = within if inside is None else g.And(inside, within)
        chosen = _sample_axis(g, chosen, axis, places, last, mode, count)
    return g.Where(inside, chosen, extrapolation_value)


def _crop_places(g, rois: Value, side: int, last: Value, count: int):
    """Where one axis of the image is sampled: (R, count), in pixels."""
    start, end = (g.slice_axis(rois, 1, i, i + 1) for i in (side, side + 2))
    if count == 1:
        return g.Mul(g.Mul(g.Add(start, end), 0.5), last)
    step = g.Div(g.Mul(g.Sub(end, start), last), float(count - 1))
    index = g.const(arrays.arange(count).astype(rois.type.numpy))
    return g.Add(g.Mul(start, last), g.Mul(step, index))


def _sample_axis(g, x: Value, axis: int, places: Value, last: Value, mode: str, count: int):
    """``x`` (R, C, H, W) at ``places`` (R, count) along one axis."""

    def at(where: Value):
        bounded = g.cast(g.Min(g.Max(where, 0.0), last), DType.INT64)
        index = g.Unsqueeze(bounded, [1, 5 - axis])
        shape = g.Shape(x)
        parts = [g.Slice(shape, [0], [axis]), [count], g.Slice(shape, [axis + 1], [4])]
        return g.GatherElements(x, g.Expand(index, g.Concat(*parts, axis=0)), axis=axis)

    if mode == "nearest":
        return at(g.Floor(g.Add(places, 0.5)))
    low = g.Floor(places)
    share = g.Unsqueeze(g.Sub(places, low), [1, 5 - axis])
    first = at(low)
    return g.Add(first, g.Mul(g.Sub(at(g.Ceil(places)), first), share))
