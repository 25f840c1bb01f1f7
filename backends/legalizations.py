"""Operators that a backend's file does not list, in terms of simpler ones that it may list.

Operators that the standard added later or defines by a function need no rule here: the legalizer
decomposes them for every target.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from math import prod
from typing import Any

from serde.decompositions import elementwise, indexing, normalization, reduction
from serde.errors import require
from serde.legalize.target import legalization_table

Rule = Callable[..., Any]
legalizations = legalization_table("ir → backend")


def where_lacking(op: str) -> Callable[[Rule], Rule]:
    """Enter a rule that applies where the target does not have the operator."""

    def register(rule: Rule) -> Rule:
        @wraps(rule)
        def apply(g: Any, *operands: Any, **attrs: Any) -> Any:
            return None if op in g.target.supports else rule(g, *operands, **attrs)

        legalizations(op)(apply)
        return rule

    return register


@where_lacking("BatchNormalization")
def split_batch_norm(g, x, *parameters, epsilon, training_mode):
    """A product and a sum."""
    require(not training_mode, "training_mode=1: export the model for inference")
    return normalization.scale_channels(g, x, parameters, epsilon)


@where_lacking("Gemm")
def split_gemm(g, a, b, c=None, *, alpha, beta, transA, transB):
    """A product and a sum; a constant operand is transposed and scaled once."""
    a = g.Transpose(a, perm=(1, 0)) if transA else a
    b = g.Transpose(b, perm=(1, 0)) if transB else b
    product = g.MatMul(a, b if alpha == 1 else g.Mul(b, alpha))
    return product if c is None else g.Add(product, c if beta == 1 else g.Mul(c, beta))


@where_lacking("Flatten")
def reshape_flat(g, x, *, axis):
    """A Reshape; one of the two sizes may be dynamic, and both where the first axis is kept."""
    if axis == 1:
        return g.Reshape(x, [0, -1])
    sizes = [x.ranked_shape[:axis], x.ranked_shape[axis:]]
    known = [prod(s) if all(isinstance(d, int) for d in s) else -1 for s in sizes]
    require(known != [-1, -1], "Flatten of dynamic sizes on both sides of its axis")
    return g.Reshape(x, known)


@where_lacking("Squeeze")
def reshape_squeezed(g, x, axes=None):
    """A Reshape of static sizes."""
    sizes = x.static_shape
    dropped = axes.ints() if axes is not None else [a for a, d in enumerate(sizes) if d == 1]
    dropped = {a % x.rank for a in dropped}
    return g.Reshape(x, [d for a, d in enumerate(sizes) if a not in dropped])


@where_lacking("Unsqueeze")
def reshape_unsqueezed(g, x, axes):
    """A Reshape of static sizes."""
    sizes, rank = list(x.static_shape), x.rank + axes.array().size
    for axis in sorted(a % rank for a in axes.ints()):
        sizes.insert(axis, 1)
    return g.Reshape(x, sizes)


where_lacking("GlobalAveragePool")(reduction.global_average)
where_lacking("GlobalMaxPool")(reduction.global_max)


@where_lacking("Reciprocal")
def divide_one(g, x):
    """1 divided by it."""
    return g.Div(1.0, x)


@where_lacking("Neg")
def multiply_by_minus_one(g, x):
    """A product with -1, which changes the sign of every float, those of zeros too."""
    require(x.type.kind == "f", "Neg of integers")
    return g.Mul(x, -1.0)


@where_lacking("Sum")
def add_one_by_one(g, first, *others):
    """Sums of two."""
    for other in others:
        first = g.Add(first, other)
    return first


@where_lacking("HardSigmoid")
def clip_line(g, x, *, alpha, beta):
    """A line between 0 and 1."""
    return g.Max(g.Min(g.Add(g.Mul(x, alpha), beta), 1.0), 0.0)


where_lacking("LogSoftmax")(normalization.log_softmax)
where_lacking("Mean")(elementwise.mean)
where_lacking("Selu")(elementwise.selu)
where_lacking("Softplus")(elementwise.stable_softplus)
where_lacking("SpaceToDepth")(indexing.space_to_depth)
for _op in reduction.COMPOSED:
    where_lacking(_op)(partial(reduction.compose_reduction, _op))


@where_lacking("Abs")
def larger_of_both_signs(g, x):
    """The larger of an element and its negative."""
    require(x.type.kind == "f", "Abs of integers")
    return g.Max(x, g.Neg(x))


@where_lacking("Min")
def negate_largest(g, *operands):
    """The largest of the negatives."""
    require(operands[0].type.kind == "f", "Min of integers")
    return g.Neg(g.Max(*map(g.Neg, operands)))


@where_lacking("ReduceMin")
def reduce_negatives(g, x, axes=None, **form):
    """The largest of the negatives."""
    require(x.type.kind == "f", "ReduceMin of integers")
    return g.Neg(g.ReduceMax(g.Neg(x), axes, **form))


@where_lacking("Softsign")
def divide_by_size(g, x):
    """A quotient."""
    return g.Div(x, g.Add(g.Abs(x), 1.0))
