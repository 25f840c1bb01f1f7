"""Pad for runtimes that only add: negative pads cut."""

from __future__ import annotations


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
    starts = [max(0, -p) for p in listed[:half]]
    ends = [x.ranked_shape[a] - max(0, -p) for a, p in zip(over, listed[half:], strict=True)]
    cut = g.Slice(x, starts, ends, over, [1] * half)
    return cut if mode == "constant" else g.Pad(cut, added, fill, axes, mode=mode)
