"""The multiply-adds of a node, and the bytes of a value, as far as their shapes tell."""

from __future__ import annotations

from math import prod

from serde.ir.graph import Graph, Node, Shape, Value

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
PRODUCTS = frozenset({"MatMul", "MatMulInteger", "QLinearMatMul", "Gemm"})
CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "QLinearConv", "DeformConv"})


def count_elements(shape: Shape | None) -> int:
    """The elements of a shape; a size that is no number counts as 1."""
    return prod(d if isinstance(d, int) else 1 for d in shape or ())


def count_bytes(value: Value) -> int:
    """The bytes of a value's elements; sizes that are no numbers count as 1."""
    bits = value.dtype.bits if value.dtype is not None else 0
    return (count_elements(value.shape) * bits + 7) // 8


def count_multiply_adds(node: Node) -> int:
    """The multiply-adds of products, convolutions and recurrent layers; of others there are none.

    Those of a subgraph count once.
    """
    if node.graphs():
        return sum(count_graph(g) for g in node.graphs())
    if node.domain:
        return 0
    if node.op in PRODUCTS:
        return count_elements(node.outputs[0].shape) * _depth(node)
    if node.op in CONVOLUTIONS:
        weight = node.inputs[3 if node.op == "QLinearConv" else 1]
        depth = count_elements(weight.shape[1:]) if weight and weight.shape else 0
        return count_elements(node.outputs[0].shape) * depth
    if node.op == "ConvTranspose":
        x, weight = node.inputs[:2]
        depth = count_elements(weight.shape[1:]) if weight and weight.shape else 0
        return depth * count_elements(x.shape) if x else 0
    if node.op in GATES:
        return _recurrent(node)
    return 0


def count_graph(graph: Graph) -> int:
    """The multiply-adds of all nodes of a graph."""
    return sum(map(count_multiply_adds, graph.nodes))


def _depth(node: Node) -> int:
    """What a matrix product sums over."""
    x = node.inputs[0]
    if x is None or not x.shape:
        return 0
    axis = 0 if node.op == "Gemm" and node.attrs.get("transA") else -1
    return count_elements((x.shape[axis],))


def _recurrent(node: Node) -> int:
    """Products of the inputs and of the state, of each step."""
    x, w, r = node.inputs[:3]
    if x is None or w is None or r is None or not (x.shape and w.shape and r.shape):
        return 0
    return count_elements(x.shape[:2]) * (count_elements(w.shape) + count_elements(r.shape))
