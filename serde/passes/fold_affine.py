"""Products and sums with a constant for each channel, as part of the weights of a neighbour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.constants import is_constant
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.rewrite.patterns import Neighbours

Array = np.ndarray[Any, Any]
TINY = {DType.FLOAT16: 2.0**-14, DType.BFLOAT16: 2.0**-126}  # the smallest normal numbers
FLOATS = frozenset({DType.FLOAT32, DType.FLOAT64, *TINY})


def fold_affine(graph: Graph) -> Graph:
    """Return ``graph`` with such nodes folded; subgraphs are left as they are.

    A Mul or Add behind a BatchNormalization for inference changes its scale and shift; a Mul before
    a Conv, whose padding is zero, changes the weights. Weights are computed when they are written,
    in float64, and rounded to their type once, as the operators that go away rounded results.
    """
    while (done := _fold_each(graph)) is not graph:
        graph = done
    return graph


def _fold_each(graph: Graph) -> Graph:
    near = Neighbours(graph)
    folded: dict[Node, Node] = {}
    dropped: set[Node] = set()
    for node in graph.nodes:
        norm, held = _find_norm(node, near)
        if norm is not None and held is not None and norm not in folded:
            if has_normal_constants(joined := _with_affine(norm, node, held)):
                folded[norm] = joined
                dropped.add(node)
            continue
        factor, held = _find_factor(node, near)
        if factor is None or held is None or factor in dropped:
            continue
        if has_normal_constants(joined := _with_factor(node, factor, held)):
            folded[node] = joined
            dropped.add(factor)
    if not folded:
        return graph
    nodes = tuple(folded.get(node, node) for node in graph.nodes if node not in dropped)
    return replace(graph, nodes=nodes)


def _find_norm(node: Node, near: Neighbours) -> tuple[Node | None, Value | None]:
    """The BatchNormalization that a Mul or Add reads alone, and the other operand."""
    if node.op not in ("Add", "Mul") or node.domain:
        return None, None
    for x, held in (node.inputs, node.inputs[::-1]):
        norm = near.sole_maker(node, x, "BatchNormalization")
        is_plain = norm is not None and len(norm.outputs) == 1
        if norm is None or not is_plain or norm.attrs.get("training_mode"):
            continue
        if is_constant(norm.inputs[1:]) and is_by_channel(held, norm.outputs[0]):
            return norm, held
    return None, None


def _find_factor(node: Node, near: Neighbours) -> tuple[Node | None, Value | None]:
    """The Mul by channel that a Conv reads alone, and its constant."""
    if node.op != "Conv" or node.domain or not is_constant(node.inputs[1:2]):
        return None, None
    product = near.sole_maker(node, node.inputs[0], "Mul")
    if product is None:
        return None, None
    for x, held in (product.inputs, product.inputs[::-1]):
        if x is not None and x.tensor is None and is_by_channel(held, product.outputs[0]):
            return product, held
    return None, None


def has_normal_constants(node: Node) -> bool:
    """Whether weights and what is added fit a type of 16 bits, which holds neither large nor small
    numbers. Wider types are not looked at.
    """
    weights, *rest = (v for v in node.inputs[1:] if v is not None)
    return _is_within(weights, TINY.get(weights.type, 0)) and all(_is_within(v, 0) for v in rest)


def _is_within(value: Value, least: float) -> bool:
    """Whether the largest number of a constant of 16 bits is finite, and ``least`` or more."""
    if value.tensor is None or value.type not in TINY:
        return True
    with np.errstate(over="ignore"):  # in the cast to the type
        array = value.array().astype(np.float32)
    return bool(least <= np.abs(array).max(initial=0) < np.inf)


def is_by_channel(held: Value | None, x: Value) -> bool:
    """Whether a constant of floats has one number for each channel of ``x``, or one."""
    if held is None or held.tensor is None or x.shape is None or held.dtype is not x.dtype:
        return False
    if held.dtype not in FLOATS or held.rank > len(x.shape):
        return False
    shape = (1,) * (len(x.shape) - held.rank) + held.static_shape
    channels = x.shape[1] if len(shape) > 1 else 1
    return shape[:1] + shape[2:] == (1,) * (len(shape) - 1) and shape[1] in (1, channels)


def _constant(like: Value, name: str, load: Callable[[], Array]) -> Value:
    def load_typed() -> Array:
        return np.asarray(load(), like.type.numpy)

    return Value(name, like.dtype, like.shape, Tensor(like.type, like.static_shape, load_typed))


def _with_affine(norm: Node, node: Node, held: Value) -> Node:
    """A BatchNormalization with a factor or a sum behind it."""
    x, scale, shift, *rest = norm.inputs
    assert scale is not None and shift is not None
    name, is_sum = node.outputs[0].name, node.op == "Add"

    def number() -> Array:
        return held.array().astype(np.float64).ravel()

    def load_scale() -> Array:
        return np.asarray(scale.array() * number())

    def load_shift() -> Array:
        own = shift.array().astype(np.float64)
        return np.asarray(own + number() if is_sum else own * number())

    factors = scale if is_sum else _constant(scale, f"{name}/scale", load_scale)
    operands = (x, factors, _constant(shift, f"{name}/shift", load_shift), *rest)
    sources = (*norm.sources, *node.sources)
    return replace(norm, inputs=operands, outputs=node.outputs, sources=sources)


def _with_factor(conv: Node, product: Node, held: Value) -> Node:
    """A convolution of what a product with a constant reads."""
    x = next(v for v in product.inputs if v is not held)
    w = conv.inputs[1]
    assert w is not None

    def load() -> Array:
        own, number = w.array().astype(np.float64), held.array().astype(np.float64).ravel()
        if number.size == 1:
            return own * number
        group: Any = conv.attrs.get("group", 1)
        parts = own.reshape(group, own.shape[0] // group, *own.shape[1:])
        by_group = number.reshape(group, 1, -1, *[1] * (own.ndim - 2))
        return np.asarray((parts * by_group).reshape(own.shape))

    weights = _constant(w, f"{conv.outputs[0].name}/weight", load)
    sources = (*product.sources, *conv.sources)
    return replace(conv, inputs=(x, weights, *conv.inputs[2:]), sources=sources)
