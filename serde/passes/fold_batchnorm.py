"""BatchNormalization, and factors and sums by channel, as part of the weights beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.graph import Graph, Node, Tensor, Value
from serde.passes.fold_affine import FLOATS, fold_affine, has_normal_constants, is_by_channel
from serde.rewrite.patterns import Neighbours

Array = np.ndarray[Any, Any]
FOLDING = frozenset({"Conv", "ConvTranspose", "Gemm"})


def fold_batchnorm(graph: Graph) -> Graph:
    """Return ``graph`` with each BatchNormalization of constants folded into the layer before it.

    First, products and sums with a constant for each channel become a BatchNormalization, or part
    of the one before them (``fold_affine``). Layers whose result is read by others too stay.
    Weights are computed when they are written, in float64, and rounded once. Subgraphs are left as
    they are.
    """
    graph = fold_affine(_as_norms(graph))
    while (done := _fold_each(graph)) is not graph:  # one may follow another
        graph = done
    return graph


def _as_norms(graph: Graph) -> Graph:
    """Products and sums by channel behind a layer as BatchNormalizations."""
    near = Neighbours(graph)
    norms: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op not in ("Add", "Mul") or node.domain:
            continue
        for x, held in (node.inputs, node.inputs[::-1]):
            layer = near.sole_maker(node, x, *FOLDING)
            if x is None or layer is None or held is None or not _takes_factor(layer):
                continue
            shape = x.shape or ()
            if len(shape) < 2 or not isinstance(shape[1], int) or not is_by_channel(held, x):
                continue
            norm = _as_norm(node, x, held)
            if has_normal_constants(_fold(layer, norm, near.uses)):
                norms[node] = norm
            break
    if not norms:
        return graph
    return replace(graph, nodes=tuple(norms.get(node, node) for node in graph.nodes))


def _as_norm(node: Node, x: Value, held: Value) -> Node:
    """A product or a sum with one number for each channel of ``x``."""
    assert x.shape is not None and isinstance(x.shape[1], int)
    channels, name = x.shape[1], node.outputs[0].name

    def constant(part: str, number: float) -> Value:
        def load() -> Array:
            own = held.array().ravel() if part == used else number
            return np.array(np.broadcast_to(own, (channels,)), x.type.numpy)

        return Value(f"{name}/{part}", x.type, (channels,), Tensor(x.type, (channels,), load))

    used = "scale" if node.op == "Mul" else "shift"
    numbers = {"scale": 1.0, "shift": 0.0, "mean": 0.0, "variance": 1.0}
    inputs = (x, *(constant(part, number) for part, number in numbers.items()))
    attrs = {"epsilon": 0.0, "momentum": 0.9, "training_mode": 0}
    return Node("BatchNormalization", inputs, node.outputs, attrs, "", node.name, node.sources)


def _fold_each(graph: Graph) -> Graph:
    near = Neighbours(graph)
    folded: dict[Node, Node] = {}
    dropped: set[Node] = set()
    for node in graph.nodes:
        x = node.inputs[0] if _is_foldable(node) else None
        layer = near.makers.get(x) if x is not None and near.uses[x] == 1 else None
        if layer is None or not _takes_factor(layer):
            continue
        joined = _fold(layer, node, near.uses)
        if has_normal_constants(joined):
            folded[layer] = joined
            dropped.add(node)
    if not folded:
        return graph
    nodes = tuple(folded.get(node, node) for node in graph.nodes if node not in dropped)
    return replace(graph, nodes=nodes)


def _is_foldable(node: Node) -> bool:
    """Whether a node is a BatchNormalization for inference with constant operands."""
    if node.op != "BatchNormalization" or node.domain or len(node.outputs) > 1:
        return False
    is_constant = all(v is not None and v.tensor is not None for v in node.inputs[1:])
    return is_constant and not node.attrs.get("training_mode")


def _takes_factor(layer: Node) -> bool:
    """Whether a layer has constant weights, and one result for each of their channels."""
    if layer.op not in FOLDING or layer.domain or len(layer.inputs) < 2:
        return False
    if not all(v is None or (v.tensor is not None and v.dtype in FLOATS) for v in layer.inputs[1:]):
        return False
    if layer.op != "Gemm":
        return True
    bias = (*layer.inputs, None)[2]
    is_row = bias is None or len(bias.static_shape) < 2
    return is_row and layer.attrs.get("alpha", 1.0) == layer.attrs.get("beta", 1.0) == 1


def _fold(layer: Node, norm: Node, uses: Mapping[Value, int]) -> Node:
    """The layer with weights and a bias that include the normalization."""
    x, w, b = (*layer.inputs, None)[:3]
    scale, shift, mean, var = norm.inputs[1:5]
    assert w is not None and scale is not None and shift is not None
    epsilon = float(norm.attrs.get("epsilon", 1e-5))  # type: ignore[arg-type]

    def factor() -> Array:
        return np.asarray(_wide(scale) / np.sqrt(_wide(var) + epsilon))

    def load_weights() -> Array:
        return np.asarray(_multiply(layer, _wide(w), factor()), w.type.numpy)

    def load_bias() -> Array:
        own = 0.0 if b is None else _wide(b)
        return np.asarray((own - _wide(mean)) * factor() + _wide(shift), w.type.numpy)

    def constant(
        like: Value, part: str, shape: tuple[int, ...], load: Callable[[], Array]
    ) -> Value:
        name = like.name if uses[like] == 1 else f"{norm.outputs[0].name}/{part}"
        return Value(name, w.dtype, shape, Tensor(w.type, shape, load))

    weights = constant(w, "weight", w.static_shape, load_weights)
    bias = constant(shift, "bias", scale.static_shape, load_bias)
    sources = (*layer.sources, *norm.sources)
    return replace(layer, inputs=(x, weights, bias), outputs=norm.outputs, sources=sources)


def _wide(value: Value | None) -> Array:
    assert value is not None
    return value.array().astype(np.float64)


def _multiply(layer: Node, w: Array, factor: Array) -> Array:
    """Weights times a factor for each channel of the result."""
    if layer.op == "Conv":
        return np.asarray(w * factor.reshape(-1, *[1] * (w.ndim - 1)))
    if layer.op == "Gemm":
        return np.asarray(w * (factor[:, None] if layer.attrs.get("transB") else factor))
    group: Any = layer.attrs.get("group", 1)
    parts = w.reshape(group, w.shape[0] // group, *w.shape[1:])
    by_group = factor.reshape(group, 1, w.shape[1], *[1] * (w.ndim - 2))
    return np.asarray((parts * by_group).reshape(w.shape))
