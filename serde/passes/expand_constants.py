"""Constants in place of nodes that repeat a constant to a small tensor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serde.ir.graph import IR_OPSET, Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_inputs
from serde.passes.links import constant, is_constant
from serde.spec.folding import fold
from serde.spec.inference import Type

MOST = 1 << 14  # elements


def expand_constants(graph: Graph) -> Graph:
    """Return ``graph`` without ``Expand`` and ``ConstantOfShape`` of constants.

    Those of more elements than ``MOST`` stay, and those that compute an output; subgraphs too.
    Nodes that read nothing else are computed as well.
    """
    instead: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        reads = not instead.keys().isdisjoint(node.inputs)
        node = replace_inputs(node, instead) if instead else node
        held = None
        if len(node.outputs) == 1 and node.outputs[0] not in graph.outputs and not node.domain:
            held = (_fold(node) if reads else None) or _expand(node)
        if held is None:
            nodes.append(node)
        else:
            instead[node.outputs[0]] = held
    return replace(graph, nodes=tuple(nodes)) if instead else graph


def _fold(node: Node) -> Value | None:
    """What a node computes of constants."""
    (y,) = node.outputs
    types = (Type(y.dtype, y.shape),)
    if not is_constant(node.inputs) or y.container:
        return None
    tensors = fold(node.op, IR_OPSET, node.inputs, node.attrs, types)
    return None if tensors is None else constant(y.name, tensors[0])


def _expand(node: Node) -> Value | None:
    """What a node repeats."""
    if node.op not in ("ConstantOfShape", "Expand") or not is_constant(node.inputs):
        return None
    (y,) = node.outputs
    if not y.is_static or np.prod(y.static_shape, dtype=np.int64) > MOST:
        return None
    source = node.inputs[0]
    if node.op == "Expand" and source is not None:
        array = source.array()
    else:
        value = node.attrs.get("value")
        array = value.load().reshape(()) if isinstance(value, Tensor) else np.float32(0)
    return constant(y.name, Tensor.of(np.broadcast_to(array, y.static_shape).copy()))
