"""Slice and Pad: bounds that were attributes, and modes that came later."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.geometry import Ints
from serde.graph import DType, Value

from . import above, below
from .bodies import spelled_out
from .common import FLOATS, cast, fixed, scalar, size

below[18]("CenterCropPad")(partial(spelled_out, "CenterCropPad"))


def held(g, x: Value, low, high):
    """Integers held between two others."""
    return g.Min(g.Max(x, low), high)


def taken(g, x: Value, axis: int, start: Value, end: Value, step: int):
    """A slice of one axis, by gathering the indices it goes through."""
    n = size(g, x, axis)
    start, end = (g.Where(g.Less(v, 0), g.Add(v, n), v) for v in (start, end))
    if step > 0:
        start, end = held(g, start, 0, n), held(g, end, 0, n)
    else:
        last = g.Sub(n, 1)
        start, end = held(g, start, 0, last), held(g, end, -1, last)
    return g.Gather(x, g.Range(scalar(g, start), scalar(g, end), step), axis=axis)


@below[10]("Slice")
def slice_bounds_as_attributes(g, x: Value, starts: Value, ends: Value, axes=None, steps=None):
    """Bounds computed at run time, and steps, become indices to gather."""
    count = starts.dims[0]
    at = list(range(count)) if axes is None else fixed(axes, "axes", 10)
    by = [1] * count if steps is None else fixed(steps, "steps", 10)
    if starts.tensor and ends.tensor and all(s == 1 for s in by):
        return g.Slice(x, starts=starts.ints(), ends=ends.ints(), axes=at)
    with g.speaking(16):
        bounds = [cast(g, v, DType.INT64) for v in (starts, ends)]
        for i, (axis, step) in enumerate(zip(at, by, strict=True)):
            start, end = (g.Slice(v, [i], [i + 1], [0], [1]) for v in bounds)
            x = taken(g, x, axis % x.rank, start, end, step)
        return x


@above[10]("Slice")
def slice_bounds_as_operands(g, x: Value, *, starts: Ints, ends: Ints, axes: Ints | None = None):
    at = list(range(len(starts))) if axes is None else list(axes)
    require(len(starts) == len(ends) == len(at), "as many starts as ends and axes")
    return g.Slice(x, list(starts), list(ends), at)


def source_index(g, mode: str, n: Value, before: Value, behind: Value):
    """Where each element of a padded axis of ``n`` elements comes from."""
    last = g.Sub(n, 1)
    along = g.Range(scalar(g, g.Neg(before)), scalar(g, g.Add(n, behind)), 1)
    if mode == "edge":
        return held(g, along, 0, last)
    if mode == "wrap":
        return g.Mod(along, n)
    turn = g.Mod(along, g.Max(g.Mul(last, 2), 1))
    return g.Sub(last, g.Abs(g.Sub(turn, last)))


def with_fill(g, x: Value, axis: int, before: Value, behind: Value, value: Value):
    """One axis cut where its padding is negative, and filled up where it is positive."""
    n = size(g, x, axis)
    x = g.Slice(x, g.Max(g.Neg(before), 0), g.Add(n, g.Min(behind, 0)), [axis], [1])
    parts = []
    for amount in (before, behind):
        head, tail = g.Shape(x, start=0, end=axis), g.Shape(x, start=axis + 1)
        shape = g.Concat(head, g.Max(amount, 0), tail, axis=0)
        parts.append(g.Expand(value, shape))
    return g.Concat(parts[0], x, parts[1], axis=axis)


def padded(g, x: Value, pads: Value, value, mode: str):
    """Pad, spelled out axis by axis."""
    if value is None:
        value = g.const(False if x.type is DType.BOOL else 0, x.type)
    value = scalar(g, value)
    for axis in range(x.rank):
        before, behind = (g.Slice(pads, [i], [i + 1], [0], [1]) for i in (axis, axis + x.rank))
        if all(v.tensor is not None and v.ints() == (0,) for v in (before, behind)):
            continue
        if mode == "constant":
            x = with_fill(g, x, axis, before, behind, value)
        else:
            x = g.Gather(x, source_index(g, mode, size(g, x, axis), before, behind), axis=axis)
    return x


@below[19]("Pad")
def pad_going_round(g, x: Value, pads: Value, value=None, axes=None, *, mode: str):
    if mode != "wrap":
        return g.Pad(x, pads, value, axes, mode=mode)
    with g.speaking(18):
        return padded(g, x, on_all_axes(g, x, pads, axes), value, mode)


def on_all_axes(g, x: Value, pads: Value, axes):
    """The padding of every axis, 0 where ``axes`` does not list one."""
    if axes is None:
        return pads
    at = [a % x.rank for a in fixed(axes, "axes", 18)]
    zero = g.const([0], DType.INT64)
    parts = [zero] * (2 * x.rank)
    for i, axis in enumerate(at):
        for end in (0, 1):
            j = i + end * len(at)
            parts[axis + end * x.rank] = g.Slice(pads, [j], [j + 1], [0], [1])
    return g.Concat(*parts, axis=0) if parts else pads


@below[18]("Pad")
def pad_every_axis(g, x: Value, pads: Value, value=None, axes=None, *, mode: str):
    return g.Pad(x, on_all_axes(g, x, pads, axes), value, mode=mode)


@below[11]("Pad")
def pads_as_attribute(g, x: Value, pads: Value, value=None, *, mode: str):
    """Before opset 11 padding was fixed, and only floats were padded."""
    plain = pads.tensor is not None and (value is None or value.tensor is not None)
    if plain and x.dtype in FLOATS:
        filler = 0.0 if value is None else float(value.array().ravel()[0])
        return g.Pad(x, pads=pads.ints(), value=filler, mode=mode)
    with g.speaking(18):
        return padded(g, x, pads, value, mode)


@above[11]("Pad")
def pads_as_operand(g, x: Value, *, pads: Ints, value: float, mode: str):
    filler = g.const(value, x.type) if mode == "constant" and value else None
    return g.Pad(x, list(pads), filler, mode=mode)


@above[2]("Pad")
def pads_renamed(g, x: Value, *, paddings: Ints, value: float, mode: str):
    return g.Pad(x, pads=paddings, value=value, mode=mode)
