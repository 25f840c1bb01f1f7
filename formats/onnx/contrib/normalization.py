"""Normalizations, with the additions that ONNX Runtime fuses into them."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value

from .activation import quick_gelu
from .table import apply_in_layout, reads

HALVES = (DType.FLOAT16, DType.BFLOAT16)


def _skip_sum(g, x: Value, skip: Value, bias: Value | None):
    total = g.Add(x, skip)
    return total if bias is None else g.Add(total, bias)


@reads("SkipLayerNormalization")
def read_skip_layer_normalization(g, x, skip, gamma, beta=None, bias=None, *, epsilon=1e-12):
    total = _skip_sum(g, x, skip, bias)
    outputs = g.LayerNormalization(total, gamma, beta, axis=-1, epsilon=epsilon, outputs=3)
    return (*outputs, total)


def rms_normalize(g, x: Value, scale: Value, epsilon: float, axis: int = -1):
    """Root mean square normalization over the axes from ``axis`` on, computed in float32."""
    return g.RMSNormalization(x, scale, axis=axis, epsilon=epsilon, stash_type=1)


def inverse_rms(g, x: Value, epsilon: float, axis: int = -1):
    """The factor that RMSNormalization multiplies by before the scale, in float32."""
    real = x if x.dtype is DType.FLOAT64 else g.cast(x, DType.FLOAT32)
    axes = list(range(axis % x.rank, x.rank)) if axis != -1 else [-1]
    mean = g.ReduceMean(g.Mul(real, real), axes, keepdims=1)
    return g.cast(g.Reciprocal(g.Sqrt(g.Add(mean, epsilon))), DType.FLOAT32)


@reads("SkipSimplifiedLayerNormalization")
def read_skip_rms_normalization(g, x, skip, gamma, bias=None, *, epsilon=1e-12):
    total = _skip_sum(g, x, skip, bias)
    return rms_normalize(g, total, gamma, epsilon), None, inverse_rms(g, total, epsilon), total


@reads("SimplifiedLayerNormalization")
def read_rms_normalization(g, x, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    """The result has the type of the scale; the data may be of a narrower one."""
    require(stash_type == 1, f"no support for stash_type={stash_type}")
    fits = x.dtype is scale.dtype or (x.dtype in HALVES and scale.dtype is DType.FLOAT32)
    require(fits, "a scale of another element type than the data")
    data = g.cast(x, scale.type)
    return rms_normalize(g, data, scale, epsilon, axis), inverse_rms(g, x, epsilon, axis)


@reads("LayerNormalization")
def read_layer_normalization(g, x, scale, b=None, *, axis=-1, epsilon=1e-5, stash_type=1):
    """The operator that ONNX Runtime had before opset 17 defined it."""
    return g.LayerNormalization(
        x, scale, b, axis=axis, epsilon=epsilon, stash_type=stash_type, outputs=3
    )


@reads("GatedRMSNorm")
def read_gated_rms_norm(g, x, scale, gate, *, activation="silu", epsilon=1e-5):
    require(activation in ("silu", "swish", "sigmoid"), f"no support for activation={activation!r}")
    size = scale.static_shape[0]
    require(
        x.ranked_shape[-1] == size or isinstance(x.ranked_shape[-1], int),
        "a dynamic size of the last axis",
    )
    groups = g.Reshape(x, np.array([*[0] * (x.rank - 1), -1, size]))
    normal = g.Reshape(rms_normalize(g, groups, scale, epsilon), g.Shape(x))
    opened = g.Sigmoid(gate) if activation == "sigmoid" else quick_gelu(g, gate, 1.0)
    return g.Mul(normal, opened)


@reads("GroupNorm")
def read_group_norm(
    g, x, gamma, beta, *, activation: int, channels_last=1, epsilon=1e-5, groups: int
):
    def normalize(x: Value):
        return g.GroupNormalization(
            x, g.cast(gamma, x.type), g.cast(beta, x.type), epsilon=epsilon, num_groups=groups,
        )  # fmt: skip

    y = apply_in_layout(g, x, channels_last, normalize)
    return quick_gelu(g, y, 1.0) if activation else y


@reads("GatedAdd")
def read_gated_add(g, x, y, gate, gate_weight=None):
    if gate_weight is not None:
        gate = g.Sigmoid(g.MatMul(gate, gate_weight))
    return g.Add(x, g.Mul(gate, y))
