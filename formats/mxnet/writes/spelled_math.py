"""Arithmetic and reductions MXNet lacks, in those it has. A rule that returns None leaves as is."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.decompositions.expressions import (
    cast,
    lowest,
    shape_from,
    size_of,
    sizes_of,
    slice_axis,
    steps,
)
from serde.errors import require
from serde.ir.dim_expr import elements_of
from serde.ir.graph import DType, Value
from serde.version_converter.adapters import below

from .spelling import spells

LAST = 2**63 - 1  # an end that is no end
WIDE = (DType.FLOAT32, DType.FLOAT64)


def standard(version: int, op: str):
    """The standard's own rule for what an operator was before ``version``."""
    return below[version].rules[op].function


@spells("ReduceLogSum")
def spell_log_sum(g, x, axes=None, *, keepdims, noop_with_empty_axes):
    require(not noop_with_empty_axes, "no axes that are all")
    return g.Log(g.ReduceSum(x, axes, keepdims=keepdims))


@spells("ReduceSumSquare")
def spell_sum_square(g, x, axes=None, *, keepdims, noop_with_empty_axes):
    require(not noop_with_empty_axes, "no axes that are all")
    return g.ReduceSum(g.Mul(x, x), axes, keepdims=keepdims)


@spells("ReduceL1")
def spell_l1(g, x, axes=None, *, keepdims, noop_with_empty_axes):
    require(not noop_with_empty_axes, "no axes that are all")
    return g.ReduceSum(g.Abs(x), axes, keepdims=keepdims)


@spells("ReduceLogSumExp")
def spell_log_sum_exp(g, x, axes=None, *, keepdims, noop_with_empty_axes):
    """Less the largest first, brought into the finite: infinity less itself is no number."""
    require(not noop_with_empty_axes, "no axes that are all")
    least = lowest(x) / 2
    largest = g.Clip(g.ReduceMax(x, axes, keepdims=1), least, -least)
    sums = g.Log(g.ReduceSum(g.Exp(g.Sub(x, largest)), axes, keepdims=1))
    whole = g.Add(sums, largest)
    return whole if keepdims else g.ReduceSum(whole, axes, keepdims=0)


def spell_bool(op, g, x, axes=None, *, keepdims, noop_with_empty_axes):
    """Whether any, or all, are true."""
    if x.dtype is not DType.BOOL:
        return None
    more = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
    return standard(20, op)(g, x, axes, **more)


for _op in ("ReduceMax", "ReduceMin"):
    spells(_op)(partial(spell_bool, _op))


def spell_last_extreme(op, g, x, *, axis, keepdims, select_last_index):
    """The last of equals is the first when counted from the end."""
    if not select_last_index:
        return None
    turned = slice_axis(g, x, axis, -1, -LAST, -1)
    found = g[op](turned, axis=axis, keepdims=keepdims)
    return g.Sub(g.Sub(size_of(g, x, axis), 1), found)


for _op in ("ArgMax", "ArgMin"):
    spells(_op)(partial(spell_last_extreme, _op))


@spells("Hardmax")
def spell_hardmax(g, x, *, axis):
    places = g.Reshape(steps(g, size_of(g, x, axis)), [-1] + [1] * (x.rank - 1 - axis))
    return cast(g, g.Equal(places, g.ArgMax(x, axis=axis, keepdims=1)), x.type)


@spells("LpNormalization")
def spell_lp_normalization(g, x, *, axis, p):
    norm = g["ReduceL1" if p == 1 else "ReduceL2"](x, [axis], keepdims=1)
    return g.Div(x, g.Add(norm, cast(g, g.Equal(norm, 0.0), x.type)))


@spells("Mean")
def spell_mean(g, *xs):
    return g.Div(g.Sum(*xs), float(len(xs)))


@spells("CumSum")
def spell_cum_sum(g, x, axis, *, exclusive, reverse):
    """Forwards, each with its own; an operand before it is a zero in front and one less behind."""
    (along,) = (int(i) % x.rank for i in axis.ints())
    if not exclusive and not reverse:
        return None
    if reverse:
        x = slice_axis(g, x, along, -1, -LAST, -1)
    if exclusive:
        sizes = sizes_of(g, x)
        sizes[along] = 1
        zero = g.Expand(g.const(np.zeros((), x.type.numpy)), shape_from(g, sizes))
        x = g.Concat(zero, slice_axis(g, x, along, 0, -1), axis=along)
    sums = g.CumSum(x, g.const(along, DType.INT64))
    return slice_axis(g, sums, along, -1, -LAST, -1) if reverse else sums


@spells("Pow")
def spell_pow(g, x, y):
    if x.dtype is y.dtype:
        return None
    if x.type.kind == "f":
        return g.Pow(x, cast(g, y, x.type))
    wide = DType.FLOAT64
    return cast(g, g.Pow(cast(g, x, wide), cast(g, y, wide)), x.type)


@spells("Selu")
def spell_selu(g, x, *, alpha, gamma):
    if (round(alpha, 6), round(gamma, 6)) == (1.673263, 1.050701):
        return None
    below_zero = g.Mul(g.Sub(g.Exp(g.Min(x, 0.0)), 1.0), alpha)
    return g.Mul(g.Add(g.Max(x, 0.0), below_zero), gamma)


@spells("Gelu")
def spell_gelu(g, x, *, approximate):
    return None if approximate == "none" else standard(20, "Gelu")(g, x, approximate=approximate)


@spells("PRelu")
def spell_prelu(g, x, slope):
    """MXNet's slope is one number, or one a channel."""
    dims = slope.known
    channels = [d for d in dims if d != 1]
    alone = len(channels) == 1 and x.rank - len(dims) + dims.index(channels[0]) == 1
    if slope.is_static and (alone or not channels) and x.type.kind == "f" and dims:
        return None
    zero = g.const(0, x.type)
    return g.Add(g.Max(x, zero), g.Mul(slope, g.Min(x, zero)))


@spells("MatMul")
def spell_mat_mul(g, a: Value, b: Value):
    """MXNet multiplies wide floats, of two axes or with equal batches."""
    if a.rank == 1 or b.rank == 1:
        return of_vector(g, a, b)
    if a.type is DType.FLOAT16:
        return cast(g, g.MatMul(*(cast(g, v, DType.FLOAT32) for v in (a, b))), a.type)
    if a.type not in WIDE:
        products = g.Mul(g.Unsqueeze(a, [a.rank]), g.Unsqueeze(b, [b.rank - 2]))
        return g.ReduceSum(products, [products.rank - 2], keepdims=0)
    if b.rank == 2 or a.known[:-2] == b.known[:-2]:
        return None
    firsts = [first_of_last(g, v) for v in (a, b)]
    batch = g.Shape(g.Add(*firsts), end=-2)
    if None not in (elements_of(batch) or (None,)):
        rest = (g.Concat(batch, g.Shape(v, start=-2), axis=0) for v in (a, b))
        return g.MatMul(*(g.Expand(v, sizes) for v, sizes in zip((a, b), rest, strict=True)))
    equal = [g.Equal(v, v) for v in firsts]
    ones = [cast(g, g.Or(e, g.Not(e)), a.type) for e in equal]
    return g.MatMul(g.Mul(a, ones[1]), g.Mul(b, ones[0]))


def first_of_last(g, x: Value):
    """One element of each matrix: of it only the batch is asked."""
    return g.Slice(x, [0, 0], [1, 1], [x.rank - 2, x.rank - 1], [1, 1])


def of_vector(g, a: Value, b: Value):
    wide_a = g.Unsqueeze(a, [0]) if a.rank == 1 else a
    wide_b = g.Unsqueeze(b, [1]) if b.rank == 1 else b
    y = g.MatMul(wide_a, wide_b)
    gone = [y.rank - 2] * (a.rank == 1) + [y.rank - 1] * (b.rank == 1)
    return g.Squeeze(y, gone)


@spells("Gemm")
def spell_gemm(g, a, b, c=None, *, alpha, beta, transA, transB):
    """Of half floats in wide ones, of integers in parts."""
    if a.type in WIDE:
        return None
    if a.type is DType.FLOAT16:
        wide = [None if v is None else cast(g, v, DType.FLOAT32) for v in (a, b, c)]
        y = g.Gemm(*wide, alpha=alpha, beta=beta, transA=transA, transB=transB)
        return cast(g, y, a.type)
    require(alpha == beta == 1.0, f"alpha={alpha}, beta={beta} of {a.type.value} elements")
    a = g.Transpose(a, perm=[1, 0]) if transA else a
    y = g.MatMul(a, g.Transpose(b, perm=[1, 0]) if transB else b)
    return y if c is None else g.Add(y, c)


def spell_half(op, g, x, axes=None, *, keepdims, noop_with_empty_axes):
    """Sums of half floats are gathered in wide ones."""
    if x.type is not DType.FLOAT16:
        return None
    more = {"keepdims": keepdims, "noop_with_empty_axes": noop_with_empty_axes}
    return cast(g, g[op](cast(g, x, DType.FLOAT32), axes, **more), x.type)


for _op in ("ReduceL2", "ReduceMean", "ReduceProd", "ReduceSum"):
    spells(_op)(partial(spell_half, _op))


@spells("Relu")
def spell_relu(g, x):
    """Of integers, the larger of each and 0."""
    return None if x.type.kind == "f" else g.Max(x, g.const(0, x.type))


@spells("Mod")
def spell_mod(g, x, y, *, fmod):
    """Of integers, by division; MXNet has one of floats."""
    return None if x.type.kind == "f" else standard(10, "Mod")(g, x, y, fmod=fmod)
