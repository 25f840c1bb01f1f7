"""Reductions, which ncnn has of up to four axes, the samples apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from serde.rewrite.rules import RuleTable
from serde.spec.traits import REDUCES
from serde.version_converter.adapters.reduction import reduce_nothing

from ..reductions import read_axes

MOST_AXES = 4  # of a tensor


def legalize_reductions(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize.for_each(REDUCES)(legalize_reduction)


def legalize_reduction(op, g, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """ncnn loses axes where all are reduced and kept, sums over several, and compares over one."""
    listed, every = read_axes("ncnn", x, axes)
    if not listed and noop_with_empty_axes:
        return reduce_nothing(op, g, x)
    if not every:
        return None
    if op == "ReduceLogSumExp":  # ncnn overflows
        most = g.ReduceMax(x, every, keepdims=1)
        total = g.ReduceSum(g.Exp(g.Sub(x, most)), every, keepdims=1)
        y = g.Add(g.Log(total), most)
        return y if keepdims else g.Squeeze(y, every)
    if x.is_static and is_of_samples(x, every, keepdims):
        return reduce_apart(op, g, x, every, keepdims)
    if MOST_AXES < x.rank > len(every) and x.is_static:
        return reduce_merged_axes(op, g, x, every, keepdims)
    if op in ("ReduceMax", "ReduceMin") and len(every) > 1:
        form = {"keepdims": keepdims, "noop_with_empty_axes": 0}
        for axis in reversed(every):
            x = g[op](x, [axis], **form)
        return x
    if op == "ReduceSum" and len(every) == 1 and x.is_static:
        return g.Mul(g.ReduceMean(x, every, keepdims=keepdims), float(x.ranked_shape[every[0]]))
    is_whole = len(every) == x.rank
    if tuple(every) == listed and not (is_whole and keepdims):
        return None
    form = {"keepdims": 0 if is_whole else keepdims, "noop_with_empty_axes": 0}
    y = g.as_is(op, (x, every), form)
    return g.Reshape(y, [1] * x.rank) if is_whole and keepdims else y


def is_of_samples(x, axes: Sequence[int], keepdims: int) -> bool:
    """Whether a reduction is over one sample, or leaves the axis of the samples alone."""
    if 0 in axes:
        return x.shape[0] == 1 and x.rank > 1 and (len(axes) < x.rank or bool(keepdims))
    return not keepdims and len(axes) == x.rank - 1


def reduce_apart(op, g, x, axes: Sequence[int], keepdims: int):
    """ncnn keeps the samples apart: the others are reduced, and the result is given its shape."""
    others = [a for a in axes if a]
    form = {"keepdims": 1, "noop_with_empty_axes": 0}
    y = g[op](x, others, **form) if others else reduce_nothing(op, g, x)
    kept = [d for a, d in enumerate(y.ranked_shape) if a not in axes]
    return y if keepdims else g.Reshape(y, kept)


def reduce_merged_axes(op, g, x, axes: Sequence[int], keepdims: int):
    """Neighbours that are all reduced, or all kept, as one axis; the samples stay apart.

    Where this leaves too many axes, the first ones are reduced before the others.
    """
    runs = [[0]]
    for axis in range(1, x.rank):
        if axis > 1 and (axis in axes) == (axis - 1 in axes):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    if len(runs) > MOST_AXES:
        return reduce_twice(op, g, x, next(run for run in runs if run[0] in axes), axes, keepdims)
    reduced = [at for at, run in enumerate(runs) if run[0] in axes]
    narrow = g.Reshape(x, [math.prod(x.ranked_shape[a] for a in run) for run in runs])
    y = g[op](narrow, reduced, keepdims=1, noop_with_empty_axes=0)
    kept = (
        1 if a in axes else d for a, d in enumerate(x.ranked_shape) if keepdims or a not in axes
    )
    return g.Reshape(y, list(kept))


# What reduces the result of an operator over further axes.
AGAIN: Mapping[str, str] = MappingProxyType(
    {f"Reduce{kind}": f"Reduce{kind}" for kind in ("L2", "Max", "Mean", "Min", "Prod", "Sum")}
    | {"ReduceL1": "ReduceSum", "ReduceSumSquare": "ReduceSum"}
)


def reduce_twice(op, g, x, first: Sequence[int], axes: Sequence[int], keepdims: int):
    """Over some axes first, then over the others."""
    if op not in AGAIN:
        return g.Log(g.ReduceSum(x, axes, keepdims=keepdims)) if op == "ReduceLogSum" else None
    some = g[op](x, first, keepdims=1, noop_with_empty_axes=0)
    others = [a for a in axes if a not in first]
    y = g[AGAIN[op]](some, others, keepdims=1, noop_with_empty_axes=0)
    return y if keepdims else g.Squeeze(y, axes)
