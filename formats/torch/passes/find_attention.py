"""Products, a softmax and a product as one ``Attention``."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from serde.ir.graph import DType, Node, Tensor, Value
from serde.rewrite.patterns import Neighbours, Patterns, join_sources, orders
from serde.spec.traits import RESHAPES

HIDES = -1e9  # a score that is no more than this, beside others, has no weight
ATTENTION = Patterns("Softmax")


class Scores(NamedTuple):
    """The scores before a softmax: what they are multiplied with, and what hides some of them."""

    product: Node
    scale: float
    mask: Value | None = None
    fill: Value | None = None  # where the mask is false


@ATTENTION("MatMul")
def find_attention(near: Neighbours, node: Node) -> list[Node] | None:
    """What weights pick that a softmax makes of scores; some may be dropped, or hidden."""
    weights, v = node.inputs
    dropout = near.sole_maker(node, weights, "Dropout")
    last = dropout or node
    weights = weights if dropout is None else dropout.inputs[0]
    hiding, weights, shown = _find_hidden(near, last, weights)
    softmax = near.sole_maker(hiding or last, weights, "Softmax")
    if (
        softmax is None
        or v is None
        or softmax.attrs["axis"] not in (-1, softmax.outputs[0].rank - 1)
    ):
        return None
    scores = _find_scores(near, softmax)
    if scores is None or (hiding is not None and not _is_same_mask(near, scores.mask, shown)):
        return None
    q, scale = _find_scaled(near, scores.product, scores.product.inputs[0], scores.scale)
    turned, scale = _find_scaled(near, scores.product, scores.product.inputs[1], scale)
    transpose = near.maker(turned, "Transpose")
    if transpose is None or q is None or turned is None or not _is_alike(q, turned, v):
        return None
    before: list[Node] = []
    k = _turn_back(transpose, before, node)
    if k.ranked_shape[:-2] != q.ranked_shape[:-2]:
        return None
    mask = scores.mask
    if scores.fill is not None and hiding is None:
        mask = _add_mask(scores, before, node)
    rate = _rate_of(dropout)
    if rate is None or (mask is not None and _enlarges(mask, softmax.outputs[0])):
        return None
    parts = (scores.product, softmax, *([dropout] if dropout else []), node)
    attrs = {"is_causal": 0, "scale": scale, "dropout": rate}
    inputs = (q, k, v) if mask is None else (q, k, v, mask)
    attention = Node("Attention", inputs, node.outputs, attrs, "", node.name, join_sources(*parts))
    return [*before, attention]


def _find_hidden(
    near: Neighbours, reader: Node, weights: Value | None
) -> tuple[Node | None, Value | None, Value | None]:
    """The node that makes hidden weights nothing, the weights before, and what shows the others."""
    where = near.sole_maker(reader, weights, "Where")
    if where is not None and _number(where.inputs[2]) == 0:
        return where, where.inputs[1], where.inputs[0]
    product = near.sole_maker(reader, weights, "Mul")
    for before, factor in orders(product) if product is not None else ():
        if near.maker(before, "Softmax") is not None and _is_of_bool(near, factor):
            return product, before, factor
    return None, weights, None


def _is_of_bool(near: Neighbours, value: Value | None) -> bool:
    """Whether a tensor holds numbers of 0 and 1."""
    node = near.maker(value, *RESHAPES, "Expand", "Cast")
    while node is not None and node.op != "Cast":
        node = near.maker(node.inputs[0], *RESHAPES, "Expand", "Cast")
    source = None if node is None else node.inputs[0]
    return source is not None and source.dtype is DType.BOOL


def _is_same_mask(near: Neighbours, mask: Value | None, shown: Value | None) -> bool:
    """Whether what is hidden before a softmax is so after it."""
    cast = near.maker(mask, "Cast")
    return mask is shown or (cast is not None and cast.inputs[0] is shown)


def _find_scores(near: Neighbours, softmax: Node) -> Scores | None:
    scores, reader, mask, fill = softmax.inputs[0], softmax, None, None
    where = near.sole_maker(reader, scores, "Where")
    total = near.sole_maker(reader, scores, "Add")
    if where is not None:
        mask, scores, fill = where.inputs
        least = _find_uniform(near, fill)
        if (
            least is None
            or least > HIDES
            or scores is None
            or scores.shape != where.outputs[0].shape
        ):
            return None
        reader = where
    if total is not None:
        for one, other in orders(total):
            if _find_product(near, total, one) is not None and other is not None:
                scores, mask, reader = one, other, total
                break
    product = _find_product(near, reader, scores)
    return None if product is None else Scores(*product, mask, fill)


def _find_uniform(near: Neighbours, value: Value | None) -> float | None:
    """The number that a tensor consists of, if it is known."""
    node = near.maker(value, "ConstantOfShape", "Expand", "Mul")
    if node is None:
        return _number(value)
    if node.op == "ConstantOfShape":
        filling = node.attrs.get("value")
        return float(filling.load().reshape(())) if isinstance(filling, Tensor) else 0.0
    factors = [_find_uniform(near, v) for v in node.inputs[: 1 if node.op == "Expand" else 2]]
    known = [f for f in factors if f is not None]
    return math.prod(known) if len(known) == len(factors) else None


def _find_product(near: Neighbours, reader: Node, value: Value | None) -> tuple[Node, float] | None:
    scaled, scale = _find_scaled(near, reader, value, 1.0)
    product = near.maker(scaled, "MatMul")
    if product is None or scaled is None:
        return None
    readers = [node.op for node in near.readers.get(scaled, ())]
    is_sole = near.uses[scaled] == len(readers) == 1 + readers.count("Shape")
    return (product, scale) if is_sole else None


def _find_scaled(
    near: Neighbours, reader: Node, value: Value | None, scale: float
) -> tuple[Value | None, float]:
    """What ``value`` is a multiple of, and ``scale`` times how much."""
    node = near.sole_maker(reader, value, "Mul", "Div")
    if node is None:
        return value, scale
    for x, factor in orders(node) if node.op == "Mul" else (node.inputs,):
        number = _number(factor)
        if x is not None and number and factor is not None and factor.rank <= x.rank:
            return x, scale * number if node.op == "Mul" else scale / number
    return value, scale


def _number(value: Value | None) -> float | None:
    is_one = value is not None and value.tensor is not None and value.tensor.size == 1
    return float(value.array().reshape(())) if is_one and value is not None else None


def _is_alike(q: Value, turned: Value, v: Value) -> bool:
    """Whether the operands are floats of one type, of the same samples and heads."""
    shapes = [value.shape for value in (q, turned, v)]
    if None in shapes or len({value.dtype for value in (q, turned, v)}) > 1 or q.type.kind != "f":
        return False
    ranks = {value.rank for value in (q, turned, v)}
    is_same = q.ranked_shape[:-2] == v.ranked_shape[:-2] and None not in q.ranked_shape[:-2]
    return ranks <= {3, 4} and len(ranks) == 1 and is_same


def _turn_back(transpose: Node, before: list[Node], node: Node) -> Value:
    """What a Transpose reads whose last axes are not exchanged."""
    x = transpose.inputs[0]
    assert x is not None
    perm = tuple(transpose.attrs["perm"])  # type: ignore[arg-type]
    perm = (*perm[:-2], perm[-1], perm[-2])
    if perm == tuple(range(len(perm))):
        return x
    k = Value(f"{node.outputs[0].name}/keys", x.dtype, tuple(x.ranked_shape[a] for a in perm))
    before.append(Node("Transpose", (x,), (k,), {"perm": perm}, "", node.name, transpose.sources))
    return k


def _add_mask(scores: Scores, before: list[Node], node: Node) -> Value:
    """What is added to scores so that those are hidden where the mask is false."""
    assert scores.mask is not None and scores.fill is not None
    zero = Tensor.of(np.zeros((), scores.fill.array().dtype))
    zeros = Value(f"{node.outputs[0].name}/zero", scores.fill.dtype, (), zero)
    mask = Value(f"{node.outputs[0].name}/mask", scores.fill.dtype, scores.mask.shape)
    before.append(Node("Where", (scores.mask, zeros, scores.fill), (mask,), {}, "", node.name,
                       node.sources))  # fmt: skip
    return mask


def _rate_of(dropout: Node | None) -> float | None:
    """The rate of a Dropout; 0 without one, None where it is computed."""
    if dropout is None:
        return 0.0
    ratio = dropout.inputs[1] if len(dropout.inputs) > 1 else None
    return 0.5 if ratio is None else _number(ratio)


def _enlarges(mask: Value, scores: Value) -> bool:
    """Whether a mask has more axes than the scores, or may have larger ones."""
    shape = mask.shape
    if shape is None or scores.shape is None or len(shape) > len(scores.shape) or len(shape) < 2:
        return True
    pairs = zip(reversed(shape), reversed(scores.shape), strict=False)
    return any(m not in (1, s) or m is None for m, s in pairs)
