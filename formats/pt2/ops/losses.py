"""Losses, of which a program may compute one."""

from __future__ import annotations

from serde.errors import require

from ..promotion import as_type, promote
from ..rules import reads

REDUCTIONS = ("none", "mean", "sum")
LOWEST = -100.0  # of logarithms in a cross entropy


def combine(g, losses, reduction):
    """The losses of all elements, their mean, or their sum."""
    if reduction == 0 or losses.rank == 0:
        return g.Identity(losses)
    return (g.ReduceMean if reduction == 1 else g.ReduceSum)(losses, keepdims=0)


@reads("mse_loss")
def read_squares(g, x, target, reduction):
    difference = g.Sub(*promote(g, x, target))
    return combine(g, g.Mul(difference, difference), reduction)


@reads("l1_loss")
def read_differences(g, x, target, reduction):
    return combine(g, g.Abs(g.Sub(*promote(g, x, target))), reduction)


@reads("huber_loss")
def read_huber(g, x, target, reduction, delta):
    """Squares of small differences, and multiples of large ones; of the type of the first."""
    a, b = promote(g, x, target)
    return g.cast(combine(g, round_corner(g, a, b, delta), reduction), x.type)


@reads("smooth_l1_loss")
def read_smooth(g, x, target, reduction, beta):
    if beta == 0:
        return read_differences(g, x, target, reduction)
    x, target = promote(g, x, target)
    losses = round_corner(g, x, target, beta)
    return combine(g, g.Div(losses, as_type(g, beta, x.type)), reduction)


def round_corner(g, x, target, width):
    size = g.Abs(g.Sub(x, target))
    half, width = (as_type(g, n, x.type) for n in (0.5, width))
    near = g.Mul(half, g.Mul(size, size))
    return g.Where(g.Less(size, width), near, g.Mul(width, g.Sub(size, g.Mul(half, width))))


@reads("binary_cross_entropy")
def read_binary(g, x, target, weight, reduction):
    low, one = (as_type(g, n, x.type) for n in (LOWEST, 1.0))
    yes, no = (g.Max(g.Log(p), low) for p in (x, g.Sub(one, x)))
    losses = g.Neg(g.Add(g.Mul(target, yes), g.Mul(g.Sub(one, target), no)))
    return combine(g, losses if weight is None else g.Mul(losses, weight), reduction)


@reads("binary_cross_entropy_with_logits")
def read_binary_logits(g, x, target, weight, positive, reduction):
    one = as_type(g, 1.0, x.type)
    yes, no = g.Softplus(g.Neg(x)), g.Softplus(x)
    yes = g.Mul(target, yes)
    yes = yes if positive is None else g.Mul(yes, positive)
    losses = g.Add(yes, g.Mul(g.Sub(one, target), no))
    return combine(g, losses if weight is None else g.Mul(losses, weight), reduction)


@reads("kl_div")
def read_divergence(g, x, target, reduction, *, log_target):
    if log_target:
        return combine(g, g.Mul(g.Exp(target), g.Sub(target, x)), reduction)
    zero = as_type(g, 0.0, x.type)
    losses = g.Sub(g.Mul(target, g.Log(target)), g.Mul(target, x))
    return combine(g, g.Where(g.Equal(target, zero), zero, losses), reduction)


@reads("cross_entropy_loss")
def read_cross_entropy(g, x, target, weight, reduction, ignored, smoothing):
    """Classes are along the second axis; targets are their numbers, or how likely each is."""
    if target.type.kind == "f":
        return spread_entropy(g, x, target, weight, reduction, smoothing)
    require(smoothing == 0, f"label_smoothing={smoothing}: compute the loss outside of the module")
    return classify("SoftmaxCrossEntropyLoss", g, x, target, weight, reduction, ignored)


def spread_entropy(g, x, target, weight, reduction, smoothing):
    """The cross entropy of probabilities; their mean is that over all but the classes."""
    axis = 1 if x.rank > 1 else 0
    if smoothing:
        count = g.cast(g.shape_from([g.size_of(x, axis)]), x.type)
        share = g.Div(g.const(smoothing, x.type), count)
        target = g.Add(g.Mul(target, 1 - smoothing), share)
    likely = g.LogSoftmax(x, axis=axis)
    if weight is not None:
        likely = g.Mul(likely, g.Reshape(weight, [-1, *[1] * (x.rank - axis - 1)]))
    losses = g.Neg(g.ReduceSum(g.Mul(likely, target), [axis], keepdims=0))
    return combine(g, losses, reduction)


@reads("nll_loss_nd", "nll_loss", "nll_loss2d")
def read_likelihood(g, x, target, weight, reduction, ignored):
    return classify("NegativeLogLikelihoodLoss", g, x, target, weight, reduction, ignored)


def classify(op, g, x, target, weight, reduction, ignored):
    require(target.type.kind != "f", "targets that are probabilities: compute the loss outside of "
            "the module")  # fmt: skip
    if x.rank == 1:
        x, target = g.Unsqueeze(x, [0]), g.Unsqueeze(target, [0])
        y = classify(op, g, x, target, weight, reduction, ignored)
        return y if reduction else g.Squeeze(y, [0])
    return g[op](x, target, weight, ignore_index=ignored, reduction=REDUCTIONS[reduction])
