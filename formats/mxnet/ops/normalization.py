"""Normalization layers."""

from __future__ import annotations

import numpy as np

from serde.decompositions.expressions import multiply_add, on_axis
from serde.errors import require
from serde.ir.geometry import may_be_same
from serde.ir.graph import Value

from ..rules import reads
from .deconvolution_phases import was_turned

STATISTICS = ("momentum", "use_global_stats")
CALIBRATION = {"min_calib_range": ("None",), "max_calib_range": ("None",)}


@reads(
    "BatchNorm",
    ignore=(*STATISTICS, "cudnn_off"),
    only={"output_mean_var": (False,), **CALIBRATION},
)
def read_batch_norm(
    g, x, gamma, beta, mean, var, *, eps=1e-3, fix_gamma=True, axis=1, requantized=False
):
    """``fix_gamma`` means a scale of 1, whatever is stored."""
    require(x.rank >= 2, "BatchNorm of a tensor with fewer than two axes")
    channels, stored = x.known[axis % x.rank], gamma.known[0]
    require(
        may_be_same(channels, stored), f"parameters for {stored} channels, and there are {channels}"
    )
    gamma = ones(g, gamma) if fix_gamma else gamma
    if requantized and axis == 1 and was_turned(g, x):
        factor = g.Div(gamma, g.Sqrt(g.Add(var, eps)))
        factor, beta, mean = (g.Reshape(v, [-1, 1, 1]) for v in (factor, beta, mean))
        return multiply_add(g, g.Sub(x, mean), factor, beta)  # as oneDNN does of blocks of channels

    def apply(x):
        return g.BatchNormalization(x, gamma, beta, mean, var, epsilon=eps)

    return on_axis(g, x, axis % x.rank, 1, apply)


@reads(
    "BatchNorm_v1", "_contrib_SyncBatchNorm",
    ignore=(*STATISTICS, "ndev", "key"), only={"output_mean_var": (False,)},
)  # fmt: skip
def read_plain_batch_norm(g, x, gamma, beta, mean, var, *, eps=1e-3, fix_gamma=True):
    return read_batch_norm(g, x, gamma, beta, mean, var, eps=eps, fix_gamma=fix_gamma)


@reads(
    "_contrib_BatchNormWithReLU",
    ignore=(*STATISTICS, "cudnn_off"),
    only={"output_mean_var": (False,), **CALIBRATION},
)
def read_batch_norm_relu(g, x, gamma, beta, mean, var, *, eps=1e-3, fix_gamma=True, axis=1):
    y = read_batch_norm(g, x, gamma, beta, mean, var, eps=eps, fix_gamma=fix_gamma, axis=axis)
    return g.Relu(y)


def ones(g, like: Value):
    return g.const(np.ones(like.dims, like.type.numpy), name="ones")


@reads("LayerNorm", only={"output_mean_var": (False,)})
def read_layer_norm(g, x, gamma, beta, *, axis=-1, eps=1e-5):
    last = x.rank - 1
    if x.known[axis] == 0:
        return x  # there is nothing to normalize, which runtimes refuse

    def apply(x):
        return g.LayerNormalization(x, gamma, beta, axis=last, epsilon=eps)

    return on_axis(g, x, axis % x.rank, last, apply)


@reads("GroupNorm", only={"output_mean_var": (False,)})
def read_group_norm(g, x, gamma, beta, *, num_groups=1, eps=1e-5):
    """MXNet 1 has a scale and a shift for each group, MXNet 2 for each channel."""
    channels = x.known[1]
    require(isinstance(channels, int), "needs to know the number of channels")
    spread = [per_channel(g, v, channels) for v in (gamma, beta)]
    return g.GroupNormalization(x, *spread, num_groups=num_groups, epsilon=eps)


def per_channel(g, v: Value, channels: int):
    (groups,) = v.dims
    wide = g.Expand(g.Unsqueeze(v, [1]), [groups, channels // groups])
    return v if groups == channels else g.Reshape(wide, [channels])


@reads("InstanceNorm")
def read_instance_norm(g, x, gamma, beta, *, eps=1e-3):
    return g.InstanceNormalization(x, gamma, beta, epsilon=eps)


@reads("LRN")
def read_lrn(g, x, *, nsize: int, alpha=1e-4, beta=0.75, knorm=2.0):
    require(nsize > 0 and nsize % 2 == 1, f"nsize={nsize}: runtimes take odd sizes only")
    require(
        alpha > 0 and beta > 0, f"alpha={alpha} and beta={beta}, both of which are to be above 0"
    )
    return g.LRN(x, size=nsize, alpha=alpha, beta=beta, bias=knorm)
