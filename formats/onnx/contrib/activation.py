"""Activation functions, and those that ONNX Runtime fuses into another operator."""

from __future__ import annotations

from typing import Any

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


def activate(g: Any, x: Value, activation: str, params: tuple[float | None, ...]) -> Value:
    """``x`` behind a fused activation; ``params`` are its parameters as far as they are given."""
    if activation in ("", "Identity"):
        return x
    require(activation in PARAMETERS, f"no support for activation={activation!r}")
    if activation == "Clip":
        given = [p for p in params if p is not None]
        require(len(given) == LIMITS, "the fused Clip has no two bounds")
        return g.Clip(x, *given)  # type: ignore[no-any-return]
    found = dict(PARAMETERS[activation])
    found |= {n: p for n, p in zip(found, params, strict=False) if p is not None}
    return g[activation](x, **found)  # type: ignore[no-any-return]


def quick_gelu(g: Any, x: Value, alpha: float) -> Value:
    """``x * sigmoid(alpha * x)``."""
    return g.Mul(x, g.Sigmoid(x if alpha == 1 else g.Mul(x, alpha)))  # type: ignore[no-any-return]


@reads("Gelu")
def read_gelu(g: Any, x: Value) -> Value:
    return g.Gelu(x)  # type: ignore[no-any-return]


@reads("BiasGelu")
def read_bias_gelu(g: Any, a: Value, b: Value) -> Value:
    return g.Gelu(g.Add(a, b))  # type: ignore[no-any-return]


@reads("FastGelu")
def read_fast_gelu(g: Any, x: Value, bias: Value | None = None) -> Value:
    return g.Gelu(x if bias is None else g.Add(x, bias), approximate=TANH_GELU)  # type: ignore


@reads("GemmFastGelu")
def read_gemm_fast_gelu(g: Any, x: Value, w: Value, bias: Value | None = None) -> Value:
    return read_fast_gelu(g, g.MatMul(x, w), bias)  # type: ignore[no-any-return]


@reads("QuickGelu")
def read_quick_gelu(g: Any, x: Value, *, alpha: float = 1.702) -> Value:
    return quick_gelu(g, x, alpha)


@reads("ScaledSiLU")
def read_scaled_silu(g: Any, x: Value, scale: Value | None = None, *, alpha: float = 1.0) -> Value:
    require(scale is None or scale.dtype is x.dtype, "a scale of another element type")
    scaled = g.Mul(x, alpha if scale is None else g.Reshape(scale, [1]))
    return g.Mul(scaled, g.Sigmoid(scaled))  # type: ignore[no-any-return]


@reads("BiasSplitGelu")
def read_bias_split_gelu(g: Any, x: Value, bias: Value) -> Value:
    left, right = g.Split(g.Add(x, bias), axis=-1, num_outputs=2, outputs=2)
    return g.Mul(left, g.Gelu(right))  # type: ignore[no-any-return]


@reads("BiasAdd")
def read_bias_add(g: Any, x: Value, bias: Value, skip: Value) -> Value:
    return g.Add(g.Add(x, bias), skip)  # type: ignore[no-any-return]


@reads("BiasSoftmax")
def read_bias_softmax(
    g: Any, data: Value, bias: Value, *, axis: int = 1, is_inner_broadcast: int
) -> Value:  # fmt: skip
    if not is_inner_broadcast:
        require(data.shape is not None and data.shape == bias.shape, "an outer broadcast of bias")
    total = g.Add(data, bias)
    rows = g.Softmax(g.Flatten(total, axis=axis % data.rank), axis=-1)
    return g.Reshape(rows, g.Shape(total))  # type: ignore[no-any-return]


@reads("BiasDropout")
def read_bias_dropout(
    g: Any, data: Value, bias: Value, residual: Value | None = None, ratio: Value | None = None,
    training_mode: Value | None = None, *, seed: int = 0,
) -> tuple[Value, Value]:  # fmt: skip
    is_trained = training_mode is not None and (
        training_mode.tensor is None or bool(training_mode.array().any())
    )
    require(not is_trained, "dropout of a model that is trained")
    total, mask = g.Dropout(g.Add(data, bias), ratio, outputs=2)
    return (total if residual is None else g.Add(total, residual)), mask
