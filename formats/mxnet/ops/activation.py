"""Activations."""

from __future__ import annotations

from serde.decompositions.expressions import cast, lowest, scalar, size_of, steps
from serde.errors import require
from serde.ir.geometry import axis_of, may_be_same
from serde.ir.graph import DType, Value

from ..rules import dtype_of, reads

ACTIVATIONS = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "softrelu": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
}


@reads("Activation")
def read_activation(g, x, *, act_type: str):
    require(act_type in ACTIVATIONS, f"act_type={act_type!r} is unknown")
    return g[ACTIVATIONS[act_type]](x)


@reads("LeakyReLU")
def read_leaky_relu(
    g, x, gamma=None, *, act_type="leaky", slope=0.25, lower_bound=0.125, upper_bound=0.334
):
    """At inference rrelu has the mean of its bounds for a slope."""
    if act_type == "prelu":
        require(gamma is not None, "prelu has no gamma")
        return g.PRelu(x, per_channel(g, gamma, x))
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


def per_channel(g, slope: Value, x: Value):
    """A slope of one number a channel, shaped to broadcast along axis 1."""
    require(slope.rank == 1, f"gamma has {slope.rank} axes")
    count, channels = slope.known[0], x.known[min(1, x.rank - 1)]
    fits = count == 1 or may_be_same(count, channels)
    require(fits, f"gamma of {count} for {channels} channels")
    if count == 1 or x.rank <= 2:
        return slope
    return g.Unsqueeze(slope, list(range(1, x.rank - 1)))


@reads("hard_sigmoid")
def read_hard_sigmoid(g, x, *, alpha=0.2, beta=0.5):
    return g.HardSigmoid(x, alpha=alpha, beta=beta)


def scaled(g, x, temperature, dtype):
    """The operand of a softmax: in the type asked for, divided by its temperature."""
    x = x if dtype is None else cast(g, x, dtype_of(dtype))
    return x if temperature in (None, 1.0) else g.Div(x, temperature)


def masked(g, x: Value, length: Value, axis: int):
    """Softmax over the first ``length`` elements along ``axis``; 0 behind them."""
    axis = axis_of(axis, x.rank)
    place = g.Unsqueeze(steps(g, size_of(g, x, axis)), list(range(1, x.rank - axis)))
    inside = g.Less(place, g.Unsqueeze(cast(g, length, DType.INT64), [axis]))
    kept = g.Where(inside, x, scalar(g, lowest(x), x))
    return g.Where(inside, g.Softmax(kept, axis=axis), scalar(g, 0, x))


@reads("softmax")
def read_softmax(
    g, x, length=None, *, axis=-1, temperature: float | None = None, dtype: str | None = None,
    use_length: bool | None = False,
):  # fmt: skip
    x = scaled(g, x, temperature, dtype)
    return masked(g, x, length, axis) if use_length else g.Softmax(x, axis=axis)


@reads("softmin", only={"use_length": (False,)})
def read_softmin(g, x, *, axis=-1, temperature: float | None = None, dtype: str | None = None):
    return g.Softmax(g.Neg(scaled(g, x, temperature, dtype)), axis=axis)


@reads("log_softmax", only={"use_length": (False,)})
def read_log_softmax(g, x, *, axis=-1, temperature: float | None = None, dtype: str | None = None):
    return g.LogSoftmax(scaled(g, x, temperature, dtype), axis=axis)


@reads("SoftmaxActivation")
def read_softmax_activation(g, x, *, mode="instance"):
    """``channel`` normalises over axis 1, ``instance`` over the last axis."""
    require(mode in ("channel", "instance"), f"mode={mode!r} is unknown")
    return g.Softmax(x, axis=1 if mode == "channel" else -1)
