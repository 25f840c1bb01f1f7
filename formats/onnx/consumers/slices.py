"""Slices for runtimes that take no bounds beyond the ends, and no negative steps."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.legalize.forms.form import STATIC


def read_cuts(x: Value, starts, ends, axes=None, steps=None) -> list[tuple[int, slice]] | None:
    """The axes and what is cut out of each; None where bounds are computed."""
    if any(v is not None and v.tensor is None for v in (starts, ends, axes, steps)):
        return None
    count = starts.tensor.size
    over = axes.ints() if axes is not None else range(count)
    by = steps.ints() if steps is not None else [1] * count
    bounds = zip(over, starts.ints(), ends.ints(), by, strict=True)
    return [(axis % x.rank, slice(*bound)) for axis, *bound in bounds]


def places_of(cut: slice, n: int) -> range:
    """The places of ``n`` that are cut out; a bound before the front takes the first one too."""
    stop = None if cut.step < 0 and cut.stop < -n else cut.stop
    return range(n)[max(cut.start, -n) : stop : cut.step]


def cut_axis(g, x: Value, axis: int, cut: slice, who: str):
    """What is cut out of an axis, with bounds within it, or by index where it counts back."""
    n = x.ranked_shape[axis]
    if not isinstance(n, int):
        require(cut.step > 0, f"{who} counts back along axes whose size has a number. {STATIC}")
        return g.Slice(x, [cut.start], [cut.stop], [axis], [cut.step])
    kept = places_of(cut, n)
    if cut.step < 0:
        return g.Gather(x, g.const(list(kept), DType.INT64), axis=axis)
    bounds = (kept.start, kept.stop) if kept else (0, 0)
    return g.Slice(x, [bounds[0]], [bounds[1]], [axis], [cut.step])
