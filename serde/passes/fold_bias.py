"""A sum with a constant for each channel as the bias of the convolution before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serde.ir.graph import Call, DType, Graph, Node, Tensor, Value

CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
FLOATS = frozenset({DType.FLOAT16, DType.FLOAT32, DType.FLOAT64})


def fold_bias(graph: Graph) -> Graph:
    """Return ``graph`` with sums of this form folded; subgraphs are left as they are.

    Convolutions whose result is read by others too, and those with a bias, stay.
    """
    makers = {v: node for node in graph.nodes if node.op in CONVOLUTIONS for v in node.outputs}
    if not makers:
        return graph
    uses = graph.uses()
    folded: dict[Node, Node] = {}
    dropped: set[Node] = set()
    for node in graph.nodes:
        if node.op != "Add" or node.domain:
            continue
        for x, b in (node.inputs, node.inputs[::-1]):
            layer = makers.get(x) if x is not None and uses[x] == 1 else None
            if layer is None or b is None or _calls(layer) != _calls(node):
                continue
            if (bias := _bias_of(layer, b)) is not None:
                folded[layer] = _with_bias(layer, bias, node)
                dropped.add(node)
                break
    if not folded:
        return graph
    nodes = tuple(folded.get(node, node) for node in graph.nodes if node not in dropped)
    return replace(graph, nodes=nodes)


def _calls(node: Node) -> set[tuple[Call, ...]]:
    """The functions of the source that a node is part of."""
    return {s.calls for s in node.sources}


def _bias_of(layer: Node, b: Value) -> Value | None:
    """What is added to a convolution, as its bias; None where it is no constant by channel."""
    (result,), weight = layer.outputs, layer.inputs[1]
    if b.tensor is None or b.dtype not in FLOATS or len(layer.inputs) > 2 or layer.domain:
        return None
    if result.shape is None or weight is None or b.rank > len(result.shape):
        return None
    channels, shape = result.shape[1], (1,) * (len(result.shape) - b.rank) + b.static_shape
    if not isinstance(channels, int) or shape != (1, channels, *[1] * (len(shape) - 2)):
        return None
    tensor = b.tensor

    def load() -> np.ndarray:
        return np.asarray(tensor.load()).reshape(channels)

    return Value(b.name, b.dtype, (channels,), Tensor(tensor.dtype, (channels,), load))


def _with_bias(layer: Node, bias: Value, sum_: Node) -> Node:
    sources = (*layer.sources, *sum_.sources)
    inputs = (*layer.inputs[:2], bias)
    return replace(layer, inputs=inputs, outputs=sum_.outputs, sources=sources)
