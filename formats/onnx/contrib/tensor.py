"""Operators that move, choose or make elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.decompositions.expressions import cast, index_range, slice_axis
from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from .attention import length_of
from .table import as_scalar, reads


@reads("SampleOp")
def read_sample_op(g: Any, x: Value) -> Value:
    return x


@reads("ExpandDims")
def read_expand_dims(g: Any, x: Value, axis: Value) -> Value:
    (at,) = axis.ints()
    return g.Unsqueeze(x, [at])  # type: ignore[no-any-return]


@reads("Trilu")
def read_trilu(g: Any, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    return g.Trilu(x, k if k is None else as_scalar(g, k), upper=upper)  # type: ignore


@reads("GatherND")
def read_gather_nd(g: Any, data: Value, indices: Value) -> Value:
    return g.GatherND(data, cast(g, indices, DType.INT64))  # type: ignore[no-any-return]


@reads("Pad")
def read_pad(
    g: Any, data: Value, pads: Value, value: Value | None = None, *, mode: str = "constant"
) -> Value:  # fmt: skip
    flat = g.Reshape(pads, [-1])
    return g.Pad(data, flat, value if value is None else as_scalar(g, value), mode=mode)  # type: ignore


@reads("Range")
def read_range(g: Any, start: Value, limit: Value, delta: Value | None = None) -> Value:
    step = 1 if delta is None else as_scalar(g, delta)
    return g.Range(as_scalar(g, start), as_scalar(g, limit), step)  # type: ignore[no-any-return]


@reads("Unique")
def read_unique(g: Any, x: Value) -> tuple[Value, Value, Value]:
    y, _, inverse, counts = g.Unique(x, sorted=0, outputs=4)
    return y, inverse, counts


@reads("UnfoldTensor")
def read_unfold(g: Any, x: Value, *, dim: int = -1, size: int, step: int = 1) -> Value:
    axis = dim % x.rank
    count = g.Add(g.Div(g.Sub(length_of(g, x, axis), size), step), 1)
    starts = g.Unsqueeze(g.Mul(index_range(g, count), step), [1])
    windows = g.Gather(x, g.Add(starts, np.arange(size)), axis=axis)
    rest = [a for a in range(x.rank + 1) if a != axis + 1]
    return g.Transpose(windows, perm=(*rest, axis + 1))  # type: ignore[no-any-return]


@reads("GridSample")
def read_grid_sample(
    g: Any, x: Value, grid: Value, *, align_corners: int = 0, mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Value:  # fmt: skip
    name = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return g.GridSample(  # type: ignore[no-any-return]
        x, grid, align_corners=align_corners, mode=name, padding_mode=padding_mode
    )


@reads("ReduceSumInteger")
def read_reduce_sum_integer(g: Any, x: Value, *, axes: Ints, keepdims: int) -> Value:
    wide = cast(g, x, DType.UINT32 if x.type.kind == "u" else DType.INT32)
    return g.ReduceSum(wide, axes, keepdims=keepdims)  # type: ignore[no-any-return]


@reads("MulInteger")
def read_mul_integer(
    g: Any, a: Value, a_zero: Value | None, b: Value, b_zero: Value | None = None
) -> Value:  # fmt: skip
    dtype = DType.INT32 if "i" in (a.type.kind, b.type.kind) else DType.UINT32

    def subtract_zero_point(x: Value, zero: Value | None) -> Value:
        wide = cast(g, x, dtype)
        return wide if zero is None else g.Sub(wide, cast(g, as_scalar(g, zero), dtype))  # type: ignore

    return g.Mul(subtract_zero_point(a, a_zero), subtract_zero_point(b, b_zero))  # type: ignore[no-any-return]


@reads("NGramRepeatBlock")
def read_ngram_repeat_block(
    g: Any, input_ids: Value, scores: Value, *, ngram_size: int
) -> Value:  # fmt: skip
    """Lower the scores of words that would end a sequence of words a second time, to -inf."""
    length = input_ids.ranked_shape[1]
    require(isinstance(length, int), "input_ids of a dynamic length")
    assert isinstance(length, int)
    ends = np.arange(ngram_size - 1, length)
    if not len(ends):
        return scores
    last = slice_axis(g, input_ids, 1, length - ngram_size + 1, length)
    places = np.arange(ngram_size - 1) + (ends - ngram_size + 1)[:, None]
    earlier = g.Gather(input_ids, places.reshape(-1), axis=1)
    batch = length_of(g, input_ids, 0)
    earlier = g.Reshape(earlier, g.Concat(batch, list(places.shape), axis=0), allowzero=1)
    differs = cast(g, g.Not(g.Equal(earlier, g.Unsqueeze(last, [1]))), DType.INT32)
    is_repeat = g.Equal(g.ReduceSum(differs, [2], keepdims=0), 0)
    words = g.Unsqueeze(g.Gather(input_ids, ends, axis=1), [2])
    vocabulary = index_range(g, length_of(g, scores, 1))
    hits = g.And(g.Equal(words, vocabulary), g.Unsqueeze(is_repeat, [2]))
    blocked = g.ReduceMax(cast(g, hits, DType.INT32), [1], keepdims=0)
    return g.Where(cast(g, blocked, DType.BOOL), np.float32(-np.inf), scores)  # type: ignore


@reads("CropAndResize")
def read_crop_and_resize(
    g: Any, x: Value, rois: Value, batch_indices: Value, crop_size: Value,
    *, extrapolation_value: float = 0.0, mode: str = "bilinear",
) -> Value:  # fmt: skip
    """Crops (R, C, h, w) of images (B, C, H, W); pixels outside have one value."""
    require(mode in ("bilinear", "nearest"), f"no support for mode={mode!r}")
    chosen = g.Gather(x, batch_indices)
    inside = None
    for axis, count in zip((2, 3), crop_size.ints(), strict=True):
        last = cast(g, g.Sub(length_of(g, x, axis), 1), x.type)
        places = _crop_places(g, rois, axis - 2, last, count)
        within = g.And(g.GreaterOrEqual(places, 0.0), g.LessOrEqual(places, last))
        within = g.Unsqueeze(within, [1, 5 - axis])
        inside = within if inside is None else g.And(inside, within)
        chosen = _sample_axis(g, chosen, axis, places, last, mode, count)
    return g.Where(inside, chosen, extrapolation_value)  # type: ignore[no-any-return]


def _crop_places(g: Any, rois: Value, side: int, last: Value, count: int) -> Value:
    """Where one axis of the image is sampled: (R, count), in pixels."""
    start, end = (slice_axis(g, rois, 1, i, i + 1) for i in (side, side + 2))
    if count == 1:
        return g.Mul(g.Mul(g.Add(start, end), 0.5), last)  # type: ignore[no-any-return]
    step = g.Div(g.Mul(g.Sub(end, start), last), float(count - 1))
    index = g.const(np.arange(count).astype(rois.type.numpy))
    return g.Add(g.Mul(start, last), g.Mul(step, index))  # type: ignore[no-any-return]


def _sample_axis(
    g: Any, x: Value, axis: int, places: Value, last: Value, mode: str, count: int
) -> Value:  # fmt: skip
    """``x`` (R, C, H, W) at ``places`` (R, count) along one axis."""

    def at(where: Value) -> Value:
        bounded = cast(g, g.Min(g.Max(where, 0.0), last), DType.INT64)
        index = g.Unsqueeze(bounded, [1, 5 - axis])
        shape = g.Shape(x)
        parts = [g.Slice(shape, [0], [axis]), [count], g.Slice(shape, [axis + 1], [4])]
        return g.GatherElements(x, g.Expand(index, g.Concat(*parts, axis=0)), axis=axis)  # type: ignore

    if mode == "nearest":
        return at(g.Floor(g.Add(places, 0.5)))
    low = g.Floor(places)
    share = g.Unsqueeze(g.Sub(places, low), [1, 5 - axis])
    first = at(low)
    return g.Add(first, g.Mul(g.Sub(at(g.Ceil(places)), first), share))  # type: ignore[no-any-return]
