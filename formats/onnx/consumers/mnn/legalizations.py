"""Legalizations for MNN: operators and forms that it lacks or computes wrongly, in MNN 3.6.1."""

from __future__ import annotations

import math

import numpy as np

from serde.decompositions import elementwise, indexing, normalization, recurrent, reduction
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.legalize.forms import operators as shared
from serde.legalize.forms.form import STATIC, Call, Form, Lacks
from serde.legalize.target import legalization_table
from serde.spec.schema import ELEMENT_TYPES
from serde.version_converter.adapters.common import broadcast_shapes
from serde.version_converter.adapters.elementwise import floor_mod
from serde.version_converter.adapters.indexing import linearize_indices
from serde.version_converter.adapters.normalization import standardize
from serde.version_converter.adapters.quantization import emit_dequantize
from serde.version_converter.adapters.recurrent import KINDS
from serde.version_converter.adapters.resize import decompose_resize, every_axis
from serde.version_converter.adapters.resize_coordinates import Sampling

from ..front_indices import count_from_front, count_rows_from_front
from ..layer_norm import has_other_weights
from ..powers import multiply_factors
from ..quotients import is_integer_valued, legalize_quotients, truncate_quotient
from ..scatter_reductions import decompose_scatter_nd, reduction_version
from ..slopes import is_by_channel
from ..top_k import rank_equal_elements
from .biases import add_apart
from .bounds import legalize_bounds
from .comparisons import legalize_comparisons
from .outputs import MOVED
from .reductions import legalize_reductions

legalize = legalization_table("ir → mnn")
legalize_comparisons(legalize)
legalize_bounds(legalize)
legalize_reductions(legalize)
legalize_quotients(legalize, has_round=False)
legalize("Add")(add_apart)
legalize("Dropout")(normalization.drop_nothing)
legalize("Softplus")(elementwise.stable_softplus)
legalize.for_each(KINDS)(recurrent.unroll_recurrent)
legalize("GlobalAveragePool")(reduction.global_average)
legalize("GlobalMaxPool")(reduction.global_max)
legalize("OneHot")(indexing.one_hot)
legalize("SpaceToDepth")(indexing.space_to_depth)  # of which MNN adds up other elements in CumSum
legalize("ReduceLogSumExp")(reduction.log_sum_exp)
legalize("OptionalGetElement")(indexing.optional_get)
legalize("OptionalHasElement")(indexing.optional_has)


@legalize.for_each(("Max", "Min"))
def legalize_variadic(op, g, *operands):
    """MNN compares integers in float32 for the larger one."""
    a, b = operands
    return g.Where(g.Greater(a, b), a, b) if op == "Max" and a.type.kind != "f" else None


@legalize.for_each(("ArgMax", "ArgMin"))
def legalize_arg_extreme(op, g, x, *, axis: int, keepdims: int, select_last_index: int):
    """MNN returns the first, and compares floats: of integers, which are the extreme."""
    form = {"axis": axis, "keepdims": keepdims}
    if x.type.kind in "iu":
        extreme = g[op.replace("Arg", "Reduce")](x, [axis], keepdims=1)
        is_extreme = g.cast(g.Equal(x, extreme), DType.FLOAT32)
        return g.ArgMax(is_extreme, select_last_index=select_last_index, **form)
    if not select_last_index:
        return None
    return g.decompose(op, 12, x, select_last_index=1, **form)


@legalize("GatherElements")
def legalize_gather_elements(g, x, indices, *, axis: int):
    """MNN takes indices from the front."""
    front = count_from_front(g, x, indices, axis)
    return None if front is indices else g.as_is("GatherElements", (x, front), {"axis": axis})


@legalize("ScatterElements")
def legalize_scatter_elements(g, x, indices, updates, *, axis: int, reduction: str):
    """MNN has no reductions, and takes indices from the front."""
    if reduction == "none":
        front = count_from_front(g, x, indices, axis)
        return None if front is indices else g.as_is(
            "ScatterElements", (x, front, updates), {"axis": axis, "reduction": "none"}
        )  # fmt: skip
    version, form = reduction_version(reduction), {"axis": axis, "reduction": reduction}
    return g.decompose("ScatterElements", version, x, indices, updates, **form)


@legalize("Div")
def legalize_division(g, a, b):
    """MNN divides by 1 where the divisor is computed from sizes by name."""
    if a.type.kind != "f" or not is_of_sizes(g, b):
        return None
    inverse = g.Reciprocal(b)
    quotient = g.Mul(a, inverse)
    if a.tensor is None and not is_of_sizes(g, a):
        return quotient
    rest = g.Sub(a, g.Mul(quotient, b))  # coordinates: 49 times 1/49 is not 1
    return g.Add(quotient, g.Mul(rest, inverse))


@legalize("Mul")
def legalize_product(g, a, b):
    """MNN multiplies integers in float32: it rounds beyond 24 bits, and does not wrap around."""
    if a.type.kind == "f":
        return
    sizes = [bound_size(g, a), bound_size(g, b)]
    known = [size for size in sizes if size is not None]
    is_small = len(known) == len(sizes) and math.prod(known) <= 1 << 31
    require(
        is_small or max(known, default=0) <= 1 << 24,
        "multiplies integers to more than 32 bits, which MNN does in float32. Use smaller numbers",
    )


def bound_size(g, value: Value) -> int | None:
    """The largest size of integers that are constants, or come from a table; None of others."""
    node = None if value.tensor is not None else g.producer(value)
    table = node.inputs[0] if node is not None and node.op == "Gather" else value
    if table.tensor is None:
        return None
    return int(np.abs(table.array().astype(np.int64)).max(initial=0))


@legalize("Mod")
def legalize_mod(g, x, y, *, fmod: int):
    """MNN's remainder of floats has the sign of the divisor, and is exact for integer divisors."""
    if x.type.kind != "f":
        return None
    require(
        is_integer_valued(g, y), "MNN has remainders of floats by integers only. Round the divisor"
    )
    if not fmod:
        return floor_mod(g, x, y)
    size = g.as_is("Mod", (g.Abs(x), g.Abs(y)), {"fmod": fmod})
    return g.Mul(g.Sign(x), size)


def is_of_sizes(g, v) -> bool:
    """Whether a value is computed from sizes and constants only, and not a constant."""
    seen, stack = {v}, [v]
    while stack:
        node = g.producer(stack.pop())
        if node is None:
            return False
        if node.op in ("Shape", "Size"):
            continue
        operands = {v for v in node.inputs if v is not None and v.tensor is None} - seen
        seen |= operands
        stack += operands
    return v.tensor is None


@legalize("Resize")
def legalize_resize(
    g, x, roi=None, scales=None, sizes=None, *, keep_aspect_ratio_policy: str, axes=None, **sampling
):
    """MNN looks at other places."""
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=keep_aspect_ratio_policy, axes=axes
    )
    return decompose_resize(g, x, roi, scales, sizes, Sampling.of(sampling))


@legalize("Pow")
def legalize_pow(g, x, y):
    """MNN has powers of floats."""
    if (product := multiply_factors(g, x, y)) is not None:
        return product
    require(x.type is DType.FLOAT32, "MNN has powers of float32 only. Use float32 (--fp32)")
    return None if x.type is y.type else g.Pow(x, g.cast_like(y, x))


@legalize("Where")
def legalize_where(g, condition, x, y):
    """MNN broadcasts single elements only."""
    operands = condition, x, y
    shapes = {v.ranked_shape for v in operands}
    if len(shapes) == 1 and None not in x.ranked_shape:
        return None
    shape = broadcast_shapes(g, *operands)
    known = shape.shape_data if None not in (shape.shape_data or ()) else None
    expanded = [v if v.ranked_shape == known else g.Expand(v, shape) for v in operands]
    return g.as_is("Where", expanded, {})


@legalize("Cast")
def legalize_cast(g, x, *, to: int, **form):
    """MNN's booleans are integers, which a Cast leaves as they are."""
    if ELEMENT_TYPES[to] is not DType.BOOL or x.type is DType.BOOL:
        return truncate_quotient(g, x, to)
    return g.Not(g.Equal(x, 0))


@legalize("Softmax")
def legalize_softmax(g, x, *, axis: int):
    """MNN overflows for numbers above 88, but along the last axis."""
    inner = x.ranked_shape[axis % x.rank + 1 :]
    if all(n == 1 for n in inner):
        return None
    below = g.Sub(x, g.ReduceMax(x, [axis], keepdims=1))
    return g.as_is("Softmax", (below,), {"axis": axis})


@legalize("DequantizeLinear")
def legalize_dequantize(g, x, scale, zero=None, *, axis: int, block_size: int, **form):
    """MNN has float32 for products of int32, as ONNX Runtime computes them."""
    if x.type is not DType.INT32:
        return None
    x_float32 = g.cast(x, DType.FLOAT32)
    return emit_dequantize(g, x_float32, scale, zero, scale.type, axis, block_size)


@legalize("Gemm")
def legalize_gemm(g, a, b, c=None, *, transA: int, transB: int, **form):
    """MNN loses the transposition of what it multiplies a constant by, and takes a row to add."""
    columns = b.ranked_shape[0 if transB else 1]
    is_row = c is None or (isinstance(columns, int) and c.shape in ((columns,), (1, columns)))
    if not is_row:
        return elementwise.gemm(g, a, b, c, transA=transA, transB=transB, **form)
    return g.Gemm(g.Transpose(a, perm=(1, 0)), b, c, transB=transB, **form) if transA else None


@legalize("MatMul")
def legalize_matmul(g, a, b):
    """MNN has matrices only."""
    if a.rank > 1 and b.rank > 1:
        return None
    y = g.MatMul(g.Unsqueeze(a, [0]) if a.rank < 2 else a, g.Unsqueeze(b, [1]) if b.rank < 2 else b)
    axes = [y.rank - 1] * (b.rank < 2) + [y.rank - 2] * (a.rank < 2)
    kept = [i for i in range(y.rank) if i not in axes]
    return g.Reshape(y, g.Gather(g.Shape(y), kept)) if kept else g.Squeeze(y, sorted(axes))


@legalize("Concat")
def legalize_concat(g, *operands, axis: int):
    """MNN reads what is not there of operands without elements."""
    some = [v for v in operands if 0 not in v.ranked_shape]
    if len(some) in (0, len(operands)):
        return None
    return g.Concat(*some, axis=axis) if len(some) > 1 else g.Identity(some[0])


@legalize("Split")
def legalize_split(g, x, split=None, *, axis: int, num_outputs=None, outputs: int = 1):
    """MNN has no parts without elements."""
    sizes = split.ints() if split is not None and split.tensor is not None else ()
    if 0 not in sizes:
        return None
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return tuple(g.Slice(x, [e - n], [e], [axis], [1]) for n, e in zip(sizes, ends, strict=True))


@legalize("Reshape")
def legalize_reshape(g, x, shape, *, allowzero: int):
    """MNN takes no list of none."""
    return g.Squeeze(x, list(range(x.rank))) if shape.shape == (0,) and x.rank else None


@legalize("TopK")
def legalize_top_k(g, x, k, *, axis: int, largest: int, sorted: int, outputs: int = 2):
    """MNN returns equal elements in any order."""
    return rank_equal_elements(g, x, k, axis=axis, largest=largest, outputs=outputs)


@legalize("InstanceNormalization")
def legalize_instance_norm(g, x, scale, bias, *, epsilon: float):
    """MNN loses digits where there are few elements."""
    inner = list(range(1, x.rank - 1))
    scale, bias = (g.Unsqueeze(v, inner) for v in (scale, bias))
    centred, _, inverse = standardize(g, x, list(range(2, x.rank)), epsilon)
    return g.Add(g.Mul(g.Mul(centred, inverse), scale), bias)


@legalize("ConstantOfShape")
def legalize_constant_of_shape(g, shape, *, value=None):
    """MNN fills nothing in unless a value is given."""
    return g.Expand(g.const(0.0, DType.FLOAT32), shape) if value is None else None


@legalize("GatherND")
def legalize_gather_nd(g, x, indices, *, batch_dims: int):
    """MNN takes indices from the front."""
    front = count_rows_from_front(g, x, indices)
    return None if front is indices else g.as_is("GatherND", (x, front), {"batch_dims": 0})


@legalize("ScatterND")
def legalize_scatter_nd(g, x, indices, updates, *, reduction: str):
    """MNN has no reductions, and takes a list of indices of one axis, from the front."""
    if reduction != "none":
        return decompose_scatter_nd(g, x, indices, updates, reduction=reduction)
    depth = indices.ranked_shape[-1]
    require(isinstance(depth, int), f"indices of a dynamic number of axes. {STATIC}")
    if indices.rank != 2 or depth > 1:
        rest = g.sizes_of(x)[depth:]
        places = linearize_indices(g, x, indices, g.const([depth], DType.INT64))
        operands = g.reshape(x, [-1, *rest]), g.Reshape(places, [-1, 1])
        y = g.ScatterND(*operands, g.reshape(updates, [-1, *rest]))
        return g.reshape(y, g.sizes_of(x))
    front = count_rows_from_front(g, x, indices)
    rows = x, front, updates
    return None if front is indices else g.as_is("ScatterND", rows, {"reduction": "none"})


@legalize("Abs")
def legalize_abs(g, x):
    """MNN computes those of integers in float32."""
    return None if x.type.kind == "f" else g.Max(x, g.Sub(0, x))


@legalize("NonMaxSuppression")
def legalize_non_max_suppression(
    g, boxes, scores, most=None, *limits, center_point_box: int
):  # fmt: skip
    """MNN reads boxes by their corners, and those of the first sample of a batch by name."""
    none = most is None or (most.tensor is not None and not most.array().any())
    require(not none, "MNN has no results without elements, as those of 0 boxes for a class")
    require(
        isinstance(boxes.ranked_shape[0], int),
        "MNN suppresses boxes of one sample where the batch has a name: give its size (--static, "
        "--input)",
    )
    if center_point_box:
        middle, sides = (g.Slice(boxes, [at], [at + 2], [2]) for at in (0, 2))
        half = g.Mul(g.Max(sides, 0.0), 0.5)  # with less than 0 a box overlaps none
        boxes = g.Concat(g.Sub(middle, half), g.Add(middle, half), axis=2)
    overlap, least, *_ = (*limits, None, None)
    ranks = rank_scores(g, scores)
    if least is not None:
        ranks, least = g.Where(g.Greater(scores, least), ranks, 0.0), g.const([0.5], DType.FLOAT32)
    form = {"center_point_box": 0}
    return g.as_is("NonMaxSuppression", (boxes, ranks, most, overlap, least), form)


def rank_scores(g, scores: Value):
    """Numbers in the order of scores, no two of them equal: MNN takes equal ones in any order."""
    count = g.size_of(scores, 2)
    _, places = g.TopK(scores, g.shape_from([count]), axis=2, outputs=2)
    zeros = g.full_like(scores, 0)
    falling = g.cast(g.Sub(count, g.index_range(count)), DType.FLOAT32)
    return g.ScatterElements(zeros, places, g.Add(zeros, falling), axis=2)


def clips_wrongly(call: Call) -> bool:
    """Whether MNN clips no such elements, or loses the shape that a Squeeze gives."""
    node = call.g.producer(call.x)
    is_moved = node is not None and node.op in MOVED
    return is_moved or call.x.type is not DType.FLOAT32


def is_unlike_channels(call: Call) -> bool:
    """Whether slopes are computed, or not by channel."""
    slope = call.inputs[1]
    return slope.tensor is None or not is_by_channel(slope, call.x)


LACKS: Lacks = {
    # MNN loses epsilon
    "BatchNormalization": [
        shared.TRAINING, Form("any statistics", lambda call: True, shared.scale_by_channel)
    ],
    # a shift is a product of integers, which MNN computes wrongly where it overflows
    "BitShift": [Form("elements of any type", lambda call: True)],
    "Clip": [
        shared.NO_BOUNDS, shared.COMPUTED_BOUNDS, shared.CROSSED_BOUNDS,
        Form("elements but float32, or moved ones", clips_wrongly, shared.clip_by_extremes),
    ],
    "GatherND": [shared.BATCH_DIMS],
    "LayerNormalization": [shared.LAYER_WEIGHTS.where(has_other_weights)],
    "Max": [shared.ONE_OPERAND, shared.MORE_OPERANDS],  # MNN aborts, and broadcasts two only
    "Mean": [shared.MEAN],
    "Min": [shared.ONE_OPERAND, shared.MORE_OPERANDS],
    "PRelu": [shared.SLOPES.where(is_unlike_channels)],
    "Reshape": [shared.ALLOW_ZERO],
    "Split": [Form("one part", lambda call: call.outputs == 1, shared.take_first)],
    "Sum": [shared.ONE_OPERAND, shared.SUMMANDS],
}  # fmt: skip
