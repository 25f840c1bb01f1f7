"""Normalisations."""

from __future__ import annotations

import numpy as np

from serde.decompositions import shared
from serde.errors import require

from ..target import cast, writes
from .recast import recasts

recasts("BatchNormalization")(shared.batch_norm)


@writes("BatchNormalization", ignore=("momentum",), only={"training_mode": (0,)})
def write_batch_norm(r, x, scale, bias, mean, var, *, epsilon):
    require(x.rank >= 2, "a BatchNormalization of a tensor without channels")
    same = [cast(r, v, x.type) for v in (scale, bias, mean, var)]
    return r.nn.batch_norm(x, *same, axis=1, epsilon=epsilon, outputs=3)[0]


@writes("InstanceNormalization")
def write_instance_norm(r, x, scale, bias, *, epsilon):
    return r.nn.instance_norm(x, scale, bias, axis=1, epsilon=epsilon)


@recasts("LayerNormalization")
def recast_layer_norm(g, x, scale, bias=None, *, axis, epsilon, stash_type, outputs: int = 1):
    """Over the last axis and with a bias as it is, otherwise spelled out."""
    last = axis % x.rank == x.rank - 1 and scale.rank == 1 and scale.known == x.known[-1:]
    if last and bias is not None and outputs == 1 and x.type.bits == 32:
        return None
    attrs = {"axis": axis, "epsilon": epsilon, "stash_type": stash_type}
    return g.decompose("LayerNormalization", 17, x, scale, bias, outputs=outputs, **attrs)


@writes("LayerNormalization", ignore=("stash_type",))
def write_layer_norm(r, x, scale, bias=None, *, axis, epsilon):
    return r.nn.layer_norm(x, scale, bias, axis=axis, epsilon=epsilon)


@recasts("LRN")
def recast_lrn(g, x, *, size, alpha, beta, bias):
    """Relay's windows are odd, and it has images only."""
    if size % 2 and x.rank == 4 and x.is_static:
        return None
    return shared.local_response(g, x, size=size, alpha=alpha, beta=beta, bias=bias)


@writes("LRN")
def write_lrn(r, x, *, size, alpha, beta, bias):
    return r.nn.lrn(x, size=size, axis=1, alpha=alpha, beta=beta, bias=bias)


recasts("LpNormalization")(shared.lp_norm)


@recasts("Dropout")
def recast_dropout(g, x, ratio=None, training=None, *, seed=None, outputs: int = 1):
    """At inference nothing is dropped, and the mask says so."""
    off = training is None or (training.tensor is not None and not training.array().any())
    require(off, "a Dropout that draws which elements it drops")
    y = g.Identity(x)
    if outputs == 1:
        return y
    return y, g.Expand(g.const(np.array(True)), g.Shape(x))
