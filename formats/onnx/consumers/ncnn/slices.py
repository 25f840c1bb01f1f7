"""Parts of tensors: cut out side by side, and put together."""

from __future__ import annotations

import math

import numpy as np

from serde.errors import ConversionError, require
from serde.legalize.forms.form import CONSTANT
from serde.rewrite.rules import RuleTable

from ..slices import places_of, read_cuts
from .lookups import look_up

SIZES = "ncnn takes static shapes only: give numbers (--static, --input)"
MOST_PARTS = 64  # of a tensor that are cut out one by one


def legalize_slices(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Concat")(concat)
    legalize("Gather")(gather)
    legalize("Slice")(slice_)
    legalize("Split")(split)


def concat(g, *operands, axis: int):
    """pnnx fails at one operand, and at a constant of one number."""
    axis %= operands[0].rank
    some = [v for v in operands if 0 not in v.ranked_shape]
    require(some, "ncnn has no tensors without elements")
    if len(some) == 1:
        return g.Identity(some[0])
    at = next((i for i, v in enumerate(some) if is_number(v)), None)
    if at is None:
        return None if len(some) == len(operands) else g.Concat(*some, axis=axis)
    first = max(at - 1, 0)
    joined = append_number(g, some[first], some[first + 1], at == 0, axis)
    rest = [*some[:first], joined, *some[first + 2 :]]
    return g.Concat(*rest, axis=axis) if len(rest) > 1 else joined


def is_number(x) -> bool:
    """Whether a value is a constant of one element."""
    return x.tensor is not None and x.tensor.size == 1


def append_number(g, a, b, is_front: bool, axis: int):
    """A tensor with a number before or behind it, as padding."""
    if a.tensor is not None and b.tensor is not None:
        return g.const(np.concatenate([a.array(), b.array()], axis))
    x, number = (b, a) if is_front else (a, b)
    pads = [0] * 2 * x.rank
    pads[axis if is_front else axis + x.rank] = 1
    return g.Pad(x, pads, g.const(number.array().reshape(())))


def split(g, x, split=None, *, axis: int, num_outputs=None, outputs: int = 1):
    """Slices."""
    require(x.is_static, SIZES)
    n = x.ranked_shape[axis]
    part = -(-n // (num_outputs or outputs))
    require(
        split is None or split.tensor is not None, f"ncnn takes a constant 'split' only. {CONSTANT}"
    )
    sizes = split.ints() if split is not None else [part] * outputs
    ends = np.minimum(np.cumsum(sizes), n).tolist()
    starts = [0, *ends[:-1]]
    parts = tuple(
        g.Slice(x, [s], [e], [axis], [1]) for s, e in zip(starts, ends, strict=True)
    )  # fmt: skip
    return parts if outputs > 1 else parts[0]


def slice_(g, x, starts, ends, axes=None, steps=None):
    """ncnn cuts out what lies side by side, along one axis after the other."""
    require(x.is_static, SIZES)
    cuts = read_cuts(x, starts, ends, axes, steps)
    if cuts is None:
        raise ConversionError(f"ncnn takes constant bounds only. {CONSTANT}")
    kept = [(a, places_of(cut, x.ranked_shape[a])) for a, cut in cuts]
    kept = [(a, places) for a, places in kept if len(places) < x.ranked_shape[a] or places.step < 0]
    if x.rank > 4 and kept and not is_volume(g, x, kept):
        return cut_out_narrow(g, x, kept)
    is_plain = all(places.step == 1 for _, places in kept)
    if is_plain and len(kept) == 1 and len(cuts) == 1:
        return None
    for axis, places in kept:
        x = cut_out(g, x, places, axis)
    return x if kept else g.Identity(x)


def is_volume(g, x, kept) -> bool:
    """Whether a tensor of five axes is of samples, which stay apart; otherwise others are one."""
    node = g.producer(x)
    is_reshaped = node is not None and node.op == "Reshape"
    return x.rank == 5 and not is_reshaped and all(axis for axis, _ in kept)


def cut_out_narrow(g, x, kept):
    """The same of a tensor of more axes than ncnn has: others are one."""
    for axis, places in kept:
        sizes = x.ranked_shape
        narrow = g.Reshape(x, [math.prod(sizes[:axis]), sizes[axis], math.prod(sizes[axis + 1 :])])
        cut = cut_out(g, narrow, places, 1)
        x = g.Reshape(cut, [*sizes[:axis], len(places), *sizes[axis + 1 :]])
    return x


def cut_out(g, x, places, axis: int):
    """The elements of some places of an axis, in their order."""
    require(len(places), "ncnn has no tensors without elements")
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][1] == place:
            runs[-1][1] = place + 1
        else:
            runs.append([place, place + 1])
    require(len(runs) <= MOST_PARTS, f"ncnn cuts out up to {MOST_PARTS} parts of a tensor")
    n = x.ranked_shape[axis]
    parts = [x if r == [0, n] else g.Slice(x, [r[0]], [r[1]], [axis], [1]) for r in runs]
    return parts[0] if len(parts) == 1 else g.Concat(*parts, axis=axis)


def gather(g, x, indices, *, axis: int):
    """Elements of constant places are cut out."""
    require(x.is_static, SIZES)
    n = x.ranked_shape[axis]
    if indices.tensor is None:
        is_table = x.tensor is not None and x.rank == 2 and axis == 0
        require(is_table, "ncnn looks up rows of a constant only. Make the table a constant")
        return look_up(g, x, indices)
    places = [int(i) % n for i in indices.array().ravel()]
    y = cut_out(g, x, places, axis) if x.rank < 5 else cut_out_narrow(g, x, [(axis, places)])
    if indices.rank == 1:
        return y
    sizes = x.ranked_shape
    return g.Reshape(y, [*sizes[:axis], *indices.ranked_shape, *sizes[axis + 1 :]])
