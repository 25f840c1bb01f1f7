"""Activations."""

from __future__ import annotations

from functools import partial

from serde.decompositions.elementwise import prelu, selu
from serde.errors import require
from serde.ir.geometry import may_be_same
from serde.ir.graph import DType, Value

from ..rules import note_old_meaning, reads, reads_between
from ..target import legalizations, writes
from .shared_attributes import with_attributes_of

ACTIVATIONS = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "mish": "Mish",
    "softrelu": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
}


@reads("Activation")
def read_activation(g, x, *, act_type: str):
    if act_type == "log_sigmoid":
        return g.Neg(g.Softplus(g.Neg(x)))
    require(act_type in ACTIVATIONS, f"act_type={act_type!r} is unknown")
    return g[ACTIVATIONS[act_type]](x)


@reads("log_sigmoid")
def read_log_sigmoid(g, x: Value):
    """Minus infinity where the exponential is infinite, unlike the activation."""
    return g.Neg(g.Log(g.Add(g.Exp(g.Neg(x)), 1.0)))


reads("mish")(lambda g, x: g.Mish(x))


@reads("LeakyReLU")
def read_leaky_relu(
    g, x, gamma=None, *, act_type="leaky", slope=0.25, lower_bound=0.125, upper_bound=0.334
):
    """At inference rrelu has the mean of its bounds for a slope."""
    if act_type == "prelu":
        require(gamma is not None, "prelu has no gamma")
        return g.PRelu(x, align_slope(g, gamma, x))
    simple = {
        "leaky": ("LeakyRelu", {"alpha": slope}),
        "elu": ("Elu", {"alpha": slope}),
        "gelu": ("Gelu", {}),
        "rrelu": ("LeakyRelu", {"alpha": (lower_bound + upper_bound) / 2}),
        "selu": ("Selu", {}),
    }
    require(act_type in simple, f"act_type={act_type!r} is unknown")
    op, attrs = simple[act_type]
    return g[op](x, **attrs)


@reads_between(10700, 10800)("LeakyReLU")
@with_attributes_of(read_leaky_relu)
def read_leaky_relu_of_1_7(g, x, gamma=None, *, act_type="leaky", **attrs):
    """The oneDNN in MXNet 1.7 approximates gelu by a hyperbolic tangent."""
    if act_type == "gelu" and x.type is DType.FLOAT32:
        note_old_meaning(g, "1.8")
        return g.Gelu(x, approximate="tanh")
    return read_leaky_relu(g, x, gamma, act_type=act_type, **attrs)


def align_slope(g, slope: Value, x: Value):
    """A slope of one number a channel, shaped to broadcast along axis 1."""
    require(slope.rank == 1, f"gamma has {slope.rank} axes")
    count, channels = slope.ranked_shape[0], x.ranked_shape[min(1, x.rank - 1)]
    fits = count == 1 or may_be_same(count, channels)
    require(fits, f"gamma of {count} for {channels} channels")
    if count == 1 or x.rank <= 2:
        return slope
    return g.Unsqueeze(slope, list(range(1, x.rank - 1)))


@reads("hard_sigmoid")
def read_hard_sigmoid(g, x, *, alpha=0.2, beta=0.5):
    return g.HardSigmoid(x, alpha=alpha, beta=beta)


@writes("Relu")
def write_relu(s, x):
    """MXNet's own is of floats."""
    return s.relu(x) if x.type.kind == "f" else s["_maximum_scalar"](x, scalar=0)


@writes("Softplus")
def write_softplus(s, x):
    return s.Activation(x, act_type="softrelu")


def write_sloped(act_type, s, x, *, alpha):
    return emit_leaky_relu(s, x, act_type=act_type, slope=alpha)


writes("LeakyRelu")(partial(write_sloped, "leaky"))
writes("Elu")(partial(write_sloped, "elu"))


@writes("Selu")
def write_selu(s, x, *, alpha, gamma):
    """With the default constants; others are decomposed."""
    return s.LeakyReLU(x, act_type="selu")


@writes("Gelu", only={"approximate": ("none",)})
def write_gelu(s, x):
    """The library behind MXNet 1.7 takes the approximation by a hyperbolic tangent for it."""
    if not s.release.name.startswith("1.7"):
        return s.LeakyReLU(x, act_type="gelu")
    part = s["_plus_scalar"](s.erf(s["_mul_scalar"](x, scalar=0.5**0.5)), scalar=1.0)
    return s.elemwise_mul(s["_mul_scalar"](x, scalar=0.5), part)


@writes("PRelu")
def write_prelu(s, x, slope):
    """A slope of one number, or one a channel."""
    flat = s.Reshape(slope, shape=(-1,)) if slope.rank != 1 else slope
    return emit_leaky_relu(s, x, flat, act_type="prelu")


@writes("HardSigmoid")
def write_hard_sigmoid(s, x, *, alpha, beta):
    """A line between 0 and 1; MXNet has it as an operator since 1.3."""
    if s.release.has("hard_sigmoid"):
        return s.hard_sigmoid(x, alpha=alpha, beta=beta)
    slope = s["_mul_scalar"](x, scalar=alpha)
    slope.dtype = x.dtype
    return s.clip(s["_plus_scalar"](slope, scalar=beta), a_min=0.0, a_max=1.0)


@writes("HardSwish")
def write_hard_swish(s, x):
    return s.elemwise_mul(x, write_hard_sigmoid(s, x, alpha=1 / 6, beta=0.5))


def emit_leaky_relu(s, x, *slope, **attrs):
    """MXNet before 1.3 ends at a tensor of one axis."""
    if x.rank > 1 or s.release.number >= 10300:
        return s.LeakyReLU(x, *slope, **attrs)
    return s.Reshape(s.LeakyReLU(s.Reshape(x, shape=(1, -1)), *slope, **attrs), shape=(-1,))


@writes("Mish")
def write_mish(s, x):
    return s.elemwise_mul(x, s.tanh(s.Activation(x, act_type="softrelu")))


@legalizations("Relu")
def legalize_relu(g, x):
    """Of integers, the larger of each and 0."""
    return None if x.type.kind == "f" else g.Max(x, g.const(0, x.type))


@legalizations("Selu")
def legalize_selu(g, x, *, alpha, gamma):
    has_mxnet_factors = (round(alpha, 6), round(gamma, 6)) == (1.673263, 1.050701)
    return None if has_mxnet_factors else selu(g, x, alpha=alpha, gamma=gamma)


@legalizations("Gelu")
def legalize_gelu(g, x, *, approximate):
    return None if approximate == "none" else g.decompose("Gelu", 20, x, approximate=approximate)


@legalizations("PRelu")
def legalize_prelu(g, x, slope):
    """MXNet's slope is one number, or one a channel."""
    dims = slope.ranked_shape
    channels = [d for d in dims if d != 1]
    alone = len(channels) == 1 and x.rank - len(dims) + dims.index(channels[0]) == 1
    if slope.is_static and (alone or not channels) and x.type.kind == "f" and dims:
        return None
    return prelu(g, x, slope)
