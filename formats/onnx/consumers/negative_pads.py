"""Pad for runtimes that only add: negative pads cut."""

from __future__ import annotations

import numpy as np

from serde.ir.graph import Dim

INT32 = np.iinfo(np.int32)


def crop_negative_pads(g, x, pads, fill=None, axes=None, *, mode: str):
    """A Slice before the Pad; None where no pad is negative, or pads are computed.

    Of a constant the Slice comes behind: it may cut off padding of the other end.
    """
    listed = pads.ints() if pads.tensor is not None else ()
    if all(p >= 0 for p in listed):
        return None
    over = list(axes.ints()) if axes is not None else list(range(x.rank))
    half = len(listed) // 2
    added = [max(0, p) for p in listed]
    x = g.Pad(x, added, fill, axes, mode=mode) if mode == "constant" else x
    cropped = [i for i in range(half) if min(listed[i], listed[i + half]) < 0]
    at = [over[i] for i in cropped]
    starts = [max(0, -listed[i]) for i in cropped]
    ends = [end_of(x.ranked_shape[over[i]], max(0, -listed[i + half])) for i in cropped]
    cut = g.Slice(x, starts, ends, at, [1] * len(at))
    return cut if mode == "constant" else g.Pad(cut, added, fill, axes, mode=mode)


def end_of(size: Dim, cropped: int) -> int:
    """Where a slice ends that crops so many elements of an axis."""
    if isinstance(size, int):
        return size - cropped
    return -cropped if cropped else INT32.max
