"""Operators that ONNX Runtime has in the default domain, at opsets whose standard lacks them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import IR_OPSET

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
def read_group_normalization(g, x, scale, bias, *, num_groups: int, epsilon=1e-5):
    """Opsets 18 to 20 scale by group; the IR, as opset 21, by channel."""
    require(num_groups > 0, f"num_groups={num_groups}")
    for v in (scale, bias):
        (count,) = v.ranked_shape if v.rank == 1 else (None,)
        fits = v.rank == 1 and (count == num_groups or not isinstance(count, int))
        require(fits, f"{count} numbers for {num_groups} groups")
    each = g.Div(g.Shape(x, start=1, end=2), num_groups)
    shape = g.Concat([num_groups], each, axis=0)
    scale, bias = (g.Reshape(g.Expand(g.Unsqueeze(v, [1]), shape), [-1]) for v in (scale, bias))
    return g.GroupNormalization(x, scale, bias, num_groups=num_groups, epsilon=epsilon)


@reads_default("MeanVarianceNormalization")
def read_mean_variance_normalization(g, x, *, across_channels=0, normalize_variance=1):
    """ONNX Runtime takes the mean over these axes at any rank."""
    axes = [a for a in (0, 1, 2, 3) if a < x.rank and (a != 1 or across_channels)]
    if normalize_variance:
        return g.MeanVarianceNormalization(x, axes=axes)
    return g.Sub(x, g.ReduceMean(x, axes, keepdims=1))


@reads_default("ThresholdedRelu")
def read_thresholded_relu(g, x, *, alpha=1.0):
    return g.ThresholdedRelu(x, alpha=alpha)


@reads_default("Affine")
def read_affine(g, x, *, alpha=1.0, beta=0.0):
    return g.Add(g.Mul(x, alpha), beta)


@reads_default("Scale")
def read_scale(g, x, *, scale=1.0):
    return g.Mul(x, scale)


@reads_default("ScaledTanh")
def read_scaled_tanh(g, x, *, alpha: float, beta: float):
    return g.Mul(g.Tanh(g.Mul(x, beta)), alpha)


@reads_default("ParametricSoftplus")
def read_parametric_softplus(g, x, *, alpha: float, beta: float):
    return g.Mul(g.Softplus(g.Mul(x, beta)), alpha)


@reads_default("ImageScaler")
def read_image_scaler(g, x, *, bias: tuple[float, ...] = (), scale=1.0):
    count = x.ranked_shape[1] if x.rank == 4 else None
    fits = len(bias) > 0 and (count == len(bias) or not isinstance(count, int))
    require(x.rank == 4, f"no support for {x.rank} axes")
    require(fits, f"a bias of {len(bias)} numbers for {count} channels")
    by_channel = np.array(bias, x.type.numpy).reshape(1, -1, 1, 1)
    return g.Add(g.Mul(x, scale), by_channel)


@reads_default("Crop")
def read_crop(g, x, *, border: Ints, scale=()):
    """``border`` is left, top, right and bottom; ``scale``, height and width of what is left."""
    require(x.rank == 4 and len(border) == 4, f"Crop of {x.rank} axes by {len(border)} borders")
    left, top, right, bottom = border
    if scale:
        require(len(scale) == 2, f"a scale of {len(scale)} numbers")
        ends = [top + scale[0], left + scale[1]]
    else:
        ends = g.Sub(g.Shape(x, start=2, end=4), [bottom, right])
    return g.Slice(x, [top, left], ends, [2, 3])


@reads_default("DynamicSlice")
def read_dynamic_slice(g, x, starts, ends, axes=None):
    return g.Slice(x, starts, ends, axes)
