"""Operators that a backend's list lacks, in terms of others that it has.

Operators that the standard added later or defines by a function need no expression: the legalizer
decomposes them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from serde import decompositions as families
from serde.decompositions import normalization, reduction
from serde.decompositions.elementwise import is_power_of_two
from serde.decompositions.table import decompositions
from serde.errors import require
from serde.legalize.forms.form import CONSTANT, STATIC
from serde.rewrite.families import import_families
from serde.version_converter.adapters.resize import (
    REPEATING,
    decompose_resize,
    every_axis,
    static_scales,
)
from serde.version_converter.adapters.resize_coordinates import Sampling

from .expressions import Expression

MOST_FACTORS = 16  # of a power that is written factor by factor
LARGEST_BOUND = 16  # whose share of a rounding, 1e-6, is small beside what it bounds


EXPRESSIONS: list[Expression] = []  # in the order in which they are tried


def express(
    op: str, needs: str, is_partial: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a way to write an operator."""

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        EXPRESSIONS.append(Expression(op, frozenset(needs.split()), rule, is_partial))
        return rule

    return register


@express("BatchNormalization", "Mul Add")
def split_batch_norm(g, x, *parameters, epsilon, training_mode):
    """A product and a sum."""
    require(not training_mode, "training_mode=1: export the model for inference")
    return normalization.scale_channels(g, x, parameters, epsilon)


@express("Gemm", "MatMul")
def split_gemm(g, a, b, c=None, *, alpha, beta, transA, transB):
    """A product and a sum; a constant operand is transposed and scaled once."""
    a = g.Transpose(a, perm=(1, 0)) if transA else a
    b = g.Transpose(b, perm=(1, 0)) if transB else b
    product = g.MatMul(a, b if alpha == 1 else g.Mul(b, alpha))
    return product if c is None else g.Add(product, c if beta == 1 else g.Mul(c, beta))


@express("MatMul", "Gemm", is_partial=True)
def multiply_matrices(g, a, b):
    """A product of two matrices."""
    return g.Gemm(a, b) if a.rank == b.rank == 2 else None


@express("Flatten", "Reshape")
def reshape_flat(g, x, *, axis):
    """A Reshape; one of the two sizes may be dynamic, and both where the first axis is kept."""
    if axis == 1:
        return g.Reshape(x, [0, -1])
    sizes = [x.ranked_shape[:axis], x.ranked_shape[axis:]]
    known = [prod(s) if all(isinstance(d, int) for d in s) else -1 for s in sizes]
    require(known != [-1, -1], "Flatten of dynamic sizes on both sides of its axis")
    return g.Reshape(x, known)


@express("Squeeze", "Reshape")
def reshape_squeezed(g, x, axes=None):
    """A Reshape of static sizes."""
    sizes = x.static_shape
    dropped = axes.ints() if axes is not None else [a for a, d in enumerate(sizes) if d == 1]
    dropped = {a % x.rank for a in dropped}
    return g.Reshape(x, [d for a, d in enumerate(sizes) if a not in dropped])


@express("Unsqueeze", "Reshape")
def reshape_unsqueezed(g, x, axes):
    """A Reshape of static sizes."""
    sizes, rank = list(x.static_shape), x.rank + axes.array().size
    for axis in sorted(a % rank for a in axes.ints()):
        sizes.insert(axis, 1)
    return g.Reshape(x, sizes)


@express("Split", "Slice")
def slice_parts(g, x, split=None, *, axis, num_outputs=None, outputs=1):
    """The parts one by one."""
    if split is None:
        n = x.ranked_shape[axis]
        require(isinstance(n, int), f"parts of a dynamic size. {STATIC}")
        part = -(-n // (num_outputs or outputs))
        ends = [min(n, part * (i + 1)) for i in range(outputs)]
    else:
        require(split.tensor is not None, f"computed sizes of parts. {CONSTANT}")
        ends = np.cumsum(split.ints()).tolist()
    pairs = zip([0, *ends[:-1]], ends, strict=True)
    parts = tuple(g.Slice(x, [start], [end], [axis], [1]) for start, end in pairs)
    return parts if outputs > 1 else parts[0]


@express("Gather", "Slice Reshape", is_partial=True)
def slice_element(g, x, indices, *, axis):
    """One element of an axis, at a constant place."""
    if indices.tensor is None or indices.tensor.size != 1 or not x.is_static:
        return None
    at, sizes = int(indices.array().item()) % x.static_shape[axis], list(x.static_shape)
    sizes[axis : axis + 1] = indices.static_shape
    return g.Reshape(g.Slice(x, [at], [at + 1], [axis], [1]), sizes)


@express("GlobalAveragePool", "ReduceMean")
def mean_of_image(g, x):
    return reduction.global_average(g, x)


@express("ReduceMean", "GlobalAveragePool Reshape", is_partial=True)
def pool_mean(g, x, axes=None, *, keepdims, noop_with_empty_axes):
    """A mean over all axes behind the channels."""
    is_image = axes is not None and axes.tensor is not None and x.rank > 2
    if not is_image or sorted(a % x.rank for a in axes.ints()) != list(range(2, x.rank)):
        return None
    pooled = g.GlobalAveragePool(x)
    return pooled if keepdims else g.Reshape(pooled, [0, 0])


express("GlobalMaxPool", "ReduceMax")(reduction.global_max)


@express("Sub", "Add Mul")
def add_negative(g, x, y):
    """A sum with the negative."""
    require(x.type.kind == "f", "Sub of integers")
    return g.Add(x, g.Mul(y, -1.0))


@express("Div", "Mul", is_partial=True)
def multiply_exactly(g, x, y):
    """A product with the reciprocal of a power of two."""
    if x.type.kind != "f" or not is_power_of_two(y):
        return None
    return g.Mul(x, g.const(1 / y.array(), x.type))


@express("Div", "Mul Add Sub Clip", is_partial=True)
def multiply_by_reciprocal(g, x, y):
    """A product with the reciprocal of a constant, and what that leaves.

    41 times 1/41 is less than 1 in float32. What is left of numbers that are not finite is none:
    they are clipped there.
    """
    if x.type.kind != "f" or y.tensor is None or not np.all(y.array()) or y.rank > x.rank:
        return None
    divisor = y.array().astype(np.float64)
    inverse = g.const((1 / divisor).astype(x.type.numpy), x.type)
    most = float(np.finfo(x.type.numpy).max) / 2 * min(1.0, float(np.abs(divisor).min()))
    finite = g.Clip(x, g.const(-most, x.type), g.const(most, x.type))
    rest = g.Sub(finite, g.Mul(g.Mul(finite, inverse), y))
    return g.Add(g.Mul(x, inverse), g.Mul(rest, inverse))


@express("Neg", "Mul")
def multiply_by_minus_one(g, x):
    """A product with -1, which changes the sign of every float, those of zeros too."""
    require(x.type.kind == "f", "Neg of integers")
    return g.Mul(x, -1.0)


@express("Sum", "Add")
def add_one_by_one(g, first, *others):
    """Sums of two."""
    for other in others:
        first = g.Add(first, other)
    return first


@express("Relu", "Max")
def larger_than_zero(g, x):
    """The larger of an element and 0."""
    return g.Max(x, g.const(0, x.type))


@express("Relu", "Clip")
def clip_at_zero(g, x):
    """What is 0 at least."""
    return g.Clip(x, g.const(0, x.type))


@express("Max", "Relu", is_partial=True)
def cut_at_zero(g, *operands):
    """The larger of an element and 0."""
    zeros = [v.tensor is not None and not v.array().any() for v in operands]
    if len(operands) != 2 or any(zeros) is all(zeros):
        return None
    zero, x = operands[zeros.index(True)], operands[zeros.index(False)]
    return g.Relu(x) if zero.tensor.size == 1 and zero.rank <= x.rank else None


@express("Clip", "Max Min")
def cut_at_bounds(g, x, low=None, high=None):
    """The larger of an element and a bound, and the smaller."""
    x = x if low is None else g.Max(x, low)
    return x if high is None else g.Min(x, high)


@express("Clip", "Relu Sub", is_partial=True)
def cut_by_relu(g, x, low=None, high=None):
    """Small bounds by what is above them: each sum rounds by a share of the bound."""
    bounds = [v for v in (low, high) if v is not None]
    if x.type.kind != "f" or any(v.tensor is None or v.tensor.size != 1 for v in bounds):
        return None
    if not all(abs(float(v.array().item())) <= LARGEST_BOUND for v in bounds):
        return None
    least = low is not None and low.array().any()
    above = x if low is None else g.Relu(g.Sub(x, low) if least else x)
    if high is None:
        return g.Add(above, low) if least else above
    most = g.Sub(high, low) if least else high
    return g.Sub(high, g.Relu(g.Sub(most, above)))


express("LogSoftmax", "Sub ReduceMax Log ReduceSum Exp")(normalization.log_softmax)
# Decompositions that all targets share, and what they are made of.
SHARED = {
    "DepthToSpace": "Reshape Transpose", "HardSigmoid": "Mul Add Clip",
    "LRN": "Mul Pad Slice Sum Add Pow Div", "Mean": "Sum Div", "Reciprocal": "Div",
    "ReduceL1": "Abs ReduceSum", "ReduceL2": "Mul ReduceSum Sqrt",
    "ReduceLogSum": "ReduceSum Log", "ReduceSumSquare": "Mul ReduceSum", "Selu": "Elu Mul",
    "Softplus": "Relu Log Exp Neg Abs Add", "Softsign": "Div Add Abs",
    "SpaceToDepth": "Reshape Transpose",
}  # fmt: skip
import_families(families.__name__, families.__path__)
for _op, _needs in SHARED.items():
    express(_op, _needs)(decompositions.rules[_op].function)


@express("Softmax", "Sub ReduceMax ReduceSum Exp Div")
def share_of_powers(g, x, *, axis):
    """The largest element is subtracted, so that no exponential overflows."""
    powers = g.Exp(g.Sub(x, g.ReduceMax(x, [axis], keepdims=1)))
    return g.Div(powers, g.ReduceSum(powers, [axis], keepdims=1))


@express("Sigmoid", "Mul Add Tanh")
def shift_tanh(g, x):
    """Half of the hyperbolic tangent of a half, and a half."""
    return g.Add(g.Mul(g.Tanh(g.Mul(x, 0.5)), 0.5), 0.5)


@express("LeakyRelu", "Relu Mul Sub Neg")
def slope_of_negatives(g, x, *, alpha):
    """The parts above and below 0."""
    return g.Sub(g.Relu(x), g.Mul(g.Relu(g.Neg(x)), alpha))


@express("PRelu", "Relu Mul Sub Neg")
def slopes_of_negatives(g, x, slope):
    """The same by element."""
    return g.Sub(g.Relu(x), g.Mul(g.Relu(g.Neg(x)), slope))


@express("Pow", "Mul", is_partial=True)
def multiply_factors(g, x, y):
    """Integer powers as products."""
    if y.tensor is None or y.tensor.size != 1 or y.rank > x.rank or x.type.kind != "f":
        return None
    exponent = float(y.array().item())
    if not exponent.is_integer() or not 0 < exponent <= MOST_FACTORS:
        return None
    power = x
    for _ in range(int(exponent) - 1):
        power = g.Mul(power, x)
    return power if exponent > 1 else g.Identity(x)


@express("Pow", "Sqrt", is_partial=True)
def take_root(g, x, y):
    """The power of a half."""
    is_half = y.tensor is not None and y.tensor.size == 1 and y.array().item() == 0.5
    return g.Sqrt(x) if is_half and y.rank <= x.rank else None


@express("Abs", "Max Neg")
def larger_of_both_signs(g, x):
    """The larger of an element and its negative."""
    require(x.type.kind == "f", "Abs of integers")
    return g.Max(x, g.Neg(x))


@express("Abs", "Relu Neg Add")
def add_both_signs(g, x):
    """The sum of the parts above and below 0."""
    return g.Add(g.Relu(x), g.Relu(g.Neg(x))) if x.type.kind == "f" else None


@express("Min", "Max Neg")
def negate_largest(g, *operands):
    """The largest of the negatives."""
    require(operands[0].type.kind == "f", "Min of integers")
    return g.Neg(g.Max(*map(g.Neg, operands)))


@express("ReduceMin", "ReduceMax Neg")
def reduce_negatives(g, x, axes=None, **form):
    """The largest of the negatives."""
    require(x.type.kind == "f", "ReduceMin of integers")
    return g.Neg(g.ReduceMax(g.Neg(x), axes, **form))


@express("Resize", "ConvTranspose", is_partial=True)
def repeat_pixels(g, x, *operands, **form):
    """Images whose pixels are repeated: a transposed convolution by ones, which overlap nowhere."""
    ratios, channels = _count_repeats(g, x, operands, **form), x.ranked_shape[1:2]
    is_image = x.rank == 4 and x.type.kind == "f" and isinstance(channels[0], int)
    if not is_image or ratios is None or ratios[:2] != [1, 1]:
        return None
    ones = g.const(np.ones([*channels, 1, *ratios[2:]], x.type.numpy), x.type)
    return g.ConvTranspose(x, ones, strides=ratios[2:], group=channels[0])


@express("Resize", "Gather")
def gather_pixels(g, x, *operands, keep_aspect_ratio_policy, axes=None, **sampling):
    """Any other Resize, axis by axis."""
    form = {"keep_aspect_ratio_policy": keep_aspect_ratio_policy, "axes": axes}
    x, roi, scales, sizes = every_axis(g, x, *(*operands, None, None, None)[:3], **form)
    return decompose_resize(g, x, roi, scales, sizes, Sampling.of(sampling))


@express("Resize", "Concat Reshape", is_partial=True)
def join_repeated_pixels(g, x, *operands, **form):
    """Elements that are repeated along their axes: copies, joined beside each other."""
    ratios = _count_repeats(g, x, operands, **form)
    if ratios is None or not all(isinstance(d, int) for d in x.ranked_shape[1:]):
        return None
    sizes: list[Any] = [d if isinstance(d, int) else -1 for d in x.ranked_shape]
    for axis, ratio in enumerate(ratios):
        if ratio > 1:
            rows = g.Reshape(x, [-1, 1, prod(sizes[axis + 1 :])])
            sizes[axis] *= 1 if sizes[axis] == -1 else ratio
            x = g.Reshape(g.Concat(*[rows] * ratio, axis=1), sizes)
    return x


def _count_repeats(g, x, operands, keep_aspect_ratio_policy, axes=None, **sampling):
    """How often a Resize repeats each element along each axis; None where it does not do that."""
    form = {"keep_aspect_ratio_policy": keep_aspect_ratio_policy, "axes": axes}
    x, _, scales, sizes = every_axis(g, x, *(*operands, None, None, None)[:3], **form)
    how = Sampling.of(sampling)
    factors = None if scales is not None and sizes is not None else static_scales(x, scales, sizes)
    is_repeated = how.mode == "nearest" and (how.coordinates, how.nearest_mode) in REPEATING
    if factors is None or not is_repeated:
        return None
    ratios = [float(ratio) for _, ratio in factors]
    return [int(r) for r in ratios] if all(r.is_integer() and r > 0 for r in ratios) else None


express("Resize", "")(gather_pixels)
express("Dropout", "")(normalization.drop_nothing)
