"""Losses of pairs and triplets, and of margins between classes."""

from __future__ import annotations

import math

from serde.errors import require
from serde.ir.graph import DType

from ..promotion import as_type
from ..rules import reads
from .losses import combine
from .normalization import read_cosine_similarity


def above(g, x, bound=0.0):
    """What is above a bound, the bound elsewhere."""
    return g.Max(x, as_type(g, bound, x.type))


@reads("hinge_embedding_loss")
def read_hinge(g, x, target, margin, reduction):
    """The distance of pairs that are alike, and how far others are below the margin."""
    zero, one = (as_type(g, v, x.type) for v in (0.0, 1.0))
    target = g.cast(target, x.type)
    apart = above(g, g.Sub(as_type(g, float(margin), x.type), x))
    losses = g.Add(
        g.Where(g.Equal(target, one), zero, apart), g.Where(g.Equal(target, g.Neg(one)), zero, x)
    )
    return combine(g, losses, reduction)


@reads("margin_ranking_loss")
def read_ranking(g, first, second, target, margin, reduction):
    order = g.Mul(g.Neg(g.cast(target, first.type)), g.Sub(first, second))
    return combine(g, above(g, g.Add(order, as_type(g, float(margin), first.type))), reduction)


@reads("soft_margin_loss")
def read_soft_margin(g, x, target, reduction):
    losses = g.Softplus(g.Neg(g.Mul(g.cast(target, x.type), x)))
    return combine(g, losses, reduction)


@reads("cosine_embedding_loss")
def read_cosines(g, first, second, target, margin, reduction):
    """1 less the cosine of pairs that are alike, and what others have above the margin."""
    cosine = read_cosine_similarity(g, first, second, first.rank - 1, 1e-12)
    zero, one = (as_type(g, v, first.type) for v in (0.0, 1.0))
    target = g.cast(target, first.type)
    apart = above(g, g.Sub(cosine, as_type(g, float(margin), first.type)))
    losses = g.Where(g.Equal(target, one), g.Sub(one, cosine),
                     g.Where(g.Equal(target, g.Neg(one)), apart, zero))  # fmt: skip
    return combine(g, losses, reduction)


@reads("triplet_margin_loss")
def read_triplets(g, anchor, positive, negative, margin, p, eps, swap, reduction):
    near, far = (distance(g, anchor, x, p, eps) for x in (positive, negative))
    if swap:
        far = g.Min(far, distance(g, positive, negative, p, eps))
    losses = above(g, g.Add(g.Sub(near, far), as_type(g, float(margin), anchor.type)))
    return combine(g, losses, reduction)


def distance(g, a, b, p, eps):
    """The p-norm of a difference along the last axis."""
    size = g.Abs(g.Add(g.Sub(a, b), as_type(g, eps, a.type)))
    if math.isinf(p):
        return g.ReduceMax(size, [size.rank - 1], keepdims=0)
    total = g.ReduceSum(g.Pow(size, as_type(g, float(p), a.type)), [size.rank - 1], keepdims=0)
    return g.Pow(total, as_type(g, 1 / p, a.type))


@reads("multi_margin_loss")
def read_class_margins(g, x, target, p, margin, weight, reduction):
    """How far other classes come within the margin of the right one."""
    require(x.rank in (1, 2), f"multi_margin_loss of {x.rank} axes")
    rows = g.Unsqueeze(x, [0]) if x.rank == 1 else x
    target = g.Reshape(target, [-1, 1])
    right = g.GatherElements(rows, target, axis=1)
    losses = above(g, g.Add(g.Sub(rows, right), as_type(g, float(margin), x.type)))
    losses = losses if p == 1 else g.Mul(losses, losses)
    if weight is not None:
        losses = g.Mul(losses, g.Gather(weight, target, axis=0))
    is_other = g.Not(g.Equal(g.index_range(g.size_of(rows, 1)), target))
    losses = g.Where(is_other, losses, as_type(g, 0.0, x.type))
    mean = g.ReduceMean(losses, [1], keepdims=0)
    mean = g.Squeeze(mean, [0]) if x.rank == 1 else mean
    return combine(g, mean, reduction)


@reads("multilabel_margin_loss")
def read_label_margins(g, x, target, reduction):
    """How far other classes come within 1 of those that a row lists, up to a first -1."""
    require(x.rank in (1, 2), f"multilabel_margin_loss of {x.rank} axes")
    rows, listed = (g.Unsqueeze(v, [0]) if x.rank == 1 else v for v in (x, target))
    zero, one = (as_type(g, v, x.type) for v in (0.0, 1.0))
    ends = g.cast(g.Less(listed, as_type(g, 0, listed.type)), DType.INT32)
    is_listed = g.Equal(g.CumSum(ends, g.const(1)), as_type(g, 0, DType.INT32))
    place = g.Where(is_listed, listed, as_type(g, 0, listed.type))
    classes = g.cast_like(g.index_range(g.size_of(rows, 1)), place)
    is_class = g.Equal(g.Unsqueeze(place, [2]), classes)
    is_class = g.And(is_class, g.Unsqueeze(is_listed, [2]))
    is_other = g.Equal(g.ReduceMax(g.cast(is_class, DType.INT32), [1], keepdims=1),
                       as_type(g, 0, DType.INT32))  # fmt: skip
    right = g.Unsqueeze(g.GatherElements(rows, place, axis=1), [2])
    losses = above(g, g.Add(g.Sub(g.Unsqueeze(rows, [1]), right), one))
    counted = g.And(is_other, g.Unsqueeze(is_listed, [2]))
    losses = g.ReduceMean(g.Where(counted, losses, zero), [2], keepdims=0)
    total = g.ReduceSum(losses, [1], keepdims=0)
    total = g.Squeeze(total, [0]) if x.rank == 1 else total
    return combine(g, total, reduction)


@reads("poisson_nll_loss")
def read_poisson(g, x, target, log_input, full, eps, reduction):
    """Without, or with, Stirling's part of the target."""
    target = g.cast(target, x.type)
    if log_input:
        losses = g.Sub(g.Exp(x), g.Mul(target, x))
    else:
        losses = g.Sub(x, g.Mul(target, g.Log(g.Add(x, as_type(g, eps, x.type)))))
    if full:
        one = as_type(g, 1.0, x.type)
        counted = g.Max(target, one)
        stirling = g.Add(g.Sub(g.Mul(counted, g.Log(counted)), counted),
                         g.Mul(g.Log(g.Mul(counted, 2 * math.pi)), 0.5))  # fmt: skip
        zero = as_type(g, 0.0, x.type)
        losses = g.Add(losses, g.Where(g.Greater(target, one), stirling, zero))
    return combine(g, losses, reduction)
