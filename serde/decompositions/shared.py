"""Operators several targets lack a form of, in others that all have."""

from __future__ import annotations

from serde.decompositions.expressions import cast as cast_to
from serde.decompositions.expressions import cast_like
from serde.errors import require
from serde.ir.graph import DType


def batch_norm(g, x, scale, bias, mean, var, *, epsilon, momentum, training_mode, outputs: int = 1):
    """In training mode with the statistics of the batch, which move those of the model."""
    if not training_mode:
        return None
    axes = [a for a in range(x.rank) if a != 1]
    own = g.ReduceMean(x, axes, keepdims=0)
    wide = g.Unsqueeze(own, axes)
    spread = g.ReduceMean(g.Mul(g.Sub(x, wide), g.Sub(x, wide)), axes, keepdims=0)
    y = g.BatchNormalization(x, scale, bias, own, spread, epsilon=epsilon, training_mode=0)
    moved = [
        g.Add(g.Mul(old, momentum), g.Mul(cast_like(g, new, old), 1 - momentum))
        for old, new in ((mean, own), (var, spread))
    ]
    return (y, *moved)[:outputs] if outputs > 1 else y


def log_sum_exp(g, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """The largest is taken out, so that no exponential overflows."""
    form = {"noop_with_empty_axes": noop_with_empty_axes}
    if x.type.kind != "f":
        wide = g.ReduceLogSumExp(cast_to(g, x, DType.FLOAT64), axes, keepdims=keepdims, **form)
        return cast_like(g, wide, x)
    most = g.ReduceMax(x, axes, keepdims=1, **form)
    finite = g.Where(g.Less(g.Abs(most), float("inf")), most, 0.0)
    total = g.ReduceSum(g.Exp(g.Sub(x, finite)), axes, keepdims=1, **form)
    made = g.Add(g.Log(total), finite)
    if keepdims or (noop_with_empty_axes and (axes is None or axes.shape == (0,))):
        return made
    every = axes is None or axes.shape == (0,)
    return g.Squeeze(made, list(range(x.rank)) if every else axes)


def local_response(g, x, *, size, alpha, beta, bias):
    """Windows of any size over the channels of any tensor."""
    squares = g.Mul(x, x)
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    pads = [0] * 2 * x.rank
    pads[1], pads[x.rank + 1] = before, after
    wide = g.Pad(squares, pads)
    count = x.ranked_shape[1]
    require(isinstance(count, int), "a dynamic number of channels")
    parts = [g.Slice(wide, [i], [i + count], [1], [1]) for i in range(size)]
    base = g.Add(g.Mul(g.Sum(*parts), alpha / size), bias)
    return g.Div(x, g.Pow(base, beta))


def one_hot(g, index, depth, values, *, axis: int):
    """A comparison with every place."""
    wide = cast_to(g, index, DType.INT64)
    count = g.Reshape(cast_to(g, depth, DType.INT64), [])
    at = axis % (index.rank + 1)
    steps = g.Reshape(g.Range(0, count, 1), [-1] + [1] * (index.rank - at))
    wide = g.Unsqueeze(g.Where(g.Less(wide, 0), g.Add(wide, count), wide), [at])
    low, high = (g.Gather(values, i, axis=0) for i in (0, 1))
    return g.Where(g.Equal(wide, steps), high, low)


def lp_norm(g, x, *, axis, p):
    """What is nothing stays nothing."""
    norm = g[f"ReduceL{p}"](x, [axis], keepdims=1)
    none = g.Equal(norm, 0.0)
    return g.Where(none, g.Mul(x, 0.0), g.Div(x, g.Where(none, 1.0, norm)))


def optional_get(g, x):
    """A tensor is its own element."""
    return None if x.container else g.Identity(x)


def optional_has(g, x=None):
    """Nothing has none, a tensor one."""
    return None if x is not None and x.container else g.const(x is not None, DType.BOOL)
