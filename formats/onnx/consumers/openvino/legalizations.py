"""Legalizations for OpenVINO: operators and forms that it lacks or computes wrongly.

The node tests, networks and quantized models tell what is wrong, in OpenVINO 2026.4.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from serde.decompositions import elementwise, indexing, normalization, reduction
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.legalize.forms import operators as shared
from serde.legalize.forms.form import STATIC, Call, Form, Lacks, by, decompose
from serde.legalize.target import legalization_table
from serde.passes.regions import Quantized, emit_qlinear_conv
from serde.spec.schema import ELEMENT_CODES
from serde.spec.traits import COUNTS, NON_NEGATIVE, REDUCES
from serde.version_converter.adapters.common import size
from serde.version_converter.adapters.elementwise import floor_mod
from serde.version_converter.adapters.reduction import UNREDUCED

from ..non_max_suppression import raise_overlap_limit
from ..powers import power
from ..quotients import legalize_quotients, truncate_quotient
from ..reductions import multiply_sizes, transform_unreduced
from ..slices import read_cuts
from ..top_k import rank_equal_elements
from .attention import legalize_attention
from .comparisons import legalize_comparisons
from .recurrent import legalize_recurrent_layers
from .windows import legalize_windows

legalize = legalization_table("ir → openvino")

AS_FLOAT32 = "OpenVINO computes float64 in float32, and makes its infinities finite: use float32"

legalize_attention(legalize)
legalize_comparisons(legalize)
legalize_recurrent_layers(legalize)
legalize_windows(legalize)
legalize_quotients(legalize)
legalize("Dropout")(normalization.drop_nothing)
legalize("Where")(elementwise.choose_booleans)  # OpenVINO fails at conditions that are read twice
legalize("LpNormalization")(normalization.lp_norm)  # OpenVINO adds to the norm
legalize("OptionalGetElement")(indexing.optional_get)
legalize("OptionalHasElement")(indexing.optional_has)
legalize("NonMaxSuppression")(raise_overlap_limit)
legalize("Pow")(power)  # OpenVINO has powers of floats and int32, of one type


AXES_ARE_OPERANDS = 18  # the opset from which they are
# Operators of which OpenVINO ignores the attribute 'axes', and in what terms they are written.
AXES_LOST = {
    "ReduceL1": partial(reduction.compose_reduction, "ReduceL1"),
    "ReduceLogSum": partial(reduction.compose_reduction, "ReduceLogSum"),
    "ReduceLogSumExp": reduction.log_sum_exp,
}


def is_transposed_column(g, x: Value, axes: Value | None) -> bool:
    """Whether a mean over listed axes is of a transposed tensor that may have an axis of one.

    OpenVINO moves the transposition behind the mean, and returns another shape.
    """
    node = g.producer(x)
    is_moved = node is not None and node.op == "Transpose"
    is_listed = axes is not None and axes.tensor is not None and axes.tensor.size > 0
    return is_moved and is_listed and any(not isinstance(d, int) or d == 1 for d in x.ranked_shape)


@legalize.for_each(REDUCES)
def legalize_reduction(op, g, x, axes=None, **form):
    """OpenVINO reduces integers in float32, and gets arithmetic wrong that it joins to that."""
    if (product := multiply_sizes(op, g, x, **form)) is not None:
        return product
    if x.type.kind not in "iu" or x.shape_data is not None:
        if op == "ReduceMean" and not form["keepdims"] and is_transposed_column(g, x, axes):
            kept = g.ReduceMean(x, axes, **{**form, "keepdims": 1})
            return g.Squeeze(kept, axes)
        return legalize_float_reduction(op, g, x, axes, **form)
    count = count_reduced(x, axes, form["noop_with_empty_axes"])
    if op == "ReduceMean" and count is not None:
        total = legalize_reduction("ReduceSum", g, x, axes, **form)
        return g.Div(total, g.const(count, x.type))
    return g.cast_like(g[op](g.cast(x, DType.FLOAT32), axes, **form), x)


def legalize_float_reduction(op, g, x, axes=None, **form):
    """OpenVINO gives the lowest finite number as the largest of elements that are all -inf."""
    if op in AXES_LOST and g.target.opset < AXES_ARE_OPERANDS:
        return AXES_LOST[op](g, x, axes, **form)
    if op in UNREDUCED:
        return transform_unreduced(op, g, x, axes, **form)
    if op not in ("ReduceMax", "ReduceMin") or (axes is not None and axes.tensor is None):
        return None
    node = g.producer(x)
    is_integer = node is not None and node.op == "Cast" and node.inputs[0].type.kind in "iu"
    if is_integer or (op == "ReduceMax" and node is not None and node.op in NON_NEGATIVE):
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
    """Infinities of a float64 input are the largest floats in OpenVINO.

    It casts NaN to false, and gives operators that return int64 results of bool where a Cast to
    that follows.
    """
    node = g.producer(x)
    counts = node is not None and node.op in COUNTS
    if to == ELEMENT_CODES[DType.BOOL] and (counts or x.type.kind == "f"):
        return g.Not(g.Equal(x, 0))
    if (number := truncate_quotient(g, x, to)) is not None:
        return number
    is_input = x.type is DType.FLOAT64 and g.producer(x) is None
    if not is_input or to != ELEMENT_CODES[DType.FLOAT32]:
        return None
    y = g.as_is("Cast", (x,), {"to": to, **form})
    is_largest = g.Equal(g.Abs(y), float(np.finfo(np.float32).max))
    return g.Where(is_largest, g.Mul(g.Sign(y), float("inf")), y)


@legalize("NonZero")
def legalize_non_zero(g, x):
    """OpenVINO leaves out a Cast before it, and counts fractions that are cast to 0."""
    node = g.producer(x)
    if node is None or node.op != "Cast":
        return None
    number = node.inputs[0] if x.type is DType.BOOL else x
    return None if number.type is DType.BOOL else g.NonZero(g.Not(g.Equal(number, 0)))


@legalize("LRN")
def legalize_lrn(g, x, *, alpha: float, beta: float, bias: float, size: int):
    """OpenVINO takes the bias for an integer: one of 1 is left, and a factor.

    It has no elements of channels by name.
    """
    require(
        isinstance(x.ranked_shape[1], int), f"OpenVINO has LRN of static channels only. {STATIC}"
    )
    if bias.is_integer():
        return None
    y = g.LRN(x, alpha=alpha / bias, beta=beta, bias=1.0, size=size)
    return g.Mul(y, bias**-beta)


@legalize("STFT")
def legalize_stft(g, x, step, window=None, length=None, *, onesided: int):
    """OpenVINO takes numbers for the step and the length of frames, and signals of a static size.

    It takes no window where both halves of the spectrum are asked for and the length is told.
    """
    is_held = all(v is not None and v.tensor is not None for v in (step, length))
    is_windowed = window is not None and (window.tensor is None or not onesided)
    if is_held and x.is_static and not is_windowed:
        return None
    return g.decompose("STFT", 17, x, step, window, length, onesided=onesided)


@legalize("Split")
def legalize_split(g, x, split=None, *, axis: int, num_outputs=None, outputs: int = 1):
    """OpenVINO has parts of one size where it is not told others."""
    n, count = x.ranked_shape[axis], num_outputs or outputs
    if split is not None or (isinstance(n, int) and n % count == 0):
        return None
    return g.decompose("Split", 18, x, None, axis=axis, num_outputs=count, outputs=outputs)


@legalize("TopK")
def legalize_top_k(g, x, k, *, axis: int, largest: int, sorted: int, outputs: int = 1):
    """OpenVINO returns equal elements in any order."""
    return rank_equal_elements(g, x, k, axis=axis, largest=largest, outputs=outputs)


@legalize("Slice")
def legalize_slice(g, x, starts, ends, axes=None, steps=None):
    """OpenVINO has no elements where it counts back from before the front of a dynamic size."""
    cuts = read_cuts(x, starts, ends, axes, steps)
    if cuts is None or not any(
        cut.step < 0 and cut.start < -1 and not isinstance(x.ranked_shape[axis], int)
        for axis, cut in cuts
    ):
        return None
    for axis, cut in cuts:
        first = g.Max(g.Neg(size(g, x, axis)), [cut.start]) if cut.start < -1 else [cut.start]
        x = g.as_is("Slice", (x, first, [cut.stop], [axis], [cut.step]), {})
    return x


@legalize("BitShift")
def legalize_bit_shift(g, x, y, *, direction: str):
    """OpenVINO makes an axis of scalars; of bytes, the largest one where they overflow, and the
    next one where they are divided in dynamic shapes.
    """
    if x.type is DType.UINT8:
        x_uint32, count = (g.cast(v, DType.UINT32) for v in (x, y))
        shifted = g.BitShift(x_uint32, g.Min(count, 8), direction=direction)
        return g.cast(g.Mod(shifted, 256) if direction == "LEFT" else shifted, x.type)
    if x.rank or y.rank:
        return None
    shifted = g.BitShift(g.Reshape(x, [1]), g.Reshape(y, [1]), direction=direction)
    return g.Reshape(shifted, g.const(np.zeros(0, np.int64)))


@legalize("Gemm")
def legalize_gemm(g, a, b, c=None, **form):
    """OpenVINO has factors of integers that are integers."""
    if a.type.kind == "f" or (form["alpha"].is_integer() and form["beta"].is_integer()):
        return None
    matrices = (v and g.cast(v, DType.FLOAT32) for v in (a, b, c))
    return g.cast_like(g.Gemm(*matrices, **form), a)


@legalize("MatMul")
def legalize_matmul(g, a, b):
    """OpenVINO fails to load some products over one element."""
    is_outer = a.rank > 1 and b.rank > 1 and a.ranked_shape[-1] == b.ranked_shape[-2] == 1
    return g.Mul(a, b) if is_outer else None


@legalize("Range")
def legalize_range(g, start, limit, delta):
    """OpenVINO counts where the step leads away from the end."""
    is_constant = [v.tensor is not None for v in (start, limit, delta)]
    counts_sizes = limit.shape_data is not None and is_constant[0] and not start.array().any()
    if all(is_constant) or counts_sizes:
        return None
    if not is_constant[2]:
        end = g.Where(g.Greater(delta, 0), g.Max(start, limit), g.Min(start, limit))
    else:
        end = (g.Max if delta.array() > 0 else g.Min)(start, limit)
    return g.as_is("Range", (start, end, delta), {})


@legalize("GroupNormalization")
def legalize_group_norm(g, x, scale, bias, *, num_groups: int, epsilon: float, **form):
    """OpenVINO fails to load it without window axes, and with one channel."""
    if x.rank > 2 and x.ranked_shape[1] == num_groups:
        return g.InstanceNormalization(x, scale, bias, epsilon=epsilon)
    form |= {"num_groups": num_groups, "epsilon": epsilon}
    return g.decompose("GroupNormalization", 21, x, scale, bias, **form) if x.rank < 3 else None


@legalize("PRelu")
def legalize_prelu(g, x, slope):
    """OpenVINO takes slopes behind a product of matrices for those of its columns."""
    node = g.producer(x)
    is_product = node is not None and node.op in ("Gemm", "MatMul")
    return elementwise.prelu(g, x, slope) if is_product and slope.shape not in ((), (1,)) else None


# OpenVINO takes scales by channel of the weights for those of their second axis.
legalize("QLinearConv")(partial(emit_qlinear_conv, Quantized.dequantize))


@legalize("Div")
def legalize_integer_division(g, a, b):
    """OpenVINO rounds an integer quotient where it joins the division by a constant to a product.

    It does so behind reductions, products and Resize too, but not where the dividend is read twice;
    and for bytes of dynamic shapes.
    """
    if a.type.kind in "iu" and a.type.bits < 32 and not (a.is_static and b.is_static):
        quotient = g.Div(g.cast(a, DType.INT32), g.cast(b, DType.INT32))
        return g.cast_like(quotient, a)
    if a.type.kind == "f" or b.tensor is None or a.shape_data is not None or is_multiple(g, a, b):
        return None
    return g.as_is("Div", (g.Sub(a, g.Mod(a, b, fmod=1)), b), {})


def is_multiple(g, a: Value, b: Value) -> bool:
    """Whether ``a`` is what another integer has above its remainder by ``b``."""
    difference = g.producer(a)
    if difference is None or difference.op != "Sub":
        return False
    whole, rest = difference.inputs
    remainder = g.producer(rest)
    return remainder is not None and remainder.op == "Mod" and remainder.inputs == (whole, b)


def has_diagonal(call: Call) -> bool:
    """Whether a term of an Einsum has a label twice."""
    terms = call.attrs["equation"].replace(" ", "").partition("->")[0].split(",")
    return any(len(set(term)) < len(term.replace("...", ".")) for term in terms)


def clip_line(g, x, *, alpha: float, beta: float):
    """A line between 0 and 1."""
    return g.Clip(g.Add(g.Mul(x, alpha), beta), 0, 1)


def compress_flat(g, x, flags, **form):
    """OpenVINO loses the rank where no axis is named and sizes are dynamic, and fails at one."""
    return g.Compress(x if x.rank == 1 else g.Reshape(x, [-1]), flags, axis=0)


def is_scalar(call: Call) -> bool:
    """Whether the first operand has no axes: OpenVINO reads memory that is not filled."""
    return not call.x.rank


# Attributes of 0 that OpenVINO takes for the default values.
NO_SLOPE = Form("alpha or gamma of 0", lambda call: not (call.attrs["alpha"] and
                call.attrs["gamma"]), by(elementwise.selu))  # fmt: skip
NO_LINE = Form("alpha or beta of 0", lambda call: not (call.attrs["alpha"] and
               call.attrs["beta"]), by(clip_line))  # fmt: skip
UNPLACED = Form(
    "elements that are neither sorted nor placed",
    lambda call: not call.attrs["sorted"] and call.outputs < 3, advice="Give sorted=1",
)  # fmt: skip
LACKS: Lacks = {
    "BatchNormalization": [shared.MIXED_TYPES],
    "Clip": [shared.COMPUTED_BOUNDS],
    "Col2Im": [Form("other than two axes", lambda call: call.inputs[1].shape != (2,),
                    decompose(18))],
    "Compress": [Form("no axis", lambda call: call.attrs.get("axis") is None, by(compress_flat))],
    "Einsum": [Form("diagonals", has_diagonal, decompose(12))],
    # OpenVINO makes an axis of a shape without sizes
    "Expand": [Form("no sizes", lambda call: call.inputs[1].shape == (0,), shared.take_first)],
    "GridSample": [Form("other than images", lambda call: call.x.rank != 4, decompose(20))],
    "HardSigmoid": [NO_LINE],
    # OpenVINO returns memory that it does not fill for an input that is the output
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), (shared.ONE_OPERAND,)),
    "Pad": [shared.WRAP],
    "QuantizeLinear": [Form("block_size", lambda call: bool(call.attrs["block_size"]),
                            decompose(21, "precision"))],
    "Selu": [NO_SLOPE],
    "Shrink": [shared.NEGATIVE_LAMBD],
    "Tile": [Form("no axes", is_scalar, shared.take_first)],
    "Unique": [UNPLACED],
}  # fmt: skip
