"""Resize and Upsample."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import Dim, DType, Value

from . import decomposition, downgrades, upgrades
from .common import END, FLOATS, cast, size
from .dynamic_resize import resample
from .resize_coordinates import Sampling, coordinates, nearest, weights

Scales = tuple[float, ...]
MOST = 1 << 22  # elements of a matrix of weights held as a constant
PLAIN = ("asymmetric", "floor", -0.75, False, 0.0, False)  # how Upsample samples, but for its mode
# Ways to pick the nearest element that agree where an axis grows by an integer.
REPEATING = {
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
}


def decompose_resize(g, x: Value, roi, scales, sizes, how: Sampling):
    """Each axis by a matrix of weights, or by gathering the nearest."""
    roi = roi if how.coordinates == "tf_crop_and_resize" else None  # others do not read it
    rank, both = x.rank, scales is not None and sizes is not None
    factors = None if both else static_scales(x, scales, sizes)
    if factors is None or (roi is not None and roi.tensor is None):
        return resample(g, x, roi, scales, sizes, how)
    box = roi.array().astype(float).ravel() if roi is not None and roi.static_shape != (0,) else ()
    require(len(box) in (0, 2 * rank), f"a region of {len(box)} numbers for {rank} axes")
    kind, u = x.dtype, x if x.dtype in FLOATS else cast(g, x, DType.FLOAT32)
    u = x if how.mode == "nearest" else u
    by_scale = scales is not None and scales.shape != (0,)
    for axis, (n, (m, scale)) in enumerate(zip(x.ranked_shape, factors, strict=True)):
        part = (float(box[axis]), float(box[axis + rank])) if len(box) else (0.0, 1.0)
        if n != m or scale != 1 or part != (0.0, 1.0):
            if not isinstance(n, int) or not isinstance(m, int) or n * m > MOST:
                return resample(g, x, roi, scales, sizes, how)
            at = coordinates(n, m, scale if by_scale else 0.0, how.coordinates, part)
            u = resample_axis(g, u, axis, how, at, n, scale)
    return cast(g, u, kind)


def resample_axis(g, x: Value, axis: int, how: Sampling, at, n: int, scale: float):
    """One axis of ``n`` elements, sampled at the places ``at``."""
    outside = (at < 0) | (at > n - 1) if how.coordinates == "tf_crop_and_resize" else at < -np.inf
    shape = [-1 if a == axis else 1 for a in range(x.rank)]
    if how.mode == "nearest":
        x = g.Gather(x, g.const(nearest(at, n, how.nearest_mode)), axis=axis)
    else:
        matrix = np.where(outside[:, None], 0.0, weights(at, n, scale, how))
        order = (*(a for a in range(x.rank) if a != axis), axis)
        flat = g.MatMul(g.Transpose(x, perm=order), g.const(matrix.T, x.dtype))
        x = g.Transpose(flat, perm=tuple(int(i) for i in np.argsort(order)))
    if not outside.any():
        return x
    return g.Where(g.const(outside.reshape(shape)), g.const(how.extrapolation_value, x.dtype), x)


def static_scales(x: Value, scales, sizes) -> list[tuple[Dim, float]] | None:
    """For each axis its new size and how much larger that is; None where that is not known."""
    by_scale = scales is not None and scales.shape != (0,)
    operand = scales if by_scale else sizes
    require(operand is not None, "neither sizes nor scales")
    if by_scale:
        values: tuple[Any, ...] | None = operand.tensor and tuple(
            map(float, operand.array().ravel())
        )
    else:
        values = shape_data_of(operand)
    if values is None:
        return None
    fit = all(isinstance(v, str) or v is None or 0 < v < END for v in values)
    require(len(values) == x.rank and fit and 0 not in x.ranked_shape,
            f"sizes or scales of {values[:8]} for {x.rank} axes")  # fmt: skip
    pairs = list(zip(x.ranked_shape, values, strict=True))
    if by_scale:
        return [(scale_size(n, s), s) for n, s in pairs]
    known = all(
        n is not None and (n == m or (isinstance(n, int) and isinstance(m, int))) for n, m in pairs
    )
    return [(m, 1.0 if n == m else m / n) for n, m in pairs] if known else None


def scale_size(n: Dim, scale: float) -> Dim:
    """The size of an axis of ``n`` elements once it is ``scale`` times as large."""
    exact = isinstance(n, int)  # in float32, as ONNX's own inference and runtimes have it
    return n if scale == 1 else int(np.float32(n) * np.float32(scale)) if exact else None


@downgrades[19]("Resize")
def resize_symmetric(g, x: Value, roi=None, scales=None, sizes=None, **rest):
    """``half_pixel_symmetric`` is of opset 19."""
    if rest["coordinate_transformation_mode"] != "half_pixel_symmetric":
        return g.Resize(x, roi, scales, sizes, **rest)
    with g.at_opset(18):
        x, roi, scales, sizes = every_axis(g, x, roi, scales, sizes, **policy(rest))
        return decompose_resize(g, x, roi, scales, sizes, Sampling.of(rest))


def policy(attrs):
    """The attributes that tell which axes are resized, and to what."""
    names = ("axes", "keep_aspect_ratio_policy")
    return {n: attrs[n] for n in names if n in attrs}


def every_axis(g, x: Value, roi, scales, sizes, *, keep_aspect_ratio_policy: str, axes=None):
    """The operands of Resize for all axes, of sizes that need no policy.

    A policy leaves both sizes and scales: what it rounds to whole elements is sampled unrounded.
    """
    at = [a % x.rank for a in axes] if axes else list(range(x.rank))
    if sizes is not None and keep_aspect_ratio_policy != "stretch":
        lengths = cast(g, g.Concat(*(size(g, x, a) for a in at), axis=0), DType.FLOAT32)
        ratio = g.Div(cast(g, sizes, DType.FLOAT32), lengths)
        kept = g.ReduceMin if keep_aspect_ratio_policy == "not_larger" else g.ReduceMax
        scales = g.Expand(kept(ratio, [0], keepdims=1), [len(at)])
        exact = g.Mul(lengths, scales)
        grown = g.Floor(g.Add(exact, 0.5))
        sizes = cast(g, grown, DType.INT64)
        if exact.tensor is not None and (exact.array() == grown.array()).all():
            scales = None  # the sizes tell as much
    if axes:
        ones = [g.const([1.0], DType.FLOAT32)] * x.rank
        scales = scales and scatter_axes(g, scales, at, ones)
        sizes = sizes and scatter_axes(g, sizes, at, [size(g, x, a) for a in range(x.rank)])
        if roi is not None and roi.shape != (0,):
            zeros = [g.const([0.0], roi.type)] * x.rank
            both = [i + end * x.rank for end in (0, 1) for i in at]
            roi = scatter_axes(g, roi, both, zeros + [g.const([1.0], roi.type)] * x.rank)
    return x, roi, scales, sizes


def scatter_axes(g, listed: Value, at, otherwise):
    """A list for all axes: the elements of ``listed`` where they belong, others from elsewhere."""
    parts = list(otherwise)
    for i, axis in enumerate(at):
        parts[axis] = g.Slice(listed, [i], [i + 1], [0], [1])
    return g.Concat(*parts, axis=0)


@downgrades[18]("Resize")
def resize_every_axis(g, x: Value, roi=None, scales=None, sizes=None, **rest):
    """Before opset 18 all axes were listed, and nothing was smoothed."""
    with g.at_opset(18):
        x, roi, scales, sizes = every_axis(g, x, roi, scales, sizes, **policy(rest))
    how = Sampling.of(rest)
    if (how.antialias and how.mode != "nearest") or (scales is not None and sizes is not None):
        with g.at_opset(18):
            return decompose_resize(g, x, roi, scales, sizes, how)
    kept = {n: v for n, v in rest.items() if n not in ("antialias", *policy(rest))}
    return g.Resize(x, roi, scales, sizes, **kept)


@downgrades[13]("Resize")
def resize_with_every_operand(g, x: Value, roi=None, scales=None, sizes=None, **rest):
    """At opset 11 operands not used were empty."""
    none = g.const([], DType.FLOAT32)
    roi = none if roi is None else roi
    return g.Resize(x, roi, none if sizes is not None else scales, sizes, **rest)


@downgrades[11]("Resize")
def resize_as_upsampling(g, x: Value, roi=None, scales=None, sizes=None, **rest):
    """Opset 10 left open how places correspond: use it where that is not in question."""
    how = Sampling.of(rest)
    scales = scales if scales is not None and scales.shape != (0,) else None
    pairs = static_scales(x, scales, sizes)
    factors = None if pairs is None else [s for _, s in pairs]
    if factors is not None and is_unambiguous(how, factors):
        operand = g.const(factors, DType.FLOAT32) if scales is None else scales
        return g.Resize(x, operand, mode=how.mode)
    with g.at_opset(18):
        return decompose_resize(g, x, roi, scales, sizes, how)


def is_unambiguous(how: Sampling, factors: list[float]) -> bool:
    """Whether opset 10's Resize can mean nothing else."""
    if any(f < 1 for f in factors):
        return False
    if how.mode == "linear":
        return how.coordinates == "asymmetric"
    is_integer = all(f == int(f) for f in factors)
    return how.mode == "nearest" and (
        (how.coordinates, how.nearest_mode) == ("asymmetric", "floor")
        or (is_integer and (how.coordinates, how.nearest_mode) in REPEATING)
    )


@downgrades[10]("Resize")
def upsample(g, x: Value, scales: Value, *, mode: str):
    """Only ``resize_as_upsampling`` gets here, or a model that grows every axis."""
    return g.Upsample(x, scales, mode=mode)


@downgrades[9]("Upsample")
def upsample_by_attribute(g, x: Value, scales: Value, *, mode: str):
    if scales.tensor is None:
        with g.at_opset(18):
            return resample(g, x, None, scales, None, Sampling(mode, *PLAIN))
    return g.Upsample(x, scales=[float(s) for s in scales.array().ravel()], mode=mode)


@decomposition(7, "Upsample")
def resample_plainly(g, x: Value, *, scales: tuple[float, ...], mode: str):
    """For targets without Resize, in whose place Upsample would be one again."""
    how = Sampling("linear" if mode == "bilinear" else mode, *PLAIN)
    return decompose_resize(g, x, None, g.const(scales, DType.FLOAT32), None, how)


@upgrades[7]("Upsample")
def upsample_scales_in_one(g, x: Value, *, height_scale: float, width_scale: float, mode: str):
    spelled = "linear" if mode == "bilinear" else mode
    return g.Upsample(x, scales=(1.0, 1.0, height_scale, width_scale), mode=spelled)


@upgrades[9]("Upsample")
def upsample_scales_as_operand(g, x: Value, *, scales: Scales, mode: str):
    return g.Upsample(x, g.const(scales, DType.FLOAT32), mode=mode)


@upgrades[10]("Upsample")
def upgrade_to_resize(g, x: Value, scales: Value, *, mode: str):
    return g.Resize(x, scales, mode="linear" if mode == "bilinear" else mode)


@upgrades[11]("Resize")
def resize_asymmetric(g, x: Value, scales: Value, *, mode: str):
    """What opset 10 left open, as ONNX's own converter and its runtimes read it.

    Nearest is the element before a place where an axis grows, and the one behind it where it
    shrinks. Scales computed at run time are taken to grow.
    """
    how = {"mode": mode, "coordinate_transformation_mode": "asymmetric"}
    none = g.const([], DType.FLOAT32)
    shrinking = scales.tensor is not None and mode == "nearest" and (scales.array() < 1).any()
    if not shrinking:
        return g.Resize(x, none, scales, nearest_mode="floor", **how)
    both = np.float32(scales.array()), arrays.ones(scales.static_shape, np.float32)
    grown, shrunk = np.maximum(*both), np.minimum(*both)
    y = x if (grown == 1).all() else g.Resize(x, none, grown, nearest_mode="floor", **how)
    return g.Resize(y, none, shrunk, nearest_mode="ceil", **how)


@upgrades[13]("Resize")
def resize_without_empty_operands(g, x: Value, roi: Value, scales: Value, sizes=None, **rest):
    """``tf_half_pixel_for_nn`` left with opset 13: rounding up after half a pixel is the same."""
    if rest["coordinate_transformation_mode"] == "tf_half_pixel_for_nn":
        require(rest["mode"] == "nearest" and rest["nearest_mode"] == "floor",
                "tf_half_pixel_for_nn, which only opsets 11 and 12 have")  # fmt: skip
        rest |= {"coordinate_transformation_mode": "half_pixel",
                 "nearest_mode": "round_prefer_ceil"}  # fmt: skip
    used = [None if v is None or v.shape == (0,) else v for v in (roi, scales)]
    return g.Resize(x, used[0], None if sizes is not None else used[1], sizes, **rest)
