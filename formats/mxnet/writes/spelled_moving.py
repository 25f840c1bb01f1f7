"""Movements of elements MXNet lacks, in those it has. A rule that returns None leaves as is."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.decompositions.expressions import reshape, shape_from, sizes_of, slice_axis, times
from serde.errors import require
from serde.ir.dim_expr import elements_of
from serde.ir.graph import Value

from .spelled_math import LAST
from .spelling import spells


@spells("Split")
def spell_split(g, x, sizes=None, *, axis, num_outputs: int | None = None, outputs: int = 1):
    """Parts without elements are constants; the sizes of equal parts follow from the whole."""
    counts = None if sizes is None else sizes.ints()
    if counts is None:
        whole = x.known[axis]
        require(isinstance(whole, int), "a split of dynamic size")
        part = -(-whole // outputs)
        counts = [max(0, min(part, whole - i * part)) for i in range(outputs)]
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return tuple(
        slice_axis(g, x, axis, b, b + n) if n else nothing(g, x, axis)
        for b, n in zip(starts, counts, strict=True)
    )


def nothing(g, x: Value, axis: int):
    """A part of ``x`` without elements."""
    sizes = [1 if not isinstance(d, int) else d for d in x.known]
    sizes[axis] = 0
    return g.const(np.zeros(sizes, x.type.numpy))


@spells("Shape")
def spell_shape(g, x, *, start: int = 0, end: int | None = None):
    """No part of a shape is a constant without elements."""
    if range(x.rank)[start:end]:
        return None
    return g.const(np.zeros(0, np.int64))


@spells("Concat")
def spell_concat(g, *xs, axis):
    """What has no elements adds none."""
    some = [x for x in xs if x.known[axis] != 0]
    if len(some) == len(xs) or not some:
        return None
    return g.Identity(some[0]) if len(some) == 1 else g.Concat(*some, axis=axis)


@spells("Reshape")
def spell_reshape(g, x, shape, *, allowzero):
    """Where no size is 0 it matters not what 0 means."""
    if not allowzero:
        return None
    sizes = elements_of(shape)
    require(sizes is not None and 0 not in sizes, "a shape that may have sizes of 0")
    return g.Reshape(x, shape)


@spells("Tile")
def spell_tile(g, x, repeats):
    """MXNet repeats two axes at once, wherever they are."""
    counts = repeats.ints()
    some = [i for i, n in enumerate(counts) if n > 1]
    if len(some) <= 2:
        return None
    first = [n if i in some[:2] else 1 for i, n in enumerate(counts)]
    rest = [1 if i in some[:2] else n for i, n in enumerate(counts)]
    return g.Tile(g.Tile(x, first), rest)


@spells("Pad")
def spell_pad(g, x, pads, fill=None, axes=None, *, mode):
    """MXNet pads the last axes of images and volumes of floats; others are gathered or joined."""
    given, chosen = pads.ints(), range(x.rank) if axes is None else axes.ints()
    half = len(given) // 2
    ends = dict(zip(chosen, zip(given[:half], given[half:], strict=True), strict=True))
    widths = [ends.get(a, (0, 0)) for a in range(x.rank)]
    behind = x.rank in (3, 4, 5) and widths[:2] == [(0, 0)] * 2 and min(given) >= 0
    native = behind and x.type.kind == "f" and x.rank > 3
    if native and mode in ("constant", "edge", "reflect") and (fill is None or fill.tensor):
        if axes is None:
            return None
        full = [b for b, _ in widths] + [e for _, e in widths]
        return g.Pad(x, full, fill, mode=mode)
    for axis, (begin, end) in enumerate(widths):
        if begin or end:
            x = padded_axis(g, x, axis, begin, end, fill, mode)
    return x


def padded_axis(g, x: Value, axis: int, begin: int, end: int, fill, mode: str):
    """Pad one axis, or cut it where a width is negative."""
    if min(begin, end) < 0:
        x = slice_axis(g, x, axis, max(-begin, 0), min(end, 0) or LAST)
        begin, end = max(begin, 0), max(end, 0)
    if mode != "constant":
        size = x.known[axis]
        require(isinstance(size, int), f"{mode} pads of dynamic size")
        require(mode in ("edge", "reflect", "wrap"), f"{mode} pads")
        places: Any = np.pad(np.arange(size), (begin, end), mode=mode)  # type: ignore
        return g.Gather(x, g.const(places.astype(np.int64)), axis=axis)
    value = (
        g.const(np.zeros((), x.type.numpy))
        if fill is None
        else g.Reshape(fill, g.const(np.zeros(0, np.int64)))
    )
    parts = []
    for count in (begin, end):
        sizes = sizes_of(g, x)
        sizes[axis] = count
        parts.append(g.Expand(value, shape_from(g, sizes)) if count else None)
    return g.Concat(*(p for p in (parts[0], x, parts[1]) if p is not None), axis=axis)


@spells("DepthToSpace")
def spell_depth_to_space(g, x, *, blocksize, mode):
    n, _, h, w = sizes_of(g, x)
    b = blocksize
    part = x.known[1]
    require(isinstance(part, int) and part % (b * b) == 0, "channels that are no whole blocks")
    if mode == "DCR":
        split, order = [n, b, b, part // b**2, h, w], (0, 3, 4, 1, 5, 2)
    else:
        split, order = [n, part // b**2, b, b, h, w], (0, 1, 4, 2, 5, 3)
    moved = g.Transpose(reshape(g, x, split), perm=order)
    return reshape(g, moved, [n, part // b**2, times(g, [h, b]), times(g, [w, b])])


@spells("SpaceToDepth")
def spell_space_to_depth(g, x, *, blocksize, mode: str = "DCR"):
    b, (_, c, h, w) = blocksize, x.known
    require(isinstance(h, int) and isinstance(w, int), "an image of a size known when it runs")
    count = sizes_of(g, x)[0]
    split = reshape(g, x, [count, c, h // b, b, w // b, b])
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return reshape(g, g.Transpose(split, perm=order), [count, c * b * b, h // b, w // b])
