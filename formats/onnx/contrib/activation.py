"""Activation functions, and those that ONNX Runtime fuses into another operator."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import Value

from .table import reads

TANH_GELU = "tanh"
# Fused activations by name: the attributes that their parameters are, in order, with defaults.
PARAMETERS: dict[str, dict[str, float]] = {
    "Relu": {}, "Tanh": {}, "Sigmoid": {}, "Softplus": {}, "Softsign": {},
    "LeakyRelu": {"alpha": 0.01}, "Elu": {"alpha": 1.0}, "ThresholdedRelu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5}, "Clip": {},
}  # fmt: skip
LIMITS = 2  # parameters of Clip: its bounds


def activate(g, x: Value, activation: str, params: tuple[float | None, ...]):
    """``x`` behind a fused activation; ``params`` are its parameters as far as they are given."""
    if activation in ("", "Identity"):
        return x
    require(activation in PARAMETERS, f"no support for activation={activation!r}")
    if activation == "Clip":
        bounds = [p for p in params if p is not None]
        require(len(bounds) == LIMITS, "the fused Clip has no two bounds")
        return g.Clip(x, *bounds)
    attrs = dict(PARAMETERS[activation])
    attrs |= {n: p for n, p in zip(attrs, params, strict=False) if p is not None}
    return g[activation](x, **attrs)


def quick_gelu(g, x: Value, alpha: float):
    """``x * sigmoid(alpha * x)``."""
    return g.Mul(x, g.Sigmoid(x if alpha == 1 else g.Mul(x, alpha)))


@reads("Gelu")
def read_gelu(g, x):
    return g.Gelu(x)


@reads("BiasGelu")
def read_bias_gelu(g, a, b):
    return g.Gelu(g.Add(a, b))


@reads("FastGelu")
def read_fast_gelu(g, x, bias=None):
    return g.Gelu(x if bias is None else g.Add(x, bias), approximate=TANH_GELU)


@reads("GemmFastGelu")
def read_gemm_fast_gelu(g, x, w, bias=None):
    return read_fast_gelu(g, g.MatMul(x, w), bias)


@reads("QuickGelu")
def read_quick_gelu(g, x, *, alpha=1.702):
    return quick_gelu(g, x, alpha)


@reads("ScaledSiLU")
def read_scaled_silu(g, x, scale=None, *, alpha=1.0):
    require(scale is None or scale.dtype is x.dtype, "a scale of another element type")
    scaled = g.Mul(x, alpha if scale is None else g.Reshape(scale, [1]))
    return g.Mul(scaled, g.Sigmoid(scaled))


@reads("BiasSplitGelu")
def read_bias_split_gelu(g, x, bias):
    left, right = g.Split(g.Add(x, bias), axis=-1, num_outputs=2, outputs=2)
    return g.Mul(left, g.Gelu(right))


@reads("BiasAdd")
def read_bias_add(g, x, bias, skip):
    return g.Add(g.Add(x, bias), skip)


@reads("BiasSoftmax")
def read_bias_softmax(g, data, bias, *, axis=1, is_inner_broadcast: int):
    if not is_inner_broadcast:
        require(data.shape is not None and data.shape == bias.shape, "an outer broadcast of bias")
    total = g.Add(data, bias)
    rows = g.Softmax(g.Flatten(total, axis=axis % data.rank), axis=-1)
    return g.Reshape(rows, g.Shape(total))


@reads("BiasDropout")
def read_bias_dropout(g, data, bias, residual=None, ratio=None, training_mode=None, *, seed=0):
    is_trained = training_mode is not None and (
        training_mode.tensor is None or bool(training_mode.array().any())
    )
    require(not is_trained, "dropout of a model that is trained")
    total, mask = g.Dropout(g.Add(data, bias), ratio, outputs=2)
    return (total if residual is None else g.Add(total, residual)), mask
