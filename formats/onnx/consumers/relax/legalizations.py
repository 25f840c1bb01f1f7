"""Legalizations for Relax: operators and forms that TVM's importer lacks or computes wrongly.

Recurrent layers and loops are unrolled, both branches of an If are computed. What is small follows
the importer's own code; the node tests and the operators of the other formats tell the rest.
"""

from __future__ import annotations

from serde.decompositions import elementwise, indexing, normalization, reduction
from serde.errors import ConversionError, require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.legalize.forms import operators as shared
from serde.legalize.forms import windows
from serde.legalize.forms.form import CONSTANT, STATIC, Call, Form, Lacks, by, decompose
from serde.legalize.target import legalization_table
from serde.spec.expressions import number
from serde.version_converter.adapters.resize import decompose_resize, every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling
from serde.version_converter.adapters.roi import align_regions

from ..negative_pads import crop_negative_pads
from ..non_max_suppression import raise_overlap_limit
from ..reductions import decompose_extreme

legalize = legalization_table("ir → relax")

legalize("Pow")(elementwise.power)
legalize("PRelu")(elementwise.prelu)
legalize("Pad")(crop_negative_pads)
legalize("OptionalGetElement")(indexing.optional_get)
legalize("OptionalHasElement")(indexing.optional_has)
legalize("ReduceLogSumExp")(reduction.log_sum_exp)
legalize.for_each(("ReduceMax", "ReduceMin"))(decompose_extreme)
legalize("Dropout")(normalization.drop_nothing)
legalize("Hardmax")(normalization.hardmax)  # the importer has none of the largest at -inf only


@legalize("Gemm")
def legalize_gemm(g, a, b, c=None, *, alpha: float, beta: float, transA: int, transB: int):
    """The importer makes the factors of integers integers."""
    are_integers = float(alpha).is_integer() and float(beta).is_integer()
    kind = a.type.value
    require(a.type.kind == "f" or are_integers, f"alpha={alpha}, beta={beta} of {kind} elements")


@legalize("BitShift")
def legalize_bit_shift(g, x, y, *, direction: str):
    """Shifting by as many bits as there are, or more, leaves none; for the machine it does not."""
    if y.tensor is not None and y.array().max(initial=0) < x.type.bits:
        return None
    bits, none = g.const(x.type.bits, y.type), g.const(0, y.type)
    near = g.as_is("BitShift", (x, g.Mod(y, bits)), {"direction": direction})
    within, rest = g.Less(y, bits), g.const(0, x.type)
    if x.type.kind == "i":
        within = g.And(within, g.GreaterOrEqual(y, none))
        rest = g.Where(g.Less(x, none), g.const(-1, x.type), rest) if direction == "RIGHT" else rest
    return g.Where(within, near, rest)


@legalize("ReduceSum")
def legalize_reduce_sum(g, x, axes=None, *, keepdims: int, noop_with_empty_axes: int):
    """The importer takes no empty axes."""
    if axes is not None and axes.shape != (0,):
        return None
    if noop_with_empty_axes:
        return g.Identity(x)
    return None if axes is None else g.ReduceSum(x, None, keepdims=keepdims)


@legalize.for_each(("ArgMax", "ArgMin"))
def legalize_arg(op, g, x, *, axis: int, keepdims: int, select_last_index: int):
    """The importer's finds none, numbered -1, where all are the last that the type has."""
    form = {"axis": axis, "keepdims": keepdims, "select_last_index": 0}
    if select_last_index:
        size = x.ranked_shape[axis]
        require(isinstance(size, int), f"an {op} of the last index along a symbolic axis. {STATIC}")
        turned = g.slice_axis(x, axis, -1, -size - 1, -1)
        return g.Sub(size - 1, g[op](turned, **form))
    return g.Max(g.as_is(op, (x,), form), 0)


@legalize("ConvTranspose")
def legalize_conv_transpose(
    g, x, w, b=None, *, output_shape: Ints | None = None, auto_pad="NOTSET", group: int,
    kernel_shape: Ints = (), strides: Ints = (), dilations: Ints = (), output_padding: Ints = (),
    pads: Ints = (),
):  # fmt: skip
    """Sizes that are given, as pads; the importer takes no heed of them."""
    if output_shape is None:
        return None
    kernel, n = kernel_shape or w.static_shape[2:], x.rank - 2
    steps, gaps, more = strides or (1,) * n, dilations or (1,) * n, output_padding or (0,) * n
    axes = zip(x.static_shape[2:], kernel, steps, gaps, more, output_shape[-n:], strict=True)
    over = [s * (i - 1) + (k - 1) * d + 1 + o - want for i, k, s, d, o, want in axes]
    small = [max(0, total) // 2 for total in over]
    large = [max(0, total) - half for total, half in zip(over, small, strict=True)]
    begin, end = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    return g.ConvTranspose(
        x, w, b, kernel_shape=kernel, strides=steps, dilations=gaps, pads=(*begin, *end),
        output_padding=[o + max(0, -total) for o, total in zip(more, over, strict=True)],
        group=group,
    )  # fmt: skip


@legalize("BatchNormalization")
def legalize_batch_norm(
    g, x, scale, bias, mean, var, *, epsilon, momentum, training_mode, outputs: int = 1
):
    """The importer takes one type."""
    form = {"epsilon": epsilon, "momentum": momentum}
    operands = scale, bias, mean, var
    if all(v.type is x.type for v in operands):
        return None
    same = (g.cast_like(v, x) for v in operands)
    return g.BatchNormalization(x, *same, training_mode=0, **form)


@legalize("NonMaxSuppression")
def legalize_suppression(
    g, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    is_known = [v is None or number(v) is not None for v in (most, overlap, least)]
    require(all(is_known), f"limits that are computed. {CONSTANT}")
    form = {"center_point_box": center_point_box}
    return raise_overlap_limit(g, boxes, scores, most, overlap, least, **form)


@legalize("MaxUnpool")
def legalize_max_unpool(
    g, x, places, shape=None, *, kernel_shape: Ints, strides: Ints = (), pads: Ints = ()
):
    """The importer's takes no shape, and no strides that are left out."""
    form = {"kernel_shape": kernel_shape, "strides": strides or (1,) * len(kernel_shape),
            "pads": pads or (0,) * 2 * len(kernel_shape)}  # fmt: skip
    if shape is None:
        return g.as_is("MaxUnpool", (x, places), form)
    return g.decompose("MaxUnpool", 9, x, places, shape, **form)


LINEAR = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")


@legalize("Resize")
def legalize_resize(
    g, x, roi=None, scales=None, sizes=None, *, keep_aspect_ratio_policy: str,
    axes: tuple[int, ...] | None = None, **sampling,
):  # fmt: skip
    how, policy = Sampling.of(sampling), keep_aspect_ratio_policy
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=policy, axes=axes
    )
    if (factors := static_scales(x, scales, sizes)) is None:
        raise ConversionError(f"a Resize to a dynamic size. {STATIC}")
    if not is_native_resize(x, how, factors):
        return decompose_resize(g, x, roi, scales, sizes, how)
    shape = g.const([m for m, _ in factors], DType.INT64)
    form = {n: sampling[n] for n in ("mode", "coordinate_transformation_mode", "nearest_mode")}
    return g.as_is("Resize", (x, None, None, shape), form)


def is_native_resize(x: Value, how: Sampling, factors) -> bool:
    """Whether the importer, which knows sizes and no scales, computes the same of an image."""
    if x.rank != 4 or x.type is not DType.FLOAT32 or not x.is_static or how.antialias:
        return False
    exact = all(m == n * s for (m, s), n in zip(factors, x.static_shape, strict=True))
    if not exact or [m for m, _ in factors[:2]] != list(x.static_shape[:2]):
        return False
    if how.mode == "nearest":
        is_integer = all(float(s).is_integer() for _, s in factors)
        return is_integer and (how.coordinates, how.nearest_mode) == ("asymmetric", "floor")
    sizes = [m for m, _ in factors[2:]]
    single = how.coordinates != "half_pixel" and 1 in sizes
    return how.mode == "linear" and how.coordinates in LINEAR and not single


def is_other_layer(call: Call) -> bool:
    """Whether weights are not as large as what they weigh, or statistics are results."""
    normalized_shape = call.x.ranked_shape[call.attrs["axis"] % call.x.rank :]
    weights = (v for v in call.inputs[1:] if v is not None)
    is_float32 = call.x.type is DType.FLOAT32
    return (
        call.outputs > 1
        or not is_float32
        or any(v.ranked_shape != normalized_shape for v in weights)
    )


def is_other_grid(call: Call) -> bool:
    """Whether the importer samples otherwise: it rounds, and has other borders."""
    attrs = call.attrs
    is_linear = attrs["mode"] == "linear" and attrs["padding_mode"] != "reflection"
    return call.x.rank != 4 or not is_linear


def is_other_region(call: Call) -> bool:
    """Whether the importer, which takes means and no region as smaller than a pixel, differs."""
    is_native = call.attrs["coordinate_transformation_mode"] == "output_half_pixel"
    return call.attrs["mode"] != "avg" or not is_native


def has_open_samples(call: Call) -> bool:
    """Whether the number of samples depends on computed regions."""
    is_open = call.attrs["sampling_ratio"] <= 0 and call.inputs[1].tensor is None
    return is_open and is_other_region(call)


def is_unlike_signs(call: Call) -> bool:
    """Whether infinities of one sign, or none, are told."""
    return not (call.attrs["detect_negative"] and call.attrs["detect_positive"])


def sort_elements(g, call: Call):
    """The same, sorted."""
    return call.emit(g, *call.inputs, sorted=1)


# The importer keeps windows that ONNX drops, and tells no places.
LACKS: Lacks = {
    "AveragePool": [windows.AVERAGE_DILATIONS, windows.CEIL_MODE],
    "BatchNormalization": [shared.TRAINING],  # it moves the statistics wrongly
    "GlobalMaxPool": [Form("any data", lambda call: True, by(reduction.global_max))],
    "GridSample": [Form("other than linear samples of images", is_other_grid, decompose(16))],
    "IsInf": [Form("signs", is_unlike_signs, decompose(10))],
    "LRN": [shared.EVEN_WINDOW, Form(
        "other elements or ranks",
        lambda call: call.x.rank not in (3, 4) or call.x.type is not DType.FLOAT32,
        by(normalization.local_response),
    )],
    "LayerNormalization": [shared.LAYER_WEIGHTS.where(is_other_layer)],
    "LpPool": windows.LP_WINDOWS,
    "MaxPool": [
        windows.CEIL_MODE, windows.MAX_DILATIONS.where(lambda call: call.outputs > 1),
        windows.PLACES,
    ],
    "RoiAlign": [
        Form("a number of samples that depends on computed regions", has_open_samples,
             advice="Give sampling_ratio"),
        Form("other samples", is_other_region, by(align_regions)),
    ],
    "Shrink": [shared.NEGATIVE_LAMBD],  # it adds up both sides, which overlap then
    "TopK": [Form("sorted=0", lambda call: not call.attrs["sorted"], sort_elements)],
}  # fmt: skip
