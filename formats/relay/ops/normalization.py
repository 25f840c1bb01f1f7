"""Normalizations, as they are in inference."""

from __future__ import annotations

from serde.decompositions.expressions import full_like, on_axis, reshape, scalar, sizes_of, times
from serde.errors import require
from serde.ir.geometry import axis_of, moved
from serde.ir.graph import Value

from ..rules import reads
from .linear import along


def scales(g, gamma: Value, beta: Value, scale: bool, center: bool):
    """Factors and terms; those that are switched off are 1 and 0."""
    return (gamma if scale else full_like(g, gamma, 1), beta if center else full_like(g, beta, 0))


@reads("nn.batch_norm")
def read_batch_norm(g, x, gamma, beta, mean, var, *, axis=1, epsilon=1e-5, center=True, scale=True):
    """The statistics are returned as they are."""
    axis = axis_of(axis, x.rank)
    gamma, beta = scales(g, gamma, beta, scale, center)
    if axis == 1:
        return g.BatchNormalization(x, gamma, beta, mean, var, epsilon=epsilon), mean, var
    factor = g.Div(gamma, g.Sqrt(g.Add(var, scalar(g, epsilon, var))))
    term = g.Sub(beta, g.Mul(mean, factor))
    factor, term = (along(g, v, axis, x.rank) for v in (factor, term))
    return g.Add(g.Mul(x, factor), term), mean, var


@reads("nn.layer_norm")
def read_layer_norm(g, x, gamma, beta, *, axis=-1, epsilon=1e-5, center=True, scale=True):
    axis, last = axis_of(axis, x.rank), x.rank - 1
    gamma, beta = scales(g, gamma, beta, scale, center)

    def apply(x):
        return g.LayerNormalization(x, gamma, beta, axis=last, epsilon=epsilon)

    return on_axis(g, x, axis, last, apply)


@reads("nn.instance_norm")
def read_instance_norm(g, x, gamma, beta, *, axis=1, epsilon=1e-5, center=True, scale=True):
    axis = axis_of(axis, x.rank)
    require(axis > 0, f"axis={axis}: the axis of the batch")
    gamma, beta = scales(g, gamma, beta, scale, center)
    order = moved(x.rank, axis, 1)
    back = tuple(order.index(a) for a in range(x.rank))
    y = g.InstanceNormalization(g.Transpose(x, perm=order), gamma, beta, epsilon=epsilon)
    return g.Transpose(y, perm=back)


@reads("nn.group_norm")
def read_group_norm(
    g, x, gamma, beta, *, num_groups=0, axis=1, epsilon=1e-5, center=True, scale=True
):
    """The axes before the channels are kept apart, not the first one only."""
    axis = axis_of(axis, x.rank)
    require(axis > 0, f"axis={axis}: the axis of the batch")
    gamma, beta = scales(g, gamma, beta, scale, center)
    sizes = sizes_of(g, x)
    flat = x if axis == 1 else reshape(g, x, [times(g, sizes[:axis]), *sizes[axis:]])
    y = g.GroupNormalization(flat, gamma, beta, num_groups=num_groups, epsilon=epsilon)
    return y if axis == 1 else reshape(g, y, sizes)


@reads("nn.lrn")
def read_lrn(g, x, *, size=5, axis=1, bias=2.0, alpha=0.0001, beta=0.75):
    def apply(x):
        return g.LRN(x, size=size, bias=bias, alpha=alpha, beta=beta)

    return on_axis(g, x, axis_of(axis, x.rank), 1, apply)
