"""Legalizations for ncnn: operators and forms that it lacks or computes wrongly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from serde.decompositions import elementwise, normalization, recurrent
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.legalize.forms import operators as shared
from serde.legalize.forms.form import CONSTANT, Call, Form, Lacks, by
from serde.legalize.target import legalization_table
from serde.spec.traits import ARITHMETIC, RESHAPES
from serde.version_converter.adapters.padding import expand_pads
from serde.version_converter.adapters.recurrent import KINDS

from ..layer_norm import has_other_weights
from ..negative_pads import crop_negative_pads
from ..powers import MOST_FACTORS
from ..quotients import legalize_quotients
from ..slopes import is_by_channel
from .booleans import legalize_booleans
from .fusions import legalize_fusions
from .reductions import MOST_AXES, legalize_reductions
from .slices import MOST_PARTS, legalize_slices
from .windows import legalize_windows

legalize = legalization_table("ir → ncnn")
legalize_booleans(legalize)
legalize_fusions(legalize)
legalize_slices(legalize)
legalize_reductions(legalize)
legalize_windows(legalize)
legalize_quotients(legalize)
legalize("Dropout")(normalization.drop_nothing)
legalize("LogSoftmax")(normalization.log_softmax)  # ncnn takes the logarithm of 0
legalize("Selu")(elementwise.selu)
legalize("Softplus")(elementwise.stable_softplus)  # ncnn overflows
legalize.for_each(KINDS)(recurrent.unroll_recurrent)
PROJECTED = RESHAPES | ARITHMETIC | {"MatMul", "Softmax", "Transpose", "Where"}


@legalize("Identity")
def legalize_identity(g, x):
    """pnnx fails where a value has two names."""
    require(
        x.tensor is None and g.producer(x) is not None,
        "ncnn returns what it computes of the inputs only",
    )
    return g.as_is("Mul", (x, g.const(1.0, x.type)), {})


@legalize("Pow")
def legalize_pow(g, x, y):
    """ncnn has powers of positive numbers."""
    require(
        y.tensor is not None and y.tensor.size == 1,
        f"ncnn takes one constant exponent only. {CONSTANT}",
    )
    exponent = float(y.array().ravel()[0])
    require(x.type is DType.FLOAT32, "ncnn has powers of float32 only. Use float32 (--fp32)")
    if not exponent.is_integer() or abs(exponent) > MOST_FACTORS:
        require(not exponent.is_integer(), f"ncnn has integer powers up to {MOST_FACTORS}")
        return raise_to_fraction(g, x, exponent)
    factors = [x] * int(abs(exponent))
    power = reduce(g.Mul, factors) if factors else g.Add(g.Mul(x, 0.0), 1.0)
    return g.Reciprocal(power) if exponent < 0 else power


def raise_to_fraction(g, x, exponent: float):
    """A power of numbers of which some may be 0, of which ncnn has none."""
    if exponent < 0:
        return g.Reciprocal(raise_to_fraction(g, x, -exponent))
    if exponent == 0.5:
        return g.Sqrt(x)
    is_other = g.Abs(g.Sign(x))
    above = g.Add(x, g.Sub(1.0, is_other))
    return g.Mul(g.as_is("Pow", (above, g.const(exponent, x.type)), {}), is_other)


@legalize("ThresholdedRelu")
def legalize_thresholded(g, x, *, alpha: float):
    """A step is the sign of a distance."""
    return g.Mul(x, g.Relu(g.Sign(g.Sub(x, alpha))))


@legalize("InstanceNormalization")
def legalize_instance_norm(g, x, scale, bias, *, epsilon: float):
    """ncnn has it of images."""
    if x.rank == 4 and scale.tensor is not None and bias.tensor is not None:
        return None
    axes, n = list(range(2, x.rank)), x.rank - 2
    away = g.Sub(x, g.ReduceMean(x, axes, keepdims=1))
    spread = g.Sqrt(g.Add(g.ReduceMean(g.Mul(away, away), axes, keepdims=1), epsilon))
    scale, bias = (g.Unsqueeze(v, list(range(1, n + 1))) for v in (scale, bias))
    return g.Add(g.Mul(g.Div(away, spread), scale), bias)


@legalize("Gemm")
def legalize_gemm(g, a, b, c=None, *, alpha: float, beta: float, transA: int, transB: int):
    """A layer's, with one bias for each of its results, or a product and a sum."""
    is_layer = b.tensor is not None and not transA and alpha == beta == 1
    width = b.ranked_shape[0 if transB else 1]
    if is_layer and (c is None or (c.tensor is not None and c.shape == (width,))):
        return multiply_before_reshape(g, a, g.Transpose(b) if transB else b, c)
    return elementwise.gemm(g, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


def multiply_before_reshape(g, rows: Value, weights: Value, bias: Value | None) -> Value | None:
    """A layer of a tensor whose axes but the last a Reshape made one, without that Reshape.

    pnnx takes attention that such layers are part of for one of a matrix.
    """
    node = g.producer(rows)
    x = node.inputs[0] if node is not None and node.op == "Reshape" else None
    if x is None or not x.is_static or x.rank < 3 or x.shape[-1] != rows.ranked_shape[-1]:
        return None
    y = g.MatMul(x, weights)
    y = y if bias is None else g.Add(y, bias)
    return g.Reshape(y, [*rows.static_shape[:1], y.ranked_shape[-1]])


def is_attention(g, x: Value) -> bool:
    """Whether ``x`` is the attention of one tensor to another, joined: pnnx crashes where a product
    without a bias follows.
    """
    steps = [x]
    for op in ("Reshape", "Transpose", "MatMul"):
        node = g.producer(steps[-1])
        if node is None or node.op != op:
            return False
        steps.append(node.inputs[0])
    values = node.inputs[1]
    queries, of = find_projected(g, steps[-1]), find_projected(g, values)
    return queries is not None and of is not None and queries is not of


def find_projected(g, x: Value) -> Value | None:
    """What a product with a constant was made of, above arithmetic and products with others."""
    while (node := g.producer(x)) is not None and node.op in PROJECTED:
        a, b = node.inputs[0], node.inputs[-1]
        if node.op == "MatMul" and b.tensor is not None:
            return a  # type: ignore[no-any-return]
        x = b if a.tensor is not None else a
    return None


@legalize("MatMul")
def legalize_matmul(g, a, b):
    """ncnn has matrices only, as many of one operand as of the other."""
    if min(a.rank, b.rank) < 2:
        row = g.Unsqueeze(a, [0]) if a.rank < 2 else a
        y = g.MatMul(row, g.Unsqueeze(b, [1]) if b.rank < 2 else b)
        axes = [y.rank - 1] * (b.rank < 2) + [y.rank - 2] * (a.rank < 2)
        return g.Squeeze(y, sorted(axes))
    rank = max(a.rank, b.rank)
    if any(v.tensor is not None and v.tensor.size == 1 for v in (a, b)):
        y = g.Mul(*(g.Reshape(v, []) if v.tensor is not None else v for v in (a, b)))
        return y if y.rank == rank else g.Unsqueeze(y, list(range(rank - y.rank)))
    if a.is_static and a.rank > 2 and b.rank == 2 and is_attention(g, a):
        rows = g.MatMul(g.Reshape(a, [-1, a.static_shape[-1]]), b)
        return g.Reshape(rows, [*a.static_shape[:-1], b.static_shape[1]])
    if a.rank == b.rank or (b.rank == 2 and b.tensor is not None):
        return None
    matrices = (g.Unsqueeze(v, list(range(rank - v.rank))) if v.rank < rank else v for v in (a, b))
    return g.MatMul(*matrices)


@legalize("Unsqueeze")
def legalize_unsqueeze(g, x, axes):
    """ncnn has no tensors without axes; pnnx loses the samples where it adds several axes."""
    added = {a % (x.rank + len(axes.ints())) for a in axes.ints()}
    if (x.rank and len(added) < 2) or not x.is_static:
        return None
    sizes = iter(x.ranked_shape)
    return g.Reshape(x, [1 if a in added else next(sizes) for a in range(x.rank + len(added))])


@legalize("Squeeze")
def legalize_squeeze(g, x, axes=None):
    """ncnn has up to four axes, and returns an axis more where the samples alone are left."""
    dropped = [a for a, d in enumerate(x.ranked_shape) if d == 1]
    dropped = dropped if axes is None else [a % x.rank for a in axes.ints()]
    is_list = len(dropped) == x.rank - 1 > 0 and 0 not in dropped
    if x.rank < 5 and not (is_list and x.is_static):
        return None
    return g.Reshape(x, [d for a, d in enumerate(x.ranked_shape) if a not in dropped])


@legalize("Reshape")
def legalize_reshape(g, x, shape, *, allowzero: int):
    """All sizes are given."""
    require(shape.shape != (0,), "ncnn has no tensors without axes. Reshape it to one axis")
    sizes = shape.ints() if shape.tensor is not None and x.is_static else ()
    if all(s > 0 for s in sizes):
        return None
    require(not allowzero or 0 not in sizes, "ncnn has no tensors without elements")
    known = [x.ranked_shape[i] if s == 0 else s for i, s in enumerate(sizes)]
    total = math.prod(x.ranked_shape) // max(1, math.prod(s for s in known if s > 0))
    return g.Reshape(x, [total if s < 0 else s for s in known])


@legalize("Expand")
def legalize_expand(g, x, shape):
    """ncnn loses axes of none, and repeats the wrong one where a fourth is added."""
    (count,) = shape.ranked_shape
    if x.rank not in (0, 3) or not isinstance(count, int) or count <= x.rank or not x.is_static:
        return None
    return g.Expand(g.Reshape(x, [1] * (count - x.rank) + [*x.static_shape]), shape)


@legalize("Transpose")
def legalize_transpose(g, x, *, perm):
    """ncnn has up to four axes: those that stay together are one, others change places in turn."""
    if x.rank < 5 or not x.is_static:
        return None
    runs: list[list[int]] = []
    for axis in perm:
        if x.ranked_shape[axis] == 1:
            continue
        if runs and _follows(x, runs[-1][-1], axis):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    if len(runs) > MOST_AXES:
        swapped = swap_groups(perm)
        return g.Transpose(g.Transpose(x, perm=swapped), perm=[swapped.index(a) for a in perm])
    ordered = sorted(runs)
    narrow = g.Reshape(x, [math.prod(x.ranked_shape[a] for a in run) for run in ordered])
    moved = g.Transpose(narrow, perm=tuple(ordered.index(run) for run in runs))
    return g.Reshape(moved, [x.ranked_shape[a] for a in perm])


def swap_groups(perm: Sequence[int]) -> list[int]:
    """The axes with the first ones that are out of place in theirs, before those that are there."""
    to = next(at for at, axis in enumerate(perm) if axis != at)
    start = end = perm[to]
    while end in perm[to + end - start : to + end - start + 1]:
        end += 1
    return [*range(to), *range(start, end), *range(to, start), *range(end, len(perm))]


def _follows(x, before: int, axis: int) -> bool:
    """Whether an axis is the next one, but for axes of one element."""
    return axis > before and all(d == 1 for d in x.ranked_shape[before + 1 : axis])


@legalize("Tile")
def legalize_tile(g, x, repeats):
    """Copies side by side."""
    require(repeats.tensor is not None, f"ncnn takes constant 'repeats' only. {CONSTANT}")
    require(all(0 < n <= MOST_PARTS for n in repeats.ints()), "ncnn has no Tile of so many")
    for axis, count in enumerate(repeats.ints()):
        x = x if count == 1 else g.Concat(*[x] * count, axis=axis)
    return x


@legalize("Pad")
def legalize_pad(g, x, pads, fill=None, axes=None, *, mode: str):
    """All axes, none of them cropped, with a finite number; the first of four in a matrix."""
    require(pads.tensor is not None, f"ncnn takes constant 'pads' only. {CONSTANT}")
    cropped = crop_negative_pads(g, x, pads, fill, axes, mode=mode)
    if cropped is not None:
        return cropped
    if axes is not None:
        return g.Pad(x, expand_pads(g, x, pads, axes), fill, mode=mode)
    is_outer = any(pads.ints()[a] for a in (0, 1, x.rank, x.rank + 1)) if x.rank > 4 else False
    require(not is_outer, "ncnn pads the last three axes of volumes only. Reshape the data before")
    before, behind = pads.ints()[0], pads.ints()[x.rank]
    if x.rank == 4 and (before or behind):
        first, *others = x.static_shape
        flat = g.Reshape(x, [first, math.prod(others)])
        flat = g.Pad(flat, [before, 0, behind, 0], fill, mode=mode)
        every = np.array(pads.ints())
        every[[0, x.rank]] = 0
        return g.Pad(g.Reshape(flat, [before + first + behind, *others]), every, fill, mode=mode)
    if fill is None:
        return None
    require(fill.tensor is not None, f"ncnn takes a constant to pad with only. {CONSTANT}")
    number = float(fill.array().item())
    require(math.isfinite(number), "ncnn pads with finite numbers only. Use a large one")
    is_usual = number == 0 and math.copysign(1, number) > 0  # -0 stays apart from a pool
    return g.Pad(x, pads, mode=mode) if is_usual else None


@legalize("DepthToSpace")
def legalize_depth_to_space(g, x, *, blocksize: int, mode: str):
    """ncnn has the one that PyTorch has: the order of channels is changed before."""
    if mode == "CRD" or not x.is_static:
        return None
    n, channels, h, w = x.ranked_shape
    b2 = blocksize * blocksize
    deep = g.Reshape(x, [n, b2, channels // b2, h * w])
    deep = g.Reshape(g.Transpose(deep, perm=(0, 2, 1, 3)), [n, channels, h, w])
    return g.DepthToSpace(deep, blocksize=blocksize, mode="CRD")


def is_other_layer(call: Call) -> bool:
    """Whether ncnn lacks the layer; it takes one row, which is a sum of its own, for a sample."""
    is_row = call.x.is_static and math.prod(call.x.ranked_shape[:-1]) == 1
    return is_row or has_other_weights(call)


def is_unlike_channels(call: Call) -> bool:
    """Whether slopes are computed, or not by channel of windows."""
    slope = call.inputs[1]
    return slope.tensor is None or not is_by_channel(slope, call.x) or call.x.rank < 3


def slope_by_parts(g, x, slope):
    """A PRelu as a difference."""
    return g.Sub(g.Relu(x), g.Mul(slope, g.Relu(g.Neg(x))))


def has_rows(call: Call) -> bool:
    """Whether ncnn takes the rows of a matrix for its channels."""
    return call.x.rank == 2 and call.x.ranked_shape[0] != 1


LACKS: Lacks = {
    "BatchNormalization": [
        shared.TRAINING,
        shared.COMPUTED_PARAMETERS._replace(rewrite=shared.scale_by_channel),
        Form("rows of a matrix", has_rows, shared.scale_by_channel),
    ],
    "Clip": [shared.NO_BOUNDS, shared.COMPUTED_BOUNDS, shared.CROSSED_BOUNDS],
    "LayerNormalization": [shared.LAYER_WEIGHTS.where(is_other_layer)],
    "Max": [shared.ONE_OPERAND, shared.MORE_OPERANDS],
    "Mean": [shared.MEAN],
    "Min": [shared.ONE_OPERAND, shared.MORE_OPERANDS],
    "PRelu": [shared.SLOPES._replace(has=is_unlike_channels, rewrite=by(slope_by_parts))],
    "Pad": [shared.WRAP],
    "Sum": [shared.ONE_OPERAND, shared.SUMMANDS],
}
