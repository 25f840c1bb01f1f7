"""Legalizations for OpenVINO: operators and forms that it lacks or computes wrongly.

The node tests, networks and quantized models tell what is wrong, in OpenVINO 2026.4.
"""

from __future__ import annotations

from functools import partial

from serde.decompositions import indexing, recurrent, reduction
from serde.ir.graph import Value
from serde.legalize.target import legalization_table
from serde.version_converter.adapters.recurrent import time_first
from serde.version_converter.adapters.resize import decompose_resize, every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling
from serde.version_converter.adapters.roi import align_regions

from ..non_max_suppression import raise_overlap_limit

legalize = legalization_table("ir → openvino")

legalize("OptionalGetElement")(indexing.optional_get)
legalize("OptionalHasElement")(indexing.optional_has)
legalize("NonMaxSuppression")(raise_overlap_limit)


FINITE = frozenset({"Abs", "Relu", "Sigmoid", "Softmax", "Sqrt"})  # or not negative at least


def legalize_extreme(op, g, x, axes=None, **form):
    """OpenVINO gives the lowest finite number as the largest of elements that are all -inf."""
    made = g.producer(x)
    if op == "ReduceMax" and made is not None and made.op in FINITE:
        return None
    return reduction.extreme_of_infinite(op, g, x, axes, **form)


for _op in ("ReduceMax", "ReduceMin"):
    legalize(_op)(partial(legalize_extreme, _op))


def legalize_recurrent(op, g, *operands, layout: int, outputs=1, **form):
    """OpenVINO computes layers with the batch first wrongly."""
    if not layout:
        return None
    return time_first(op, g, *operands, layout=layout, outputs=outputs, **form)


for _op in ("GRU", "RNN"):
    legalize(_op)(partial(legalize_recurrent, _op))


@legalize("LSTM")
def legalize_lstm(
    g, x, w, r, b=None, lengths=None, h0=None, c0=None, p=None, *, hidden_size: int,
    direction: str, layout: int, input_forget: int, clip: float | None = None,
    activations: tuple[str, ...] | None = None, activation_alpha=None, activation_beta=None,
    outputs: int = 1,
):  # fmt: skip
    """OpenVINO computes peepholes wrongly."""
    form = {
        "hidden_size": hidden_size, "direction": direction, "input_forget": input_forget,
        "clip": clip, "activations": activations, "activation_alpha": activation_alpha,
        "activation_beta": activation_beta, "layout": layout, "outputs": outputs,
    }  # fmt: skip
    given = {n: v for n, v in form.items() if v is not None}
    operands = x, w, r, b, lengths, h0, c0
    if p is not None:
        return recurrent.unroll_recurrent("LSTM", g, *operands, p, **given)
    return legalize_recurrent("LSTM", g, *operands, **given)


def legalize_variadic(op, g, *operands):
    """OpenVINO returns memory that it does not fill for an input that is the output."""
    return g.Identity(operands[0]) if len(operands) == 1 else None


for _op in ("Max", "Mean", "Min", "Sum"):
    legalize(_op)(partial(legalize_variadic, _op))


@legalize("MaxPool")
def legalize_max_pool(
    g, x, *, ceil_mode: int, dilations, storage_order: int, outputs: int = 1, **form
):
    """OpenVINO keeps windows that begin in the padding at the end."""
    if not ceil_mode:
        return None
    form |= {"ceil_mode": ceil_mode, "dilations": dilations, "storage_order": storage_order}
    return g.decompose("MaxPool", 10, x, outputs=outputs, **form)


@legalize("RoiAlign")
def legalize_roi_align(g, x, rois, batch, *, mode, **form):
    """The largest of the samples is not that of the standard."""
    return None if mode == "avg" else align_regions(g, x, rois, batch, mode=mode, **form)


@legalize("Resize")
def legalize_resize(
    g, x, roi=None, scales=None, sizes=None, *, keep_aspect_ratio_policy: str,
    axes: tuple[int, ...] | None = None, **sampling,
):  # fmt: skip
    """OpenVINO computes coordinates from sizes only, and leaves nothing out."""
    how, policy = Sampling.of(sampling), keep_aspect_ratio_policy
    operands = every_axis(g, x, roi, scales, sizes, keep_aspect_ratio_policy=policy, axes=axes)
    if is_native_resize(x, how, static_scales(x, *operands[2:])):
        return None
    x, roi, scales, sizes = operands
    return decompose_resize(g, x, roi, scales, sizes, how)


def is_native_resize(x: Value, how: Sampling, factors) -> bool:
    """Whether OpenVINO, which knows sizes and no scales, computes the same."""
    if how.exclude_outside or how.coordinates == "tf_crop_and_resize":
        return False
    if how.coordinates != "align_corners" or factors is None or not x.is_static:
        return True
    return all(m == n * s for (m, s), n in zip(factors, x.static_shape, strict=True))


@legalize("QLinearConv")
def legalize_qlinear_conv(
    g, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b=None, **frame
):  # fmt: skip
    """OpenVINO takes scales by channel of the weights for those of their second axis."""
    bias = None if b is None else g.DequantizeLinear(b, g.Mul(x_scale, w_scale), axis=0)
    w = g.DequantizeLinear(w, w_scale, w_zero, axis=0)
    y = g.Conv(g.DequantizeLinear(x, x_scale, x_zero), w, bias, **frame)
    return g.QuantizeLinear(y, y_scale, y_zero)


@legalize("Conv")
def legalize_conv(g, x, w, b=None, *, strides=(), **frame):
    """OpenVINO loses the strides of a 1×1 kernel of integers whose data a Transpose moved."""
    is_point = w.rank > 2 and all(k == 1 for k in w.ranked_shape[2:])
    if not is_point or all(s == 1 for s in strides) or any(frame.get("pads") or ()):
        return None
    data, weights = (g.producer(v) for v in (x, w))
    if any(made is None or made.op != "DequantizeLinear" for made in (data, weights)):
        return None
    moved = g.producer(data.inputs[0])
    if moved is None or moved.op != "Transpose" or frame.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    axes = list(range(2, x.rank))
    some = g.Slice(x, [0] * len(axes), [2**31 - 1] * len(axes), axes, strides)
    return g.Conv(some, w, b, **frame)
