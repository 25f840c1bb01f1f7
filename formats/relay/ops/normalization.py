"""Normalizations, as they are in inference."""

from __future__ import annotations

from functools import partial

from serde.decompositions.normalization import drop_nothing, local_response, train_batch_norm
from serde.errors import require
from serde.ir.geometry import Ints, axes_of, axis_of, move_axis_perm
from serde.ir.graph import DType, Value

from ..rules import reads
from ..target import emit_cast, legalizations, writes
from .linear import align_to_axis


def disable_scale_and_center(g, gamma: Value, beta: Value, scale: bool, center: bool):
    """Factors and terms; those that are switched off are 1 and 0."""
    return (gamma if scale else g.full_like(gamma, 1), beta if center else g.full_like(beta, 0))


@reads("nn.batch_norm")
def read_batch_norm(g, x, gamma, beta, mean, var, *, axis=1, epsilon=1e-5, center=True, scale=True):
    """The statistics are returned as they are."""
    axis = axis_of(axis, x.rank)
    gamma, beta = disable_scale_and_center(g, gamma, beta, scale, center)
    if axis == 1:
        return g.BatchNormalization(x, gamma, beta, mean, var, epsilon=epsilon), mean, var
    factor = g.Div(gamma, g.Sqrt(g.Add(var, g.scalar(epsilon, var))))
    term = g.Sub(beta, g.Mul(mean, factor))
    factor, term = (align_to_axis(g, v, axis, x.rank) for v in (factor, term))
    return g.Add(g.Mul(x, factor), term), mean, var


@reads("nn.layer_norm")
def read_layer_norm(g, x, gamma, beta, *, axis=-1, epsilon=1e-5, center=True, scale=True):
    axis, last = axis_of(axis, x.rank), x.rank - 1
    gamma, beta = disable_scale_and_center(g, gamma, beta, scale, center)

    return g.apply_on_axis(
        x, axis, last, lambda x: g.LayerNormalization(x, gamma, beta, axis=last, epsilon=epsilon)
    )


@reads("nn.instance_norm")
def read_instance_norm(g, x, gamma, beta, *, axis=1, epsilon=1e-5, center=True, scale=True):
    axis = axis_of(axis, x.rank)
    require(axis > 0, f"axis={axis}: the axis of the batch")
    gamma, beta = disable_scale_and_center(g, gamma, beta, scale, center)
    order = move_axis_perm(x.rank, axis, 1)
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
    gamma, beta = disable_scale_and_center(g, gamma, beta, scale, center)
    sizes = g.sizes_of(x)
    flat = x if axis == 1 else g.reshape(x, [g.multiply_sizes(sizes[:axis]), *sizes[axis:]])
    y = g.GroupNormalization(flat, gamma, beta, num_groups=num_groups, epsilon=epsilon)
    return y if axis == 1 else g.reshape(y, sizes)


@reads("nn.lrn")
def read_lrn(g, x, *, size=5, axis=1, bias=2.0, alpha=0.0001, beta=0.75):
    normalize = partial(g.LRN, size=size, bias=bias, alpha=alpha, beta=beta)
    return g.apply_on_axis(x, axis_of(axis, x.rank), 1, normalize)


@reads("nn.l2_normalize")
def read_l2_normalize(g, x, *, eps: float, axis: Ints | None = None):
    axes = axes_of(axis if axis is not None else range(x.rank), x.rank)

    def apply(g, x):
        squares = g.ReduceSum(g.Mul(x, x), axes, keepdims=1)
        return g.Div(x, g.Sqrt(g.Max(squares, g.scalar(eps, x))))

    return g.compute_in_float32(apply, x)


@reads("nn.dropout")
def read_dropout(g, x, *, rate=0.5):
    """Nothing is dropped in inference; the mask keeps everything."""
    kept = g.Dropout(x, g.const(rate, DType.FLOAT32)) if g.for_training else x
    return kept, g.Expand(g.const(1, x.type), g.Shape(x))


@legalizations("BatchNormalization")
def legalize_batch_norm(g, *operands, epsilon, momentum, training_mode, outputs: int = 1):
    if not training_mode:
        return None
    return train_batch_norm(g, *operands, epsilon=epsilon, momentum=momentum, outputs=outputs)


@writes("BatchNormalization", ignore=("momentum",), only={"training_mode": (0,)})
def write_batch_norm(r, x, scale, bias, mean, var, *, epsilon):
    require(x.rank >= 2, "a BatchNormalization of a tensor without channels")
    same = [emit_cast(r, v, x.type) for v in (scale, bias, mean, var)]
    return r.nn.batch_norm(x, *same, axis=1, epsilon=epsilon, outputs=3)[0]


@writes("InstanceNormalization")
def write_instance_norm(r, x, scale, bias, *, epsilon):
    return r.nn.instance_norm(x, scale, bias, axis=1, epsilon=epsilon)


@legalizations("LayerNormalization")
def legalize_layer_norm(g, x, scale, bias=None, *, axis, epsilon, stash_type, outputs: int = 1):
    """Over the last axis and with a bias as it is, otherwise decomposed."""
    last = axis % x.rank == x.rank - 1 and scale.ranked_shape == x.ranked_shape[-1:]
    if last and bias is not None and outputs == 1 and x.type.bits == 32:
        return None
    attrs = {"axis": axis, "epsilon": epsilon, "stash_type": stash_type}
    return g.decompose("LayerNormalization", 17, x, scale, bias, outputs=outputs, **attrs)


@writes("LayerNormalization", ignore=("stash_type",))
def write_layer_norm(r, x, scale, bias=None, *, axis, epsilon):
    return r.nn.layer_norm(x, scale, bias, axis=axis, epsilon=epsilon)


@legalizations("LRN")
def legalize_lrn(g, x, *, size, alpha, beta, bias):
    """Relay's windows are odd, and it has images only."""
    if size % 2 and x.rank == 4 and x.is_static:
        return None
    return local_response(g, x, size=size, alpha=alpha, beta=beta, bias=bias)


@writes("LRN")
def write_lrn(r, x, *, size, alpha, beta, bias):
    return r.nn.lrn(x, size=size, axis=1, alpha=alpha, beta=beta, bias=bias)


legalizations("Dropout")(drop_nothing)
