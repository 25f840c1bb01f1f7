"""Legalizations for Relax: operators and forms that TVM's importer lacks or computes wrongly.

Recurrent layers and loops are unrolled, both branches of an If are computed. What is small follows
the importer's own code; the node tests and the operators of the other formats tell the rest.
"""

from __future__ import annotations

from serde.decompositions import elementwise, indexing, normalization, reduction
from serde.errors import ConversionError, require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
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


@legalize("Shrink")
def legalize_shrink(g, x, *, bias: float, lambd: float):
    """The importer adds up both sides, which a negative ``lambd`` lets overlap."""
    return g.decompose("Shrink", 9, x, bias=bias, lambd=lambd) if lambd < 0 else None


@legalize("IsInf")
def legalize_is_inf(g, x, *, detect_negative: int, detect_positive: int):
    """The importer's tells no signs."""
    if detect_negative and detect_positive:
        return None
    which = {"detect_negative": detect_negative, "detect_positive": detect_positive}
    return g.decompose("IsInf", 10, x, **which)


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
        require(isinstance(size, int), f"an {op} of the last index along an axis of symbolic size")
        turned = g.slice_axis(x, axis, -1, -size - 1, -1)
        return g.Sub(size - 1, g[op](turned, **form))
    return g.Max(g.as_is(op, (x,), form), 0)


@legalize("GlobalMaxPool")
def legalize_global_max_pool(g, x):
    return g.ReduceMax(x, list(range(2, x.rank)), keepdims=1)


@legalize("TopK")
def legalize_top_k(g, x, k, *, axis: int, largest: int, sorted: int, outputs: int = 1):
    """The importer's are always sorted."""
    form = {"axis": axis, "largest": largest, "sorted": 1}
    return None if sorted else g.TopK(x, k, **form, outputs=outputs)


@legalize("MaxPool")
def legalize_max_pool(g, x, *, dilations, ceil_mode, outputs: int = 1, **window):
    """The importer's keeps windows that ONNX drops, and tells no places."""
    more = {"dilations": dilations, "ceil_mode": ceil_mode}
    if ceil_mode or (outputs > 1 and any(d != 1 for d in dilations)):
        return g.decompose("MaxPool", 10, x, outputs=outputs, **more, **window)
    return g.decompose("MaxPool", 8, x, outputs=outputs, **window) if outputs > 1 else None


@legalize("AveragePool")
def legalize_average_pool(g, x, *, dilations, ceil_mode, **window):
    if any(d != 1 for d in dilations):
        more = {"dilations": dilations, "ceil_mode": ceil_mode}
        return g.decompose("AveragePool", 19, x, **more, **window)
    return g.decompose("AveragePool", 10, x, ceil_mode=ceil_mode, **window) if ceil_mode else None


@legalize("LpPool")
def legalize_lp_pool(g, x, *, dilations, ceil_mode, **window):
    if not ceil_mode and all(d == 1 for d in dilations):
        return None
    return g.decompose("LpPool", 18, x, dilations=dilations, ceil_mode=ceil_mode, **window)


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
    windows = zip(x.static_shape[2:], kernel, steps, gaps, more, output_shape[-n:], strict=True)
    over = [s * (i - 1) + (k - 1) * d + 1 + o - want for i, k, s, d, o, want in windows]
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
    """The importer takes one type; in training mode it moves the statistics wrongly."""
    form = {"epsilon": epsilon, "momentum": momentum}
    operands = scale, bias, mean, var
    if training_mode:
        return normalization.train_batch_norm(g, x, *operands, outputs=outputs, **form)
    if all(v.type is x.type for v in operands):
        return None
    same = (g.cast_like(v, x) for v in operands)
    return g.BatchNormalization(x, *same, training_mode=0, **form)


@legalize("LayerNormalization")
def legalize_layer_norm(g, x, scale, bias=None, *, axis, epsilon, stash_type, outputs: int = 1):
    """With weights as large as what they weigh as it is, otherwise decomposed."""
    own = x.ranked_shape[axis % x.rank :]
    fits = scale.ranked_shape == own and (bias is None or bias.ranked_shape == own)
    if fits and outputs == 1 and x.type is DType.FLOAT32:
        return None
    attrs = {"axis": axis, "epsilon": epsilon, "stash_type": stash_type}
    return g.decompose("LayerNormalization", 17, x, scale, bias, outputs=outputs, **attrs)


@legalize("LRN")
def legalize_lrn(g, x, *, size, alpha, beta, bias):
    """The importer's windows are odd."""
    if size % 2 and x.rank in (3, 4) and x.type is DType.FLOAT32:
        return None
    return normalization.local_response(g, x, size=size, alpha=alpha, beta=beta, bias=bias)


@legalize("GridSample")
def legalize_grid_sample(g, x, grid, *, mode: str, padding_mode: str, align_corners: int):
    """Linear sampling as it is; the importer's rounds and borders others as ONNX does not."""
    if x.rank == 4 and mode == "linear" and padding_mode != "reflection":
        return None
    attrs = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    return g.decompose("GridSample", 16, x, grid, **attrs)


@legalize("RoiAlign")
def legalize_roi_align(g, x, rois, batch, *, mode, sampling_ratio, **form):
    """The importer's takes the mean of the samples, and no region as smaller than a pixel."""
    if mode == "avg" and form["coordinate_transformation_mode"] == "output_half_pixel":
        return None
    known = sampling_ratio > 0 or rois.tensor is not None
    require(known, "a number of samples that depends on computed regions: give sampling_ratio")
    return align_regions(g, x, rois, batch, mode=mode, sampling_ratio=sampling_ratio, **form)


@legalize("NonMaxSuppression")
def legalize_suppression(
    g, boxes, scores, most=None, overlap=None, least=None, *, center_point_box: int
):
    held = [v is None or number(v) is not None for v in (most, overlap, least)]
    require(all(held), "limits that are computed")
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
        raise ConversionError("a Resize to a dynamic size")
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
