"""Values of an image between its elements: what GridSample, RoiAlign and DeformConv share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from serde.ir.graph import DType, Value

from .common import cast, count_range, size

Taps = Callable[..., list[tuple[Value, Value | None]]]
CUBIC = -0.75  # the coefficient of GridSample's cubic mode


def nearest_tap(g, at: Value):
    return [(g.Round(at), None)]


def linear_taps(g, at: Value):
    """The elements on both sides, each weighted by how near it is."""
    low = g.Floor(at)
    over = g.Sub(at, low)
    return [(low, g.Sub(1.0, over)), (g.Add(low, 1.0), over)]


def cubic_near(g, d: Value, a: float):
    """Keys' kernel up to a distance of 1, where ``a`` is its coefficient."""
    return g.Add(g.Mul(g.Mul(g.Sub(g.Mul(d, a + 2), a + 3), d), d), 1.0)


def cubic_far(g, d: Value, a: float):
    """Keys' kernel between the distances 1 and 2."""
    return g.Sub(g.Mul(g.Add(g.Mul(g.Sub(g.Mul(d, a), 5 * a), d), 8 * a), d), 4 * a)


def cubic_taps(g, at: Value):
    """Two elements on each side, weighted by Keys' kernel."""
    low = g.Floor(at)
    over = g.Sub(at, low)
    behind = g.Sub(1.0, over)
    distances = [
        cubic_far(g, g.Add(over, 1.0), CUBIC), cubic_near(g, over, CUBIC),
        cubic_near(g, behind, CUBIC), cubic_far(g, g.Add(behind, 1.0), CUBIC),
    ]  # fmt: skip
    return [(g.Add(low, float(i - 1)), share) for i, share in enumerate(distances)]


def terms(g, x: Value, batch: Value, places: list[Value], taps: Taps, bring, zeros: bool):
    """The weighted values whose sum, or largest, is the value of ``x`` at ``places``.

    ``x`` is (N, C, D1 … Dr), ``places`` one tensor of coordinates an axis, ``batch`` the image each
    is on; the terms have the places' shape with C behind. ``bring`` takes an index into the axis.
    """
    rank = x.rank
    rows = g.Reshape(
        g.Transpose(x, perm=(0, *range(2, rank), 1)), g.Concat([-1], size(g, x, 1), axis=0)
    )
    sizes = [size(g, x, a) for a in range(2, rank)]
    values = []
    is_first = batch.tensor is not None and not batch.array().any()
    each = [
        [
            (cast(g, bring(g, i, n), DType.INT64), is_within(g, i, n) if zeros else None, weight)
            for i, weight in taps(g, at)
        ]
        for at, n in zip(places, sizes, strict=True)
    ]
    for chosen in product(*each):
        where, share, inside = None if is_first else batch, None, None
        for (index, here, weight), n in zip(chosen, sizes, strict=True):
            where = index if where is None else g.Add(g.Mul(where, n), index)
            share = weight if share is None else g.Mul(share, weight)
            if here is not None:
                inside = here if inside is None else g.And(inside, here)
        value = g.Gather(rows, where, axis=0)
        if share is not None:
            value = g.Mul(value, g.Unsqueeze(share, [share.rank]))
        if inside is not None:
            value = g.Where(g.Unsqueeze(inside, [inside.rank]), value, 0.0)
        values.append(value)
    return values


def is_within(g, index: Value, n: Value):
    """Whether an index lies in an axis of ``n`` elements."""
    last = cast(g, g.Sub(n, 1), index.type)
    return g.Not(g.Or(g.Less(index, 0.0), g.Greater(index, last)))


def clamp_index(g, index: Value, n: Value):
    """The index, or the end of the axis it is beyond; the last one where it is no number."""
    last = cast(g, g.Sub(n, 1), index.type)
    return g.Where(g.Less(index, last), g.Max(index, 0.0), last)


def reflect_index(g, at: Value, low: Value, high: Value):
    """Turned back at the borders until it lies between them; on the one place there may be."""
    span_ = g.Sub(high, low)
    turn = g.Mod(g.Abs(g.Sub(at, low)), g.Max(g.Mul(span_, 2.0), 1e-6), fmod=1)
    return g.Add(low, g.Sub(span_, g.Abs(g.Sub(turn, span_))))


def batch_indices(g, count: Value, rank: int):
    """The number of each image, along the first of ``rank`` axes."""
    return g.Reshape(count_range(g, count), [-1, *[1] * (rank - 1)])


def move_channels_second(g, x: Value):
    """The last axis moved to where channels stand."""
    return g.Transpose(x, perm=(0, x.rank - 1, *range(1, x.rank - 1)))
