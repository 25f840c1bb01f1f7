"""Legalizations for onnx2torch: operators and forms that it lacks or gets wrong, in 1.5.15."""

from __future__ import annotations

import numpy as np

from serde.decompositions import indexing, normalization, reduction
from serde.errors import ConversionError
from serde.ir.graph import BYTES, DType, Tensor, Value
from serde.legalize.forms import operators as shared
from serde.legalize.forms.form import CONSTANT, Call, Form, Lacks, by
from serde.legalize.forms.pytorch import add_pytorch_rules
from serde.legalize.target import legalization_table
from serde.passes.quantized_values import Quantization, dequantize_constant
from serde.spec.expressions import END
from serde.spec.schema import ELEMENT_TYPES
from serde.version_converter.adapters.common import count_range, size
from serde.version_converter.adapters.indexing import (
    extreme_value,
    flatten_indices,
    unravel_indices,
)
from serde.version_converter.adapters.normalization import standardize
from serde.version_converter.adapters.quantization import emit_dequantize
from serde.version_converter.adapters.topk_unique import top_k_by_counting

from ..narrow_floats import is_weight_in_fewer_bits, widen_weight
from ..scatter_reductions import decompose_scatter_nd
from ..slices import cut_axis, read_cuts
from ..slopes import is_by_channel

legalize = legalization_table("ir → onnx2torch")
legalize("Dropout")(normalization.drop_nothing)
legalize("GlobalMaxPool")(reduction.global_max)  # it has the maximum over axes
legalize("OptionalGetElement")(indexing.optional_get)
legalize("OptionalHasElement")(indexing.optional_has)
legalize("ScatterND")(decompose_scatter_nd)
add_pytorch_rules(legalize)

UNFLIPPED = frozenset({DType.UINT16, DType.UINT32, DType.UINT64})
HALF_STEP, LEAST, BEYOND = 2.0**-25, 2.0**-151, 2.0**129  # of float32, as float64 has them


@legalize("NonMaxSuppression")
def legalize_non_max_suppression(
    g, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    """torchvision takes the least corner first, and onnx2torch 0 for a limit that is left out."""
    if not center_point_box:
        ends = [g.Slice(boxes, [at], [at + 2], [2]) for at in (0, 2)]
        boxes = g.Concat(g.Min(*ends), g.Max(*ends), axis=2)
    least = g.const([-np.inf], DType.FLOAT32) if least is None else least
    form = {"center_point_box": center_point_box}
    return g.as_is("NonMaxSuppression", (boxes, scores, most, overlap, least), form)


@legalize("IsInf")
def legalize_is_inf(g, x, *, detect_negative: int, detect_positive: int):
    """onnx2torch detects both signs."""
    if detect_negative and detect_positive:
        return None
    if not detect_negative and not detect_positive:
        return g.And(g.IsInf(x), False)
    return g.And(g.IsInf(x), g.Greater(x, 0) if detect_positive else g.Less(x, 0))


@legalize("Selu")
def legalize_selu(g, x, *, alpha: float, gamma: float):
    """PyTorch has the usual factors only."""
    if np.isclose(alpha, 1.6732632) and np.isclose(gamma, 1.050701):
        return None
    below = g.Mul(g.Sub(g.Exp(g.Min(x, 0)), 1), alpha)
    return g.Mul(g.Where(g.Less(x, 0), below, x), gamma)


@legalize("ReduceSum")
def legalize_sum(g, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """onnx2torch fails at a list of no axes."""
    is_none = axes is not None and axes.tensor is not None and not axes.tensor.size
    if not is_none or noop_with_empty_axes or not x.rank:
        return None
    return g.ReduceSum(x, list(range(x.rank)), keepdims=keepdims)


@legalize("Slice")
def legalize_slice(g, x, starts, ends, axes=None, steps=None):
    """onnx2torch flips where a step is negative: starts lie within the axis then."""
    if steps is None or (steps.tensor is not None and min(steps.ints(), default=1) > 0):
        return None
    if x.type in UNFLIPPED:
        cuts = read_cuts(x, starts, ends, axes, steps)
        if cuts is None:
            raise ConversionError(
                f"PyTorch counts back in {x.type.value} by constant bounds only. {CONSTANT}"
            )
        for axis, cut in cuts:
            x = cut_axis(g, x, axis, cut, "PyTorch")
        return x
    every = list(range(starts.static_shape[0])) if axes is None else axes
    sizes = g.cast_like(g.Gather(g.Shape(x), every, axis=0), starts)
    is_within = sizes.tensor is not None and starts.tensor is not None
    is_within = is_within and bool((starts.array() >= -sizes.array()).all())
    if is_within or (starts.tensor is not None and min(starts.ints()) >= -1):
        return None
    front = g.Where(g.Less(starts, 0), g.Max(g.Add(starts, sizes), 0), starts)
    return g.as_is("Slice", (x, front, ends, axes, steps), {})


@legalize("Flatten")
def legalize_flatten(g, x, *, axis: int):
    """onnx2torch flattens from an axis between the first and the last."""
    if 0 < axis < x.rank:
        return None
    count = g.multiply_sizes(g.sizes_of(x))
    return g.reshape(x, [count, 1] if axis else [1, count])


@legalize("CumSum")
def legalize_cumulative_sum(g, x, axis, *, exclusive: int, reverse: int):
    """onnx2torch sums up from the end unless ``reverse`` says otherwise: files leave it out."""
    if reverse:
        return None
    at = g.Reshape(g.cast(axis, DType.INT64), [1])
    turned = g.Slice(x, [-1], [-END], at, [-1])
    total = g.CumSum(turned, axis, exclusive=exclusive, reverse=1)
    return g.Slice(total, [-1], [-END], at, [-1])


@legalize("Range")
def legalize_range(g, start, limit, delta):
    """PyTorch refuses ranges that end before they start."""
    if limit.tensor is not None or delta.tensor is None or g.producer(limit) is None:
        return None
    producer = g.producer(limit)
    end = g.Max(limit, start) if delta.array() > 0 else g.Min(limit, start)
    return None if producer.op in ("Max", "Min") else g.Range(start, end, delta)


@legalize("GatherElements")
def legalize_gather_elements(g, x, indices, *, axis: int):
    """PyTorch takes indices from the front."""
    if indices.tensor is not None and bool((indices.array() >= 0).all()):
        return None
    behind = g.Where(g.Less(indices, 0), g.cast_like(size(g, x, axis), indices), 0)
    return g.as_is("GatherElements", (x, g.Add(indices, behind)), {"axis": axis})


@legalize("ScatterElements")
def legalize_scatter_elements(g, x, indices, updates, *, axis: int, reduction: str):
    """onnx2torch scatters by tuples of indices."""
    where = g.Reshape(flatten_indices(g, x, indices, axis), [-1, 1])
    flat, new = g.Reshape(x, [-1]), g.Reshape(updates, [-1])
    return g.Reshape(g.ScatterND(flat, where, new, reduction=reduction), g.Shape(x))


@legalize("NonZero")
def legalize_non_zero(g, x):
    """onnx2torch returns a row for each element: the places are picked by TopK."""
    flat = g.Reshape(g.cast(x, DType.BOOL), [-1])
    count = size(g, flat, 0)
    left = g.Where(flat, g.Sub(count, count_range(g, count)), 0)  # count … 1
    some = g.ReduceSum(g.cast(flat, DType.INT64), [0], keepdims=1)
    form = {"axis": 0, "largest": 1, "sorted": 1}
    largest, _ = g.as_is("TopK", (left, some), form, 2)
    return unravel_indices(g, x, g.Sub(count, largest))


@legalize("TopK")
def legalize_top_k(g, x, k, *, axis: int, largest: int, sorted: int, outputs: int = 2):
    """PyTorch returns equal elements in any order: what is ranked has none."""
    if x.type in (DType.INT64, DType.UINT64, DType.FLOAT64):
        return top_k_by_counting(g, x, k, axis, bool(largest))
    form = {"axis": axis, "largest": largest, "sorted": sorted}
    _, indices = g.as_is("TopK", (distinguish_equals(g, x, axis, bool(largest)), k), form, 2)
    return g.as_is("GatherElements", (x, indices), {"axis": axis}), indices


def distinguish_equals(g, x: Value, axis: int, is_largest: bool):
    """Numbers in the order of the elements, in which the first of equal elements is ahead.

    Places move float32 by less than half of what is between two of them.
    """
    count = size(g, x, axis)
    shape = [-1 if a == axis else 1 for a in range(x.rank)]
    places = g.Reshape(count_range(g, count), shape)
    if x.type.kind in "iu":
        behind = g.Sub(g.Sub(count, 1), places) if is_largest else places
        return g.Add(g.Mul(g.cast(x, DType.INT64), count), behind)
    wide = g.Max(g.Min(g.cast(x, DType.FLOAT64), BEYOND), -BEYOND)
    share = g.Div(g.cast(places, DType.FLOAT64), g.cast(count, DType.FLOAT64))
    moved = g.Mul(g.Add(g.Mul(g.Abs(wide), HALF_STEP), LEAST), share)
    return g.Sub(wide, moved) if is_largest else g.Add(wide, moved)


@legalize("DequantizeLinear")
def legalize_dequantize(g, x, scale, zero=None, *, axis: int, block_size: int, **form):
    """onnx2torch has no quantization, and takes weights that are constants."""
    weights = dequantize_constant(x, Quantization(scale, zero, axis, block_size), scale.type)
    if weights is not None:
        return g.const(weights, name="weight")
    return emit_dequantize(g, x, scale, zero, scale.type, axis, block_size)


@legalize("Cast")
def legalize_cast(g, x, *, to: int, **form):
    """Weights of convolutions are constants: they become float32 when the file is written."""
    dtype = ELEMENT_TYPES[to]
    if is_weight_in_fewer_bits(x) and dtype is DType.FLOAT32:
        return widen_weight(g, x)
    if x.tensor is None or x.type not in BYTES or dtype is DType.BOOL:
        return None
    return g.const(
        Tensor(dtype, x.tensor.shape, lambda: x.array().astype(dtype.numpy)), name="weight"
    )


@legalize("InstanceNormalization")
def legalize_instance_norm(g, x, scale, bias, *, epsilon: float):
    """PyTorch refuses instances of one element."""
    inner = x.ranked_shape[2:]
    several = any(isinstance(d, int) and d > 1 for d in inner)
    if several and all(d != 0 for d in inner) and 2 < x.rank < 6:
        return None
    axes = list(range(2, x.rank))
    centred, _, inverse = standardize(g, x, axes, epsilon)
    scale, bias = (g.Unsqueeze(v, [a - 1 for a in axes]) for v in (scale, bias))
    return g.Add(g.Mul(g.Mul(centred, inverse), scale), bias)


@legalize("Gemm")
def legalize_gemm(g, a, b, c=None, **form):
    """PyTorch's linear layer takes a bias as long as its outputs."""
    wide = b.ranked_shape[0 if form.get("transB") else 1]
    if c is None or c.rank != 1 or c.ranked_shape == (wide,):
        return None
    return g.Gemm(a, b, g.Unsqueeze(c, [0]), **form)


@legalize.for_each(("ReduceMax", "ReduceMin"))
def legalize_extreme(op, g, x, axes=None, **form):
    """PyTorch has no extreme of nothing."""
    if 0 not in x.ranked_shape:
        return None
    is_least = op == "ReduceMin"
    end = is_least if x.type is DType.BOOL else extreme_value(x.type, is_least)
    like = g.ReduceSum(g.cast(x, DType.FLOAT32), axes, **form)
    return g.Expand(g.const(end, x.type), g.Shape(like))


def is_unlike_channels(call: Call) -> bool:
    """Whether onnx2torch takes a slope as long as the channels for one by channel, and is wrong."""
    slope = call.inputs[1]
    is_one = all(d == 1 for d in slope.ranked_shape)
    return call.x.type.kind != "f" or not (is_one or is_by_channel(slope, call.x))


def is_other_layer(call: Call) -> bool:
    """Whether weights are not as large as what they weigh, or statistics are results."""
    own = call.x.ranked_shape[call.attrs["axis"] % call.x.rank :]
    weights = [call.inputs[1], call.operand(2)]
    is_fit = all(isinstance(d, int) for d in own) and call.outputs == 1
    return not is_fit or any(v is None or v.ranked_shape != own for v in weights)


LACKS: Lacks = {
    "BatchNormalization": [shared.TRAINING, Form(
        "several element types, or more than three axes of windows",
        lambda call: call.x.rank > 5 or len({v.type for v in call.inputs}) > 1,
        shared.normalize_by_channel,
    )],
    "Clip": [shared.NO_BOUNDS, shared.COMPUTED_BOUNDS, Form(
        "no lower bound, or of integers", lambda call: call.inputs[1] is None or
        call.x.type.kind != "f", shared.clip_by_extremes,
    )],
    "DepthToSpace": [  # PyTorch has the block's elements behind the channels
        Form("mode='DCR'", shared.other_mode("CRD"), by(indexing.depth_to_space)),
    ],
    "GatherND": [shared.BATCH_DIMS],
    # PyTorch takes a mean over no axes for one over all
    "GlobalAveragePool": [Form("no axes", lambda call: call.x.rank == 2, shared.take_first)],
    "LRN": [shared.EVEN_WINDOW, Form(  # PyTorch has even windows the other way round
        "no axes of windows", lambda call: call.x.rank < 3, by(normalization.local_response),
    )],
    "LayerNormalization": [shared.LAYER_WEIGHTS.where(is_other_layer)],
    "PRelu": [shared.SLOPES.where(is_unlike_channels)],
    "Reshape": [shared.ALLOW_ZERO],
    "RoiAlign": [shared.OTHER_SAMPLES],
    # onnx2torch returns the list of one part
    "Split": [Form("one part", lambda call: call.outputs == 1, shared.take_first)],
}  # fmt: skip
