"""Slices and pads, whose bounds may be computed in the run."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import DType
from serde.legalize.forms.form import CONSTANT
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.common import size
from serde.version_converter.adapters.padding import expand_pads

from ..negative_pads import crop_negative_pads
from ..slices import cut_axis, read_cuts


def legalize_bounds(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Pad")(legalize_pad)
    legalize("Slice")(legalize_slice)


def is_open(v) -> bool:
    """Whether some elements of a vector may be any number, so far as is known."""
    known = shape_data_of(v)
    return known is None or any(d is None or (isinstance(d, int) and d < 0) for d in known)


def crop_computed_pads(g, x, pads, fill, axes, mode: str):
    """MNN loses elements where computed pads are negative at both ends: they become a Slice."""
    if not is_open(pads):
        return None
    over = axes if axes is not None else g.const(list(range(x.rank)), DType.INT64)
    require(over.tensor is not None, f"MNN takes constant axes of Pad. {CONSTANT}")
    half = over.static_shape[0]
    added, cropped = g.Max(pads, 0), g.Max(g.Neg(pads), 0)
    front, behind = (g.Slice(cropped, [a], [a + half], [0]) for a in (0, half))

    def crop(x):
        ends = g.Sub(g.Gather(g.Shape(x), over, axis=0), behind)
        return g.as_is("Slice", (x, front, ends, over), {})

    if mode == "constant":
        return crop(g.as_is("Pad", (x, added, fill, axes), {"mode": mode}))
    return g.as_is("Pad", (crop(x), added, fill, axes), {"mode": mode})


def legalize_pad(g, x, pads, fill=None, axes=None, *, mode: str):
    """MNN does not crop, and mixes up several axes of four and more unless it pads with zeros."""
    if mode == "wrap":
        return g.decompose("Pad", 19, x, pads, fill, axes, mode=mode)
    require(
        fill is None or fill.tensor is not None,
        f"MNN takes a constant to pad with only. {CONSTANT}",
    )
    if pads.tensor is None:
        is_zero = mode == "constant" and (fill is None or not np.any(fill.array()))
        require(is_zero or x.rank < 4, f"MNN pads with 0 only by computed 'pads'. {CONSTANT}")
        return crop_computed_pads(g, x, pads, fill, axes, mode)
    if (cropped := crop_negative_pads(g, x, pads, fill, axes, mode=mode)) is not None:
        return cropped
    listed = pads.ints() if axes is None else expand_pads(g, x, pads, axes).ints()
    pairs = list(zip(listed[: x.rank], listed[x.rank :], strict=True))
    padded = [axis for axis, pair in enumerate(pairs) if any(pair)]
    if x.rank < 4 or len(padded) < 2 or padded[0] > 1:
        return None
    for axis in padded:
        alone = np.zeros((2, x.rank), np.int64)
        alone[:, axis] = pairs[axis]
        x = g.Pad(x, alone.ravel().tolist(), fill, mode=mode)
    return x


def legalize_slice(g, x, starts, ends, axes=None, steps=None):
    """MNN aborts where it counts back, and loses elements where bounds lie before the front."""
    cuts = read_cuts(x, starts, ends, axes, steps)
    if cuts is None:
        is_plain = steps is None or (steps.tensor is not None and min(steps.ints(), default=1) > 0)
        require(is_plain, f"MNN takes constant steps. {CONSTANT}")
        return bound_cuts(g, x, starts, ends, axes, steps)
    if not any(cut.step < 0 or reaches_before(x, axis, cut) for axis, cut in cuts):
        return None
    for axis, cut in cuts:
        if isinstance(x.ranked_shape[axis], int) or not reaches_before(x, axis, cut):
            x = cut_axis(g, x, axis, cut, "MNN")
        else:
            start = g.Max(g.Add(size(g, x, axis), cut.start), 0)
            x = g.Slice(x, g.Reshape(start, [1]), [cut.stop], [axis], [cut.step])
    return x


def bound_cuts(g, x, starts, ends, axes, steps):
    """Computed bounds within the axes: MNN aborts, or repeats elements, where they are beyond."""
    if not (is_open(starts) or is_open(ends)) or (axes is not None and axes.tensor is None):
        return None
    sizes = g.cast(g.Shape(x), starts.type)
    if axes is not None:
        sizes = g.Gather(sizes, axes, axis=0)
    zero = g.const(0, starts.type)

    def limit(place):
        front = g.Where(g.Less(place, zero), g.Add(place, sizes), place)
        return g.Min(g.Max(front, zero), sizes)

    return g.as_is("Slice", (x, limit(starts), limit(ends), axes, steps), {})


def reaches_before(x, axis: int, cut: slice) -> bool:
    """Whether a slice may start before the front."""
    n = x.ranked_shape[axis]
    return cut.start < (-n if isinstance(n, int) else -1)
