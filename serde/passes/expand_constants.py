"""Constants in place of nodes that repeat a constant to a small tensor."""

from __future__ import annotations

import math
import operator
from dataclasses import replace

import numpy as np

from serde.ir.constants import is_constant, make_constant
from serde.ir.graph import IR_OPSET, Graph, Node, Tensor, Value
from serde.ir.map_nodes import map_bodies
from serde.ir.replace_uses import replace_inputs
from serde.passes.narrow_operands import EXPANDING, find_expanded
from serde.passes.optional import optional
from serde.spec.folding import fold
from serde.spec.inference import Type

MOST = 1 << 14  # elements of what is expanded


@optional("expand_constants")
def expand_constants(graph: Graph) -> Graph:
    """Return ``graph`` without ``Expand`` and ``ConstantOfShape`` of constants.

    Those of more elements than ``MOST`` stay, and those that compute an output. Nodes that read
    nothing else are computed as well.
    """
    if not any(node.op in EXPANDING for node in graph.all_nodes()):
        return graph
    instead: dict[Value, Value] = {}
    nodes: list[Node] = []
    outputs = frozenset(graph.outputs)
    for node in graph.nodes:
        reads = not instead.keys().isdisjoint(node.inputs)
        node = map_bodies(replace_inputs(node, instead) if instead else node, expand_constants)
        computed = None
        if len(node.outputs) == 1 and not node.domain and outputs.isdisjoint(node.outputs):
            computed = (_fold_node(node) if reads else None) or _expand_node(node)
        if computed is None:
            nodes.append(node)
        else:
            instead[node.outputs[0]] = computed
    is_same = not instead and all(map(operator.is_, nodes, graph.nodes))
    return graph if is_same else replace(graph, nodes=tuple(nodes))


def _fold_node(node: Node) -> Value | None:
    """What a node computes of constants."""
    (y,) = node.outputs
    types = (Type(y.dtype, y.shape),)
    if not is_constant(node.inputs) or y.container:
        return None
    tensors = fold(node.op, IR_OPSET, node.inputs, node.attrs, types)
    return None if tensors is None else make_constant(y.name, tensors[0])


def _expand_node(node: Node) -> Value | None:
    """The tensor that a node makes of a constant that it repeats."""
    source = find_expanded(node) if is_constant(node.inputs) else None
    (y,) = node.outputs
    if source is None or not y.is_static or math.prod(y.static_shape) > MOST:
        return None
    return make_constant(y.name, Tensor.of(np.broadcast_to(source.array(), y.static_shape).copy()))
