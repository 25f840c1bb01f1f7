"""Normalizations over batches, channels and axes, and Dropout."""

from __future__ import annotations

from collections.abc import Sequence

from serde.decompositions.table import decompositions
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.expressions import END

MOST_WINDOW = 1024  # channels that one of LRN is written out for


def train_batch_norm(
    g, x: Value, scale: Value, bias: Value, mean: Value, var: Value, *, epsilon: float,
    momentum: float, outputs: int = 1,
):  # fmt: skip
    """BatchNormalization in training: by the statistics of the batch, which move the model's."""
    axes = [a for a in range(x.rank) if a != 1]
    batch_mean = g.ReduceMean(x, axes, keepdims=0)
    centred = g.Sub(x, g.Unsqueeze(batch_mean, axes))
    spread = g.ReduceMean(g.Mul(centred, centred), axes, keepdims=0)
    y = g.BatchNormalization(x, scale, bias, batch_mean, spread, epsilon=epsilon, training_mode=0)
    moved = [
        g.Add(g.Mul(old, momentum), g.Mul(g.cast_like(new, old), 1 - momentum))
        for old, new in ((mean, batch_mean), (var, spread))
    ]
    return (y, *moved)[:outputs]


def unify_batch_norm(g, x: Value, parameters: Sequence[Value], **form):
    """BatchNormalization for inference in the widest of its types; None where there is one only."""
    types = {v.type for v in (x, *parameters)}
    if len(types) == 1:
        return None
    widest = max(types, key=lambda dtype: dtype.bits)
    y = g.BatchNormalization(*(g.cast(v, widest) for v in (x, *parameters)), **form)
    return g.cast_like(y, x)


def normalize_channels(g, x: Value, parameters: Sequence[Value], epsilon: float):
    """BatchNormalization for inference; ``parameters`` are scale, bias, mean and variance."""
    inner = list(range(1, x.rank - 1))
    scale, bias, mean, var = (g.Unsqueeze(g.cast_like(v, x), inner) for v in parameters)
    return g.Add(g.Mul(g.Sub(x, mean), g.Div(scale, g.Sqrt(g.Add(var, epsilon)))), bias)


def scale_channels(g, x: Value, parameters: Sequence[Value], epsilon: float):
    """The same by one factor and one summand for each channel, which constants are folded to."""
    scale, bias, mean, var = (g.cast_like(v, x) for v in parameters)
    factor = g.Div(scale, g.Sqrt(g.Add(var, epsilon)))
    summand = g.Sub(bias, g.Mul(mean, factor))
    channels = [-1] + [1] * (x.rank - 2)
    return g.Add(g.Mul(x, g.Reshape(factor, channels)), g.Reshape(summand, channels))


def log_softmax(g, x: Value, *, axis: int):
    """LogSoftmax: the largest element is subtracted, so that no exponential overflows."""
    away = g.Sub(x, g.ReduceMax(x, [axis], keepdims=1))
    return g.Sub(away, g.Log(g.ReduceSum(g.Exp(away), [axis], keepdims=1)))


@decompositions("LRN")
def local_response(g, x: Value, *, size: int, alpha: float, beta: float, bias: float):
    """Windows of any size over the channels of any tensor."""
    before, after = (size - 1) // 2, size // 2
    if isinstance(channels := x.ranked_shape[1], int):  # farther away there are none
        before, after = min(before, channels), min(after, channels)
    count = before + after + 1
    require(
        count <= MOST_WINDOW,
        f"a window of {count} channels. Give the number of channels with --input, or a size of at "
        f"most {MOST_WINDOW}",
    )
    pads = [0] * 2 * x.rank
    pads[1], pads[x.rank + 1] = before, after
    padded = g.Pad(g.Mul(x, x), pads)
    parts = [g.Slice(padded, [i], [i + 1 - count or END], [1], [1]) for i in range(count)]
    return g.Div(x, g.Pow(g.Add(g.Mul(g.Sum(*parts), alpha / size), bias), beta))


@decompositions("LpNormalization")
def lp_norm(g, x: Value, *, axis: int, p: int):
    """What is nothing stays nothing."""
    norm = g[f"ReduceL{p}"](x, [axis], keepdims=1)
    none = g.Equal(norm, 0.0)
    return g.Where(none, g.Mul(x, 0.0), g.Div(x, g.Where(none, 1.0, norm)))


@decompositions("Hardmax")
def hardmax(g, x: Value, *, axis: int):
    """1 at the first of the largest."""
    places = g.Reshape(g.index_range(g.size_of(x, axis)), [-1] + [1] * (x.rank - 1 - axis))
    return g.cast_like(g.Equal(places, g.ArgMax(x, axis=axis, keepdims=1)), x)


def drop_nothing(g, x: Value, ratio=None, training=None, *, seed=None, outputs: int = 1):
    """Dropout at inference: the mask says that all is kept."""
    off = training is None or (training.tensor is not None and not training.array().any())
    require(off, "draws which elements it drops. Export the model in inference mode")
    y = g.Identity(x)
    return y if outputs == 1 else (y, g.Expand(g.const(True, DType.BOOL), g.Shape(x)))
