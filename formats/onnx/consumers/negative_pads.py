"""Pad for runtimes that only add: negative pads cut."""

from __future__ import annotations


def crop_negative_pads(g, x, pads, fill=None, axes=None, *, mode: str):
    """A Slice before the Pad; None where no pad is negative, or pads are computed."""
    listed = pads.ints() if pads.tensor is not None else ()
    if all(p >= 0 for p in listed):
        return None
    over = list(axes.ints()) if axes is not None else list(range(x.rank))
    half = len(listed) // 2
    starts = [max(0, -p) for p in listed[:half]]
    ends = [x.ranked_shape[a] - max(0, -p) for a, p in zip(over, listed[half:], strict=True)]
    added = [max(0, p) for p in listed]
    cut = g.Slice(x, starts, ends, over, [1] * half)
    return g.Pad(cut, added, fill, axes, mode=mode)
