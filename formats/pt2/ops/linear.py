"""Products of matrices, and attention."""

from __future__ import annotations

import math
import string

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.graph import DType

from ..promotion import as_type, promote, promote_to_float
from ..rules import reads


@reads("mm", "bmm", "matmul", "mv", "dot", "linalg_matmul", "vdot")
def read_matmul(g, a, b):
    return g.MatMul(a, b)


@reads("addmm", "addmv", "baddbmm")
def read_addmm(g, x, a, b, *, beta, alpha):
    return add_multiples(g, x, g.MatMul(a, b), beta, alpha)


def add_multiples(g, x, product, beta, alpha):
    """``beta * x + alpha * product``; ``x`` is not read where its factor is 0."""
    product = multiply(g, product, alpha)
    return product if beta == 0 else g.Add(product, multiply(g, x, beta))


def multiply(g, x, factor):
    """A multiple of a tensor."""
    return x if factor == 1 else g.Mul(x, as_type(g, factor, x.type))


@reads("linear")
def read_linear(g, x, w, b):
    if w.rank == 1:
        y = g.MatMul(x, w)
        return y if b is None else g.Add(y, b)
    if x.rank == 2 and b is not None:
        return g.Gemm(x, w, b, transB=1)
    y = g.MatMul(x, g.Transpose(w, perm=[1, 0]))
    return y if b is None else g.Add(y, b)


@reads("matrix_power", "linalg_matrix_power")
def read_matrix_power(g, x, n):
    """By squares of squares."""
    require(n > 0, f"a matrix to the power of {n}: give a power above 0")
    half = x if n == 1 else read_matrix_power(g, x, n // 2)
    y = half if n == 1 else g.MatMul(half, half)
    return g.MatMul(y, x) if n > 1 and n % 2 else y


TERMS = {DType.FLOAT64: 18}  # of the exponential of a matrix of at most 0.5; of others 8


@reads("matrix_exp", "linalg_matrix_exp")
def read_matrix_exp(g, x):
    """Of a matrix that is halved until it is small, squared as often."""
    size = x.ranked_shape[-1]
    require(isinstance(size, int), "the exponential of a matrix of unknown size: fix it")
    arrays.charge_elements(size, size)
    half, zero, eye = (g.const(v, x.type) for v in (0.5, 0.0, np.eye(size)))
    norm = g.ReduceMax(g.ReduceSum(g.Abs(x), [-1]), keepdims=0)
    times = g.Ceil(g.Div(g.Log(g.Div(norm, half)), g.const(math.log(2), x.type)))
    times = g.Max(times, zero)
    small, y = g.Mul(x, g.Pow(half, times)), eye
    for k in range(TERMS.get(x.type, 8), 0, -1):
        y = g.Add(eye, g.Div(g.MatMul(small, y), g.const(k, x.type)))
    turns = g.cast(times, DType.INT64)
    return g.loop(lambda g, _, go, y: (g.Identity(go), g.MatMul(y, y)), turns, g.const(True), y)[0]


@reads("linalg_det", "det")
def read_determinant(g, x):
    return g.Det(x)


@reads("bilinear")
def read_bilinear(g, a, b, w, bias):
    y = g.Einsum(a, w, b, equation="...i,oij,...j->...o")
    return y if bias is None else g.Add(y, bias)


@reads("einsum", ignore=("path",))
def read_einsum(g, equation, xs):
    return g.Einsum(*xs, equation=equation) if "..." not in equation else _einsum(g, equation, xs)


def _einsum(g, equation, xs):
    """Axes of an ellipsis have letters: the standard wants as many in each operand."""
    terms, _, result = equation.replace(" ", "").replace("...", ".").partition("->")
    terms = terms.split(",")
    counts = [x.rank - len(t) + 1 if "." in t else 0 for x, t in zip(xs, terms, strict=True)]
    letters = [c for c in string.ascii_letters if c not in equation][: max(counts)]
    require(len(letters) == max(counts), f"einsum {equation!r} of more axes than there are letters")
    if "->" not in equation:
        named = [c for c in "".join(terms) if c != "."]
        result = "." + "".join(sorted(c for c in set(named) if named.count(c) == 1))
    sizes = dict.fromkeys(letters, 1)
    axes = [letters[len(letters) - n :] for n in counts]
    for x, term, labels in zip(xs, terms, axes, strict=True):
        shape = x.ranked_shape[term.find(".") :][: len(labels)]
        sizes |= {c: size for c, size in zip(labels, shape, strict=True) if size != 1}
    operands = []
    for at, (x, term, labels) in enumerate(zip(xs, terms, axes, strict=True)):
        first = term.find(".")
        # An axis of size 1 is repeated along those of others.
        single = [c for k, c in enumerate(labels) if x.ranked_shape[first + k] == 1 != sizes[c]]
        operands.append(g.Squeeze(x, [first + labels.index(c) for c in single]) if single else x)
        terms[at] = term.replace(".", "".join(c for c in labels if c not in single))
    result = result.replace(".", "".join(letters))
    return g.Einsum(*operands, equation=f"{','.join(terms)}->{result}")


@reads("outer", "ger")
def read_outer(g, a, b):
    a, b = promote(g, g.Unsqueeze(a, [1]), g.Unsqueeze(b, [0]))
    return g.And(a, b) if a.type is DType.BOOL else g.Mul(a, b)


@reads("scaled_dot_product_attention")
def read_attention(g, q, k, v, mask, dropout, causal, *, scale, enable_gqa):
    require(dropout == 0, f"dropout_p={dropout} in attention: export the module in eval()")
    width = q.ranked_shape[-1]
    require(isinstance(width, int) or scale is not None, "attention of unknown width: give scale=")
    if enable_gqa:
        groups = q.static_shape[-3] // k.static_shape[-3] if k.is_static else None
        require(groups is not None, "grouped heads of unknown number: fix the sizes")
        k, v = (g.repeat(x, groups, x.rank - 3) for x in (k, v))
    factor = math.sqrt(1 / math.sqrt(width) if scale is None else scale)
    order = [*range(k.rank - 2), k.rank - 1, k.rank - 2]
    scores = g.MatMul(multiply(g, q, factor), g.Transpose(multiply(g, k, factor), perm=order))
    if causal:
        rows, columns = (g.index_range(g.size_of(x, x.rank - 2)) for x in (q, k))
        mask = g.GreaterOrEqual(g.Unsqueeze(rows, [1]), g.Unsqueeze(columns, [0]))
    if mask is not None and mask.type is DType.BOOL:
        lowest = as_type(g, -math.inf, q.type)
        empty = None
        scores = g.Where(mask, scores, lowest)
        if not causal:
            any_ = g.cast(mask, DType.INT32)
            empty = g.Equal(g.ReduceMax(any_, [-1], keepdims=1), 0)
        weights = g.Softmax(scores, axis=-1)
        if empty is not None:
            weights = g.Where(empty, as_type(g, 0.0, q.type), weights)
        return g.MatMul(weights, v)
    scores = scores if mask is None else g.Add(scores, g.cast(mask, q.type))
    return g.MatMul(g.Softmax(scores, axis=-1), v)


@reads("_cdist_forward", "cdist")
def read_cdist(g, a, b, p, compute_mode=None):
    difference = g.Abs(g.Sub(g.Unsqueeze(a, [a.rank - 1]), g.Unsqueeze(b, [b.rank - 2])))
    return p_norm(g, difference, p, -1)


@reads("pairwise_distance")
def read_pairwise_distance(g, a, b, p, eps, keepdim):
    a, b = promote_to_float(g, a, b)
    distance = p_norm(g, g.Abs(g.Add(g.Sub(a, b), as_type(g, eps, a.type))), p, -1)
    return g.Unsqueeze(distance, [-1]) if keepdim else distance


def p_norm(g, x, p, axis):
    """The p-norm of what is not negative, along one axis."""
    if p == 0:
        return g.ReduceSum(g.cast(g.Greater(x, 0.0), x.type), [axis], keepdims=0)
    if abs(p) == math.inf:
        return (g.ReduceMax if p > 0 else g.ReduceMin)(x, [axis], keepdims=0)
    if p == 1:
        return g.ReduceSum(x, [axis], keepdims=0)
    if p == 2:
        return g.Sqrt(g.ReduceSum(g.Mul(x, x), [axis], keepdims=0))
    total = g.ReduceSum(g.Pow(x, as_type(g, p, x.type)), [axis], keepdims=0)
    return g.Pow(total, as_type(g, 1 / p, x.type))


@reads("_pdist_forward", "pdist")
def read_pdist(g, x, p):
    n = x.static_shape[0]
    arrays.charge_elements(n, n)
    first, second = (g.Gather(x, g.const(at), axis=0) for at in np.triu_indices(n, 1))
    return p_norm(g, g.Abs(g.Sub(first, second)), p, -1)


@reads("_grouped_mm", "transformers.grouped_mm_fallback")
def read_grouped_matmul(g, x, w, offsets):
    """Rows up to each offset are multiplied by a matrix of their own, those after the last by 0."""
    if offsets is None:
        return g.MatMul(x, w)
    require(x.rank == 2 and w.rank == 3, f"groups of {x.rank} and {w.rank} axes: give rows of 2 "
                                         "axes and a matrix a group")  # fmt: skip
    places = g.Unsqueeze(g.index_range(g.size_of(x, 0)), [1])
    passed = g.GreaterOrEqual(places, g.Unsqueeze(g.cast(offsets, DType.INT64), [0]))
    group = g.ReduceSum(g.cast(passed, DType.INT64), [1], keepdims=1)
    last = g.Sub(g.size_of(w, 0), 1)
    products = g.MatMul(g.Unsqueeze(x, [0]), w)
    y = g.GatherND(products, g.Concat(g.Min(group, last), places, axis=1))
    return g.Where(g.LessOrEqual(group, last), y, as_type(g, 0.0, y.type))
