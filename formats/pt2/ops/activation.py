"""Activations and softmax."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType

from ..promotion import as_type
from ..rules import reads

PLAIN = {"selu": "Selu", "mish": "Mish", "hardswish": "HardSwish", "softsign": "Softsign"}


@reads.for_each(PLAIN)
def read_plain(op, g, x):
    return g[op](x)


@reads("silu")
def read_silu(g, x):
    return g.Mul(x, g.Sigmoid(x))


@reads("gelu")
def read_gelu(g, x, *, approximate):
    return g.Gelu(x, approximate=approximate)


@reads("relu6")
def read_relu6(g, x):
    return read_hardtanh(g, x, 0, 6)


@reads("hardtanh")
def read_hardtanh(g, x, low, high):
    return g.Clip(x, as_type(g, low, x.type), as_type(g, high, x.type))


@reads("hardsigmoid")
def read_hardsigmoid(g, x):
    return g.HardSigmoid(x, alpha=1 / 6, beta=0.5)


@reads("leaky_relu")
def read_leaky_relu(g, x, slope):
    return g.LeakyRelu(x, alpha=float(slope))


@reads("elu")
def read_elu(g, x, alpha, scale, input_scale):
    zero = as_type(g, 0.0, x.type)
    if input_scale == 1:
        y = g.Elu(x, alpha=float(alpha))
    else:
        curve = g.Mul(g.Sub(g.Exp(g.Mul(x, as_type(g, input_scale, x.type))), 1.0),
                      as_type(g, alpha, x.type))  # fmt: skip
        y = g.Where(g.Greater(x, zero), x, curve)
    return y if scale == 1 else g.Mul(y, as_type(g, scale, x.type))


@reads("celu")
def read_celu(g, x, alpha):
    return g.Celu(x, alpha=float(alpha))


@reads("prelu", "_prelu_kernel")
def read_prelu(g, x, w):
    if w.rank == 1 and x.rank > 2 and w.shape != (1,):
        w = g.Unsqueeze(w, list(range(1, x.rank - 1)))
    return g.PRelu(x, w)


@reads("softplus")
def read_softplus(g, x, beta, threshold):
    scaled = x if beta == 1 else g.Mul(x, as_type(g, beta, x.type))
    y = g.Softplus(scaled)
    y = y if beta == 1 else g.Div(y, as_type(g, beta, x.type))
    return g.Where(g.Greater(scaled, as_type(g, threshold, x.type)), x, y)


@reads("log_sigmoid", "log_sigmoid_forward")
def read_log_sigmoid(g, x):
    return g.Neg(g.Softplus(g.Neg(x)))


@reads("hardshrink")
def read_hardshrink(g, x, lambd):
    inside = g.LessOrEqual(g.Abs(x), as_type(g, lambd, x.type))
    return g.Where(inside, as_type(g, 0.0, x.type), x)


@reads("softshrink")
def read_softshrink(g, x, lambd):
    return g.Shrink(x, lambd=float(lambd), bias=float(lambd))


@reads("threshold")
def read_threshold(g, x, threshold, value):
    return g.Where(g.Greater(x, as_type(g, threshold, x.type)), x, as_type(g, value, x.type))


@reads("glu")
def read_glu(g, x, dim):
    a, b = g.Split(x, num_outputs=2, axis=axis_of(dim, x.rank), outputs=2)
    return g.Mul(a, g.Sigmoid(b))


@reads.for_each({"softmax.int": "Softmax", "log_softmax.int": "LogSoftmax"})
def read_softmax(op, g, x, dim, dtype):
    x = x if dtype is None else g.cast(x, dtype)
    return along(g, op, x, dim)


@reads.for_each({"_softmax": "Softmax", "_log_softmax": "LogSoftmax"})
def read_core_softmax(op, g, x, dim, half_to_float):
    return along(g, op, g.cast(x, DType.FLOAT32) if half_to_float else x, dim)


def along(g, op, x, dim):
    """An operator along an axis, of a number too."""
    if x.rank == 0:
        return g.Squeeze(g[op](g.Unsqueeze(x, [0]), axis=0), [0])
    return g[op](x, axis=axis_of(dim, x.rank))


@reads("dropout")
def read_dropout(g, x, p, train):
    if not g.for_training and not train:
        return g.Identity(x)
    require(p == 0 or not train or g.for_training, f"Dropout(p={p}) draws random numbers: call "
            "eval() before the export")  # fmt: skip
    return g.Dropout(x, as_type(g, float(p), DType.FLOAT32))


@reads.for_each({"feature_dropout": "FeatureDropout", "alpha_dropout": "AlphaDropout"})
def read_composite_dropout(op, g, x, p, train):
    if not g.for_training or (op == "FeatureDropout" and x.rank < 3):
        return read_dropout(g, x, p, train)
    return g.composite(op, (x,), {"rate": float(p)})


@reads("native_dropout")
def read_native_dropout(g, x, p, train):
    require(not train or p == 0, f"Dropout(p={p}) draws random numbers: call eval() before the "
            "export")  # fmt: skip
    return g.Identity(x), g.full_like(x, 1, DType.BOOL)
