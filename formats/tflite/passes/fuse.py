"""Activations, biases and dropped axes as part of the operators before them."""

from __future__ import annotations

from types import MappingProxyType

from serde.ir.graph import Graph, Node
from serde.rewrite.patterns import Neighbours, Patterns, merge, orders

FUSED = {"RELU": 1, "RELU6": 3}  # numbers of ActivationFunctionType
TAKES = (
    "ADD", "AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "DIV", "FULLY_CONNECTED",
    "MAX_POOL_2D", "MUL", "SUB",
)  # fmt: skip
REDUCERS = ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM")
patterns = Patterns(domain="tflite")
FIELD = "fused_activation_function"


@patterns(*FUSED)
def fuse_activation(near: Neighbours, node: Node) -> Node | None:
    """An activation behind an operator whose kernels have it."""
    maker = near.sole_maker(node, node.inputs[0], *TAKES)
    if maker is None or FIELD in maker.attrs or maker.outputs[0].dtype is None:
        return None
    if maker.outputs[0].dtype.kind != "f":
        return None
    attrs = MappingProxyType({**maker.attrs, FIELD: FUSED[node.op]})
    return merge(maker, node, attrs=attrs)


@patterns("ADD")
def fuse_bias(near: Neighbours, node: Node) -> Node | None:
    """A constant row added behind a layer without a bias."""
    for product, bias in orders(node):
        layer = near.sole_maker(node, product, "FULLY_CONNECTED")
        if layer is None or bias is None or bias.tensor is None or layer.inputs[2] is not None:
            continue
        if bias.static_shape == node.outputs[0].ranked_shape[-1:] and FIELD not in layer.attrs:
            return merge(layer, node, inputs=(*layer.inputs[:2], bias), attrs=layer.attrs)
    return None


@patterns("RESHAPE")
def drop_reduced_axes(near: Neighbours, node: Node) -> Node | None:
    """A RESHAPE that leaves out the axes of size 1 that a reduction has kept."""
    maker = near.sole_maker(node, node.inputs[0], *REDUCERS)
    if maker is None or not maker.attrs.get("keep_dims") or maker.inputs[1] is None:
        return None
    gone, kept = maker.inputs[1].ints(), maker.outputs[0].ranked_shape
    left = tuple([d for a, d in enumerate(kept) if a not in gone])
    if left != node.outputs[0].shape:
        return None
    return merge(maker, node, attrs=MappingProxyType({**maker.attrs, "keep_dims": 0}))


def fuse(graph: Graph) -> Graph:
    """Return ``graph`` with operators fused."""
    return patterns.apply(graph)
