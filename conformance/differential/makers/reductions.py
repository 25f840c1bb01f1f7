"""Nodes that reduce, accumulate, order and normalize along axes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ..evaluate import Rejected
from ..generator import Generator, Maker

REDUCE = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
    "ReduceSum ReduceSumSquare"
).split()
ALONG = "Softmax LogSoftmax Hardmax LpNormalization".split()
POOLS = "GlobalAveragePool GlobalMaxPool GlobalLpPool".split()


def make_reduce(op: str, g: Generator) -> None:
    x = g.operand(g.types(op))
    axes = g.axes(g.of(x).ndim) if g.chance(0.8) else None
    keep, noop = g.choice((0, 1, None)), g.choice((0, 1, None, None))
    operands = [x] if axes is None else [x, g.index(axes)]
    g.emit(op, operands, keepdims=keep, noop_with_empty_axes=noop)


def make_arg(op: str, g: Generator) -> None:
    x = g.operand(g.types(op), 1)
    axis = g.axis(g.of(x).ndim) if g.chance(0.8) else None
    flags = {n: g.choice((0, 1)) for n in ("keepdims", "select_last_index") if g.chance(0.5)}
    g.emit(op, [x], axis=axis, **flags)


def make_along(op: str, g: Generator) -> None:
    x = g.operand(g.types(op), 1)
    axis = g.axis(g.of(x).ndim) if g.chance(0.8) else None
    p = g.choice((1, 2)) if op == "LpNormalization" and g.chance(0.6) else None
    g.emit(op, [x], axis=axis, p=p)


def make_cumulative(op: str, g: Generator) -> None:
    x = g.operand(g.types(op), 1)
    axis = g.index(g.axis(g.of(x).ndim), g.choice((np.int64, np.int32)))
    flags = {n: g.choice((0, 1)) for n in ("exclusive", "reverse") if g.chance(0.6)}
    g.emit(op, [x, axis], **flags)


def make_top_k(g: Generator) -> None:
    x = g.operand(g.types("TopK"), 1)
    axis = g.axis(g.of(x).ndim)
    k = g.rng.randint(0, g.of(x).shape[axis])
    flags = {n: g.choice((0, 1)) for n in ("largest",) if g.chance(0.6)}
    g.emit("TopK", [x, g.index([k])], outputs=2, axis=axis, **flags)


def make_unique(g: Generator) -> None:
    x = g.operand(g.types("Unique"), 1)
    axis = g.axis(g.of(x).ndim) if g.chance(0.6) else None
    g.emit("Unique", [x], outputs=g.choice((1, 2, 3, 4)), axis=axis, sorted=g.choice((0, 1, None)))


def make_global_pool(op: str, g: Generator) -> None:
    x = g.operand(g.types(op), 3, 5)
    g.emit(op, [x], p=g.choice((1, 2, 3, None)) if op == "GlobalLpPool" else None)


def make_batch_normalization(g: Generator) -> None:
    x = g.operand(g.types("BatchNormalization"), 2, 5)
    channels = (g.of(x).shape[1],)
    dtype = g.dtype(x)
    scale, bias, mean = (g.like(dtype, channels) for _ in range(3))
    variance = g.hold(
        np.abs(g.numbers.standard_normal(channels)).astype(dtype.numpy) + dtype.numpy.type(0.1)
    )
    attrs = {"epsilon": g.choice((1e-5, 1e-3, 0.1, None))}
    training = g.chance(0.15)
    g.emit("BatchNormalization", [x, scale, bias, mean, variance], outputs=3 if training else 1,
           training_mode=1 if training else None, **attrs)  # fmt: skip


def make_instance_normalization(g: Generator) -> None:
    x = g.operand(g.types("InstanceNormalization"), 3, 5)
    channels = (g.of(x).shape[1],)
    scale, bias = (g.like(g.dtype(x), channels) for _ in range(2))
    g.emit("InstanceNormalization", [x, scale, bias], epsilon=g.choice((1e-5, 1e-2, None)))


def make_group_normalization(g: Generator) -> None:
    x = g.operand(g.types("GroupNormalization"), 3, 5)
    count = g.of(x).shape[1]
    groups = g.choice([k for k in range(1, count + 1) if count % k == 0] or [1])
    channels = (count if g.opset >= 21 else groups,)
    scale, bias = (g.like(g.dtype(x), channels) for _ in range(2))
    g.emit("GroupNormalization", [x, scale, bias], num_groups=groups,
           epsilon=g.choice((1e-5, 1e-2, None)))  # fmt: skip


def make_layer_normalization(op: str, g: Generator) -> None:
    x = g.operand(g.types(op), 1)
    axis = g.axis(g.of(x).ndim)
    rest = g.of(x).shape[axis % g.of(x).ndim :]
    operands = [x, g.like(g.dtype(x), rest)]
    if op == "LayerNormalization" and g.chance(0.5):
        operands.append(g.like(g.dtype(x), rest))
    g.emit(op, operands, axis=axis, epsilon=g.choice((1e-5, 1e-2, None)))


def make_mean_variance(g: Generator) -> None:
    x = g.operand(g.types("MeanVarianceNormalization"), 4, 4)
    axes = g.rng.sample(range(4), g.rng.randint(1, 4)) if g.chance(0.6) else None
    g.emit("MeanVarianceNormalization", [x], axes=axes)


def make_lrn(g: Generator) -> None:
    x = g.operand(g.types("LRN"), 3, 5)
    attrs = {
        n: g.choice((1e-4, 0.5, 0.75, 1.0)) for n in ("alpha", "beta", "bias") if g.chance(0.5)
    }
    g.emit("LRN", [x], size=g.choice((1, 2, 3, 5)), **attrs)


def make_loss(op: str, g: Generator) -> None:
    x = g.operand(g.types(op), 2, 4)
    shape = g.of(x).shape
    if not shape[1]:
        raise Rejected("no class")
    labels = g.numbers.integers(0, shape[1], (shape[0], *shape[2:]))
    weight = [g.like(g.dtype(x), shape[1:2])] if g.chance(0.5) else []
    ignored = g.choice((0, 1, -1)) if g.chance(0.4) else None
    if ignored == -1 and labels.size:
        labels.ravel()[0] = -1
    labels = g.hold(labels.astype(g.choice((np.int64, np.int32))))
    double = op != "NegativeLogLikelihoodLoss" and g.chance(0.5)
    g.emit(op, [x, labels, *weight], outputs=2 if double else 1, ignore_index=ignored,
           reduction=g.choice(("none", "sum", "mean", None)))  # fmt: skip


def makers() -> Iterator[Maker]:
    """The makers of this family."""
    yield from (partial(make_reduce, op) for op in REDUCE)
    yield from (partial(make_along, op) for op in ALONG)
    yield from (partial(make_global_pool, op) for op in POOLS)
    yield from (partial(make_arg, op) for op in ("ArgMax", "ArgMin"))
    yield from (partial(make_cumulative, op) for op in ("CumSum", "CumProd"))
    yield from (
        partial(make_layer_normalization, op) for op in ("LayerNormalization", "RMSNormalization")
    )
    yield from (
        partial(make_loss, op) for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    )
    yield from (make_top_k, make_unique, make_batch_normalization, make_instance_normalization)
    yield from (make_group_normalization, make_mean_variance, make_lrn)
