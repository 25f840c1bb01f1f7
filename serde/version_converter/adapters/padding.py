"""Pad: pads that were attributes, axes, and modes that came later."""

from __future__ import annotations

from functools import partial

from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from . import downgrades, upgrades
from .common import END, FLOATS, scalar, size
from .dynamic_axes import known_ints, scatter_by_axis
from .function_bodies import expand_function
from .slicing import clamp_integers

downgrades[18]("CenterCropPad")(partial(expand_function, "CenterCropPad"))


def source_index(g, mode: str, n: Value, before: Value, behind: Value):
    """Where each element of a padded axis of ``n`` elements comes from.

    Negative pads cut the axis first, as in ONNX Runtime: only what is left is wrapped around.
    """
    last = g.Sub(n, 1)
    along = g.Range(scalar(g, g.Neg(before)), scalar(g, g.Add(n, behind)), 1)
    if mode == "edge":
        return clamp_integers(g, along, 0, last)
    if mode == "wrap":
        first, end = (g.Max(g.Neg(v), 0) for v in (before, behind))
        size_left = g.Sub(n, g.Add(first, end))
        return g.Add(g.Mod(g.Sub(along, first), size_left), first)
    turn = g.Mod(along, g.Max(g.Mul(last, 2), 1))
    return g.Sub(last, g.Abs(g.Sub(turn, last)))


def fill_axis(g, x: Value, axis: int, before: Value, behind: Value, value: Value):
    """One axis filled up where its padding is positive, then cut where it is negative.

    The elements that are cut off may be those of the other end's padding.
    """
    known = [(known_ints(v) or (None,))[0] for v in (before, behind)]
    parts = [x]
    for amount, count in zip((before, behind), known, strict=True):
        if count is None or count > 0:
            head, tail = g.Shape(x, start=0, end=axis), g.Shape(x, start=axis + 1)
            shape = g.Concat(head, g.Max(amount, 0), tail, axis=0)
            parts.insert(0 if amount is before else len(parts), g.Expand(value, shape))
    filled = g.Concat(*parts, axis=axis) if len(parts) > 1 else x
    if all(count is not None and count >= 0 for count in known):
        return filled
    end = g.Add(size(g, filled, axis), g.Min(behind, 0))
    return g.Slice(filled, g.Max(g.Neg(before), 0), end, [axis], [1])


def amount_at(g, pads: Value, index: int):
    """One of the amounts, of shape [1]; of constants without a node that has to be folded."""
    known = known_ints(pads)
    if known is not None and pads.rank == 1:
        return g.const([known[index]], DType.INT64)
    return g.Reshape(g.Slice(pads, [index], [index + 1], [0], [1]), [1])


def decompose_pad(g, x: Value, pads: Value, value, mode: str):
    """Pad, decomposed axis by axis."""
    if value is None:
        value = g.const(False if x.type is DType.BOOL else 0, x.type)
    value = scalar(g, value)
    for axis in range(x.rank):
        before, behind = (amount_at(g, pads, i) for i in (axis, axis + x.rank))
        if all(known_ints(v) == (0,) for v in (before, behind)):
            continue
        if mode == "constant":
            x = fill_axis(g, x, axis, before, behind, value)
        else:
            x = g.Gather(x, source_index(g, mode, size(g, x, axis), before, behind), axis=axis)
    return x


@downgrades[19]("Pad")
def pad_by_wrapping(g, x: Value, pads: Value, value=None, axes=None, *, mode: str):
    if mode != "wrap":
        return g.Pad(x, pads, value, axes, mode=mode)
    with g.at_opset(18):
        return decompose_pad(g, x, expand_pads(g, x, pads, axes), value, mode)


def expand_pads(g, x: Value, pads: Value, axes):
    """The padding of every axis, 0 where ``axes`` does not list one."""
    if axes is None:
        return pads
    known = known_ints(axes)
    if known is None:
        count = g.Div(g.Shape(pads), 2)
        halves = g.Slice(pads, [0], count, [0], [1]), g.Slice(pads, count, [END], [0], [1])
        return g.Concat(*(scatter_by_axis(g, axes, v, x.rank, 0) for v in halves), axis=0)
    at = [a % x.rank for a in known]
    zero = g.const([0], DType.INT64)
    parts = [zero] * (2 * x.rank)
    for i, axis in enumerate(at):
        for end in (0, 1):
            j = i + end * len(at)
            parts[axis + end * x.rank] = g.Slice(pads, [j], [j + 1], [0], [1])
    return g.Concat(*parts, axis=0) if parts else pads


@downgrades[18]("Pad")
def pad_every_axis(g, x: Value, pads: Value, value=None, axes=None, *, mode: str):
    with g.at_opset(20):
        pads = expand_pads(g, x, pads, axes)
    return g.Pad(x, pads, value, mode=mode)


@downgrades[11]("Pad")
def pads_as_attribute(g, x: Value, pads: Value, value=None, *, mode: str):
    """Before opset 11 padding was fixed, and only floats were padded."""
    plain = pads.tensor is not None and (value is None or value.tensor is not None)
    if plain and x.dtype in FLOATS:
        filler = 0.0 if value is None else float(value.array().ravel()[0])
        return g.Pad(x, pads=pads.ints(), value=filler, mode=mode)
    with g.at_opset(18):
        return decompose_pad(g, x, pads, value, mode)


@upgrades[11]("Pad")
def pads_as_operand(g, x: Value, *, pads: Ints, value: float, mode: str):
    filler = g.const(value, x.type) if mode == "constant" and value else None
    return g.Pad(x, list(pads), filler, mode=mode)


@upgrades[2]("Pad")
def rename_pads(g, x: Value, *, paddings: Ints, value: float, mode: str):
    return g.Pad(x, pads=paddings, value=value, mode=mode)
