"""Normalizations. Batch normalization in training gives the statistics that it moves as well."""

from __future__ import annotations

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import axis_of
from serde.ir.graph import DType
from serde.spec.schema import ELEMENT_CODES

from ..promotion import as_type, promote, promote_to_float
from ..rules import reads
from .reduction import variance


def in_channels(g, x, v):
    """A vector of one number a channel, which broadcasts with ``x``."""
    return g.Unsqueeze(v, list(range(1, x.rank - 1))) if x.rank > 2 else v


def ones(g, x, number):
    """A number for each channel."""
    channels = x.ranked_shape[1]
    require(isinstance(channels, int), "channels of unknown number: fix their number")
    return g.const(arrays.full(channels, number), x.type)


def normalize(g, x, mean, var, w, b, eps):
    """By statistics that are known."""
    w, b = (ones(g, x, n) if v is None else v for v, n in ((w, 1.0), (b, 0.0)))
    return g.BatchNormalization(x, g.cast_like(w, x), g.cast_like(b, x), mean, var, epsilon=eps)


def normalize_batch(g, x, w, b, mean, var, momentum, eps):
    """By the statistics of the batch; those kept move towards them, the variance unbiased."""
    axes = [0, *range(2, x.rank)]
    biased, now = variance(g, x, axes, 0, True)
    y = g.Div(g.Sub(x, now), g.Sqrt(g.Add(biased, as_type(g, eps, x.type))))
    if w is not None:
        y = g.Mul(y, in_channels(g, x, w))
    if b is not None:
        y = g.Add(y, in_channels(g, x, b))
    biased, now = g.Squeeze(biased, axes), g.Squeeze(now, axes)
    if mean is None:
        return y, now, biased, None, None
    count = g.multiply_sizes([g.size_of(x, a) for a in axes])
    moved = move(g, mean, now, momentum), move(g, var, unbias(g, biased, count), momentum)
    return y, now, biased, *moved


def unbias(g, var, count):
    """The variance of a sample, from that of all there are."""
    if isinstance(count, int):
        return g.Mul(var, as_type(g, count / max(count - 1, 1), var.type))
    count = g.Squeeze(g.cast(count, var.type), [0])
    return g.Mul(var, g.Div(count, g.Sub(count, 1.0)))


def move(g, old, new, momentum):
    """A statistic that moves towards another."""
    kept = g.Mul(old, as_type(g, 1 - momentum, old.type))
    return g.Add(kept, g.Mul(g.cast_like(new, old), as_type(g, momentum, old.type)))


@reads("batch_norm")
def read_batch_norm(g, x, w, b, mean, var, training, momentum, eps):
    if not training and mean is not None:
        return normalize(g, x, mean, var, w, b, eps)
    y, _, _, *moved = normalize_batch(g, x, w, b, mean, var, momentum, eps)
    return (y, *moved)


@reads("_native_batch_norm_legit_no_training")
def read_no_training(g, x, w, b, mean, var, momentum, eps):
    empty = g.const([], x.type)
    return normalize(g, x, mean, var, w, b, eps), empty, empty


def keep_statistics(g, x, mean, var, eps):
    """What training keeps for gradients: the mean, and one by the deviation."""
    return mean, g.Reciprocal(g.Sqrt(g.Add(var, as_type(g, eps, x.type))))


@reads("_native_batch_norm_legit")
def read_legit(g, x, w, b, mean, var, training, momentum, eps):
    if not training:
        return read_no_training(g, x, w, b, mean, var, momentum, eps)
    y, now, biased, *moved = normalize_batch(g, x, w, b, mean, var, momentum, eps)
    return (y, *keep_statistics(g, x, now, biased, eps), *moved)


@reads("_native_batch_norm_legit_functional")
def read_functional(g, x, w, b, mean, var, training, momentum, eps):
    require(training, "batch normalization in this form outside training: export it in eval()")
    return read_legit(g, x, w, b, mean, var, training, momentum, eps)


@reads("_native_batch_norm_legit.no_stats")
def read_no_stats(g, x, w, b, training, momentum, eps):
    y, now, biased, *_ = normalize_batch(g, x, w, b, None, None, momentum, eps)
    return (y, *keep_statistics(g, x, now, biased, eps))


@reads("instance_norm")
def read_instance_norm(g, x, w, b, mean, var, use_input_stats, momentum, eps):
    if not use_input_stats:
        return normalize(g, x, mean, var, w, b, eps)
    w, b = (ones(g, x, n) if v is None else v for v, n in ((w, 1.0), (b, 0.0)))
    return g.InstanceNormalization(x, w, b, epsilon=eps)


@reads("layer_norm")
def read_layer_norm(g, x, shape, w, b, eps):
    axis = x.rank - len(shape)
    w = unit_scale(g, x, shape) if w is None else w
    return g.LayerNormalization(x, w, b, axis=axis, epsilon=eps)


@reads("native_layer_norm")
def read_native_layer_norm(g, x, shape, w, b, eps):
    axes = list(range(x.rank - len(shape), x.rank))
    var, mean = variance(g, x, axes, 0, True)
    y = read_layer_norm(g, x, shape, w, b, eps)
    return (y, *keep_statistics(g, x, mean, var, eps))


@reads("rms_norm", "_fused_rms_norm")
def read_rms_norm(g, x, shape, w, eps):
    require(eps is not None or x.type is DType.FLOAT32, "rms_norm without eps: give it")
    eps = 1.1920928955078125e-07 if eps is None else eps
    scale = unit_scale(g, x, shape) if w is None or w.type is not x.type else w
    stash = DType.FLOAT64 if x.type is DType.FLOAT64 else DType.FLOAT32
    y = g.RMSNormalization(x, scale, axis=x.rank - len(shape), epsilon=eps,
                           stash_type=ELEMENT_CODES[stash])  # fmt: skip
    return y if w is None or scale is w else g.Mul(*promote(g, y, w))


def unit_scale(g, x, shape):
    """The scale of a normalization that has none."""
    return g.Expand(as_type(g, 1.0, x.type), g.shape_from(shape))


@reads("group_norm")
def read_group_norm(g, x, groups, w, b, eps):
    return group_norm(g, x, groups, w, b, eps)


@reads("native_group_norm")
def read_native_group_norm(g, x, w, b, n, c, hw, groups, eps):
    spread = g.reshape(x, [g.sizes_of(x)[0], groups, -1])
    var, mean = variance(g, spread, [2], 0, False)
    return (group_norm(g, x, groups, w, b, eps), *keep_statistics(g, x, mean, var, eps))


def group_norm(g, x, groups, w, b, eps):
    """Normalized by groups of channels."""
    w, b = (ones(g, x, n) if v is None else v for v, n in ((w, 1.0), (b, 0.0)))
    w, b = g.cast_like(w, x), g.cast_like(b, x)
    return g.GroupNormalization(x, w, b, num_groups=groups, epsilon=eps)


@reads("_weight_norm")
def read_weight_norm(g, v, magnitude, dim):
    """A direction and a length for each index of an axis."""
    axes = [a for a in range(v.rank) if dim == -1 or a != axis_of(dim, v.rank)]
    return g.Mul(v, g.Div(magnitude, g.ReduceL2(v, axes, keepdims=1)))


@reads("cosine_similarity")
def read_cosine_similarity(g, a, b, dim, eps):
    dim, (a, b) = dim % a.rank, promote_to_float(g, a, b)
    norms = [g.Max(g.ReduceL2(x, [dim], keepdims=1), as_type(g, eps, x.type)) for x in (a, b)]
    a, b = (g.Div(x, n) for x, n in zip((a, b), norms, strict=True))
    return g.ReduceSum(g.Mul(a, b), [dim], keepdims=0)
