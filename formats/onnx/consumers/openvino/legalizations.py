"""Legalizations for OpenVINO: operators and forms that it lacks or computes wrongly.

The node tests, networks and quantized models tell what is wrong, in OpenVINO 2026.4.
"""

from __future__ import annotations

import math

import numpy as np

from serde.decompositions import indexing, normalization, recurrent, reduction
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.legalize.target import legalization_table
from serde.spec.canonicalize import REDUCTIONS
from serde.spec.schema import ELEMENT_CODES
from serde.version_converter.adapters.elementwise import floor_mod
from serde.version_converter.adapters.recurrent import time_first
from serde.version_converter.adapters.reduction import UNREDUCED
from serde.version_converter.adapters.resize import decompose_resize, every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling
from serde.version_converter.adapters.roi import align_regions

from ..non_max_suppression import raise_overlap_limit
from ..reductions import transform_unreduced

legalize = legalization_table("ir → openvino")

AS_FLOAT32 = "OpenVINO computes float64 in float32, and makes its infinities finite: use float32"

legalize("Dropout")(normalization.drop_nothing)
legalize("OptionalGetElement")(indexing.optional_get)
legalize("OptionalHasElement")(indexing.optional_has)
legalize("NonMaxSuppression")(raise_overlap_limit)


FOREIGN_COORDINATES = frozenset({"half_pixel_symmetric", "tf_crop_and_resize"})
FINITE = frozenset({"Abs", "Relu", "Sigmoid", "Softmax", "Sqrt"})  # or not negative at least


@legalize.for_each(REDUCTIONS)
def legalize_reduction(op, g, x, axes=None, **form):
    """OpenVINO reduces integers in float32, and gets arithmetic wrong that it joins to that."""
    if x.type.kind not in "iu" or x.shape_data is not None:
        return legalize_float_reduction(op, g, x, axes, **form)
    count = count_reduced(x, axes, form["noop_with_empty_axes"])
    if op == "ReduceMean" and count is not None:
        total = legalize_reduction("ReduceSum", g, x, axes, **form)
        return g.Div(total, g.const(count, x.type))
    return g.cast_like(g[op](g.cast(x, DType.FLOAT32), axes, **form), x)


def legalize_float_reduction(op, g, x, axes=None, **form):
    """OpenVINO gives the lowest finite number as the largest of elements that are all -inf."""
    if op in UNREDUCED:
        return transform_unreduced(op, g, x, axes, **form)
    if op not in ("ReduceMax", "ReduceMin"):
        return None
    node = g.producer(x)
    is_integer = node is not None and node.op == "Cast" and node.inputs[0].type.kind in "iu"
    if is_integer or (op == "ReduceMax" and node is not None and node.op in FINITE):
        return None
    return reduction.extreme_of_infinite(op, g, x, axes, **form)


def count_reduced(x: Value, axes: Value | None, noop_with_empty_axes: int) -> int | None:
    """How many elements each result is made of, if that is known."""
    if axes is not None and axes.tensor is None:
        return None
    listed = axes.ints() if axes is not None else ()
    if not listed and noop_with_empty_axes:
        return 1
    sizes = [x.ranked_shape[a] for a in listed or range(x.rank)]
    return math.prod(sizes) if all(isinstance(n, int) for n in sizes) else None


ACTIVATIONS = frozenset(("HardSigmoid", "Relu", "Sigmoid", "Tanh"))  # of recurrent layers


@legalize.for_each(("GRU", "RNN"))
def legalize_recurrent(op, g, *operands, layout: int, outputs=1, **form):
    """OpenVINO computes layers with the batch first wrongly, and lacks some activations."""
    usual = recurrent.CELLS[op][1]
    is_known = set(form.get("activations") or usual) <= ACTIVATIONS
    if not is_known:
        return recurrent.unroll_recurrent(op, g, *operands, layout=layout, outputs=outputs, **form)
    if not layout:
        return None
    return time_first(op, g, *operands, layout=layout, outputs=outputs, **form)


@legalize("LSTM")
def legalize_lstm(
    g, x, w, r, b=None, lengths=None, h0=None, c0=None, p=None, *, input_forget: int, outputs=1,
    **form,
):  # fmt: skip
    """OpenVINO computes peepholes wrongly, and takes no heed of ``input_forget``."""
    operands = x, w, r, b, lengths, h0, c0
    form |= {"input_forget": input_forget, "outputs": outputs}
    if p is not None or input_forget:
        return recurrent.unroll_recurrent("LSTM", g, *operands, p, **form)
    return legalize_recurrent("LSTM", g, *operands, **form)


@legalize.for_each(("Max", "Mean", "Min", "Sum"))
def legalize_variadic(op, g, *operands):
    """OpenVINO returns memory that it does not fill for an input that is the output."""
    return g.Identity(operands[0]) if len(operands) == 1 else None


@legalize("Mod")
def legalize_mod(g, x, y, *, fmod: int):
    """OpenVINO's remainder of an infinite divisor is NaN; it is the dividend."""
    if x.type.kind != "f" or (y.tensor is not None and np.isfinite(y.array()).all()):
        return None
    if not fmod:
        require(x.type is not DType.FLOAT64, f"infinities of float64: {AS_FLOAT32}")
        return floor_mod(g, x, y)
    far, endless = (g.Equal(g.Abs(v), float("inf")) for v in (y, x))
    return g.Where(g.And(far, g.Not(endless)), x, g.as_is("Mod", (x, y), {"fmod": fmod}))


@legalize("Cast")
def legalize_cast(g, x, *, to: int, **form):
    """Infinities of a float64 input are the largest floats in OpenVINO."""
    is_input = x.type is DType.FLOAT64 and g.producer(x) is None
    if not is_input or to != ELEMENT_CODES[DType.FLOAT32]:
        return None
    y = g.as_is("Cast", (x,), {"to": to, **form})
    is_largest = g.Equal(g.Abs(y), float(np.finfo(np.float32).max))
    return g.Where(is_largest, g.Mul(g.Sign(y), float("inf")), y)


@legalize("MaxPool")
def legalize_max_pool(
    g, x, *, ceil_mode: int, dilations, storage_order: int, outputs: int = 1, **form
):
    """OpenVINO keeps windows that begin in the padding at the end, and counts places by rows."""
    form |= {"ceil_mode": ceil_mode, "dilations": dilations, "storage_order": storage_order}
    if outputs > 1 and storage_order:
        return g.decompose("MaxPool", 8, x, outputs=outputs, **form)
    return g.decompose("MaxPool", 10, x, outputs=outputs, **form) if ceil_mode else None


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
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=policy, axes=axes
    )
    is_cropped = scales is not None and sizes is not None
    if is_cropped or not is_native_resize(x, how, static_scales(x, scales, sizes)):
        return decompose_resize(g, x, roi, scales, sizes, how)
    return g.as_is("Resize", (x, roi, scales, sizes), sampling)


def is_native_resize(x: Value, how: Sampling, factors) -> bool:
    """Whether OpenVINO, which knows sizes and no scales, computes the same."""
    if how.exclude_outside or how.antialias or how.coordinates in FOREIGN_COORDINATES:
        return False
    if how.coordinates != "align_corners" or factors is None or not x.is_static:
        return True
    return all(m == n * s for (m, s), n in zip(factors, x.static_shape, strict=True))


@legalize("HardSigmoid")
def legalize_hard_sigmoid(g, x, *, alpha: float, beta: float):
    """OpenVINO takes 0 for the default value."""
    if alpha and beta:
        return None
    return g.Clip(g.Add(g.Mul(x, alpha), beta), 0, 1)


@legalize("STFT")
def legalize_stft(g, x, step, window=None, length=None, *, onesided: int):
    """OpenVINO takes numbers for the step and the length of frames."""
    is_held = all(v is not None and v.tensor is not None for v in (step, length))
    if is_held and (window is None or window.tensor is not None):
        return None
    return g.decompose("STFT", 17, x, step, window, length, onesided=onesided)


@legalize("Split")
def legalize_split(g, x, split=None, *, axis: int, num_outputs=None, outputs: int = 1):
    """OpenVINO has parts of one size where it is not told others."""
    if split is not None or isinstance(x.ranked_shape[axis], int):
        return None
    return g.decompose("Split", 18, x, None, axis=axis, num_outputs=num_outputs or outputs,
                       outputs=outputs)  # fmt: skip


@legalize("Expand")
def legalize_expand(g, x, shape):
    """OpenVINO makes an axis of a shape without sizes."""
    return g.Identity(x) if shape.shape == (0,) else None


@legalize("Unique")
def legalize_unique(g, x, *, sorted: int, outputs: int = 1, **form):
    """OpenVINO leaves elements out that are neither sorted nor placed."""
    require(sorted or outputs > 2, "OpenVINO has Unique of sorted elements only: give sorted=1")


@legalize("Pad")
def legalize_pad(g, x, pads, fill=None, axes=None, *, mode: str):
    """OpenVINO does not wrap around."""
    return g.decompose("Pad", 19, x, pads, fill, axes, mode=mode) if mode == "wrap" else None


@legalize("Col2Im")
def legalize_col2im(g, x, image, block, **form):
    """OpenVINO has images only."""
    return None if image.shape == (2,) else g.decompose("Col2Im", 18, x, image, block, **form)


@legalize("GridSample")
def legalize_grid_sample(g, x, grid, **form):
    """OpenVINO has images only."""
    return None if x.rank == 4 else g.decompose("GridSample", 20, x, grid, **form)


@legalize("QuantizeLinear")
def legalize_quantize(g, x, scale, zero=None, *, block_size: int, precision: int, **form):
    """OpenVINO has no blocks."""
    if not block_size:
        return None
    return g.decompose("QuantizeLinear", 21, x, scale, zero, block_size=block_size, **form)


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
    if any(node is None or node.op != "DequantizeLinear" for node in (data, weights)):
        return None
    moved = g.producer(data.inputs[0])
    if moved is None or moved.op != "Transpose" or frame.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    axes = list(range(2, x.rank))
    some = g.Slice(x, [0] * len(axes), [2**31 - 1] * len(axes), axes, strides)
    return g.Conv(some, w, b, **frame)


@legalize("Div")
def legalize_integer_division(g, a, b):
    """OpenVINO rounds an integer quotient where it joins the division by a constant to a product.

    It does so behind reductions, products and Resize too, but not where the dividend is read twice.
    """
    if a.type.kind == "f" or b.tensor is None or a.shape_data is not None or is_multiple(g, a, b):
        return None
    return g.Div(g.Sub(a, g.Mod(a, b, fmod=1)), b)


def is_multiple(g, a: Value, b: Value) -> bool:
    """Whether ``a`` is what another integer has above its remainder by ``b``."""
    difference = g.producer(a)
    if difference is None or difference.op != "Sub":
        return False
    whole, rest = difference.inputs
    remainder = g.producer(rest)
    return remainder is not None and remainder.op == "Mod" and remainder.inputs == (whole, b)
