"""Operators that ONNX Runtime has in the default domain, at opsets whose standard lacks them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import IR_OPSET, Value

from .normalization import read_layer_normalization, read_rms_normalization
from .table import reads_default

BELOW_9, BELOW_10 = range(1, 9), range(1, 10)
# The opsets at which ONNX Runtime has an operator that the standard has not.
OPSETS: Mapping[str, range] = MappingProxyType(
    {
        "Affine": BELOW_10,
        "Crop": BELOW_10,
        "DynamicSlice": BELOW_10,
        "GroupNormalization": range(18, 21),
        "ImageScaler": BELOW_10,
        "LayerNormalization": range(1, 17),
        "MeanVarianceNormalization": BELOW_9,
        "ParametricSoftplus": BELOW_10,
        "Scale": BELOW_10,
        "ScaledTanh": BELOW_10,
        "SimplifiedLayerNormalization": range(1, IR_OPSET + 1),
        "ThresholdedRelu": BELOW_10,
    }
)
UPDATE = MappingProxyType({("reduction", "update"): "none"})
# Values of attributes that ONNX Runtime takes for another one, which the standard has.
SYNONYMS = MappingProxyType({"ScatterElements": UPDATE, "ScatterND": UPDATE})

reads_default("LayerNormalization")(read_layer_normalization)
reads_default("SimplifiedLayerNormalization")(read_rms_normalization)


@reads_default("GroupNormalization")
def read_group_normalization(
    g: Any, x: Value, scale: Value, bias: Value, *, num_groups: int, epsilon: float = 1e-5
) -> Value:
    """Opsets 18 to 20 scale by group; the IR, as opset 21, by channel."""
    require(num_groups > 0, f"num_groups={num_groups}")
    for v in (scale, bias):
        (count,) = v.ranked_shape if v.rank == 1 else (None,)
        fits = v.rank == 1 and (count == num_groups or not isinstance(count, int))
        require(fits, f"{count} numbers for {num_groups} groups")
    each = g.Div(g.Shape(x, start=1, end=2), num_groups)
    shape = g.Concat([num_groups], each, axis=0)
    scale, bias = (g.Reshape(g.Expand(g.Unsqueeze(v, [1]), shape), [-1]) for v in (scale, bias))
    return g.GroupNormalization(  # type: ignore[no-any-return]
        x, scale, bias, num_groups=num_groups, epsilon=epsilon
    )


@reads_default("MeanVarianceNormalization")
def read_mean_variance_normalization(
    g: Any, x: Value, *, across_channels: int = 0, normalize_variance: int = 1
) -> Value:
    """ONNX Runtime takes the mean over these axes at any rank."""
    axes = [a for a in (0, 1, 2, 3) if a < x.rank and (a != 1 or across_channels)]
    if normalize_variance:
        return g.MeanVarianceNormalization(x, axes=axes)  # type: ignore[no-any-return]
    return g.Sub(x, g.ReduceMean(x, axes, keepdims=1))  # type: ignore[no-any-return]


@reads_default("ThresholdedRelu")
def read_thresholded_relu(g: Any, x: Value, *, alpha: float = 1.0) -> Value:
    return g.ThresholdedRelu(x, alpha=alpha)  # type: ignore[no-any-return]


@reads_default("Affine")
def read_affine(g: Any, x: Value, *, alpha: float = 1.0, beta: float = 0.0) -> Value:
    return g.Add(g.Mul(x, alpha), beta)  # type: ignore[no-any-return]


@reads_default("Scale")
def read_scale(g: Any, x: Value, *, scale: float = 1.0) -> Value:
    return g.Mul(x, scale)  # type: ignore[no-any-return]


@reads_default("ScaledTanh")
def read_scaled_tanh(g: Any, x: Value, *, alpha: float, beta: float) -> Value:
    return g.Mul(g.Tanh(g.Mul(x, beta)), alpha)  # type: ignore[no-any-return]


@reads_default("ParametricSoftplus")
def read_parametric_softplus(g: Any, x: Value, *, alpha: float, beta: float) -> Value:
    return g.Mul(g.Softplus(g.Mul(x, beta)), alpha)  # type: ignore[no-any-return]


@reads_default("ImageScaler")
def read_image_scaler(
    g: Any, x: Value, *, bias: tuple[float, ...] = (), scale: float = 1.0
) -> Value:  # fmt: skip
    count = x.ranked_shape[1] if x.rank == 4 else None
    fits = len(bias) > 0 and (count == len(bias) or not isinstance(count, int))
    require(x.rank == 4, f"no support for {x.rank} axes")
    require(fits, f"a bias of {len(bias)} numbers for {count} channels")
    by_channel = np.array(bias, x.type.numpy).reshape(1, -1, 1, 1)
    return g.Add(g.Mul(x, scale), by_channel)  # type: ignore[no-any-return]


@reads_default("Crop")
def read_crop(g: Any, x: Value, *, border: Ints, scale: Ints = ()) -> Value:
    """``border`` is left, top, right and bottom; ``scale``, height and width of what is left."""
    require(x.rank == 4 and len(border) == 4, f"Crop of {x.rank} axes by {len(border)} borders")
    left, top, right, bottom = border
    if scale:
        require(len(scale) == 2, f"a scale of {len(scale)} numbers")
        ends = [top + scale[0], left + scale[1]]
    else:
        ends = g.Sub(g.Shape(x, start=2, end=4), [bottom, right])
    return g.Slice(x, [top, left], ends, [2, 3])  # type: ignore[no-any-return]


@reads_default("DynamicSlice")
def read_dynamic_slice(
    g: Any, x: Value, starts: Value, ends: Value, axes: Value | None = None
) -> Value:
    return g.Slice(x, starts, ends, axes)  # type: ignore[no-any-return]
