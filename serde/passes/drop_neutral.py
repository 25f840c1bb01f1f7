"""Sums with zero, products with one, and reductions over axes of one element."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace

from serde.ir.graph import Graph, Node, Shape, Value
from serde.ir.replace_uses import replace_inputs, replace_values
from serde.passes.merge_reductions import find_reduced_axes

NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
MOST = 1 << 16  # elements that are looked at
COMMUTATIVE = frozenset({"Add", "Mul"})
REDUCTIONS = frozenset("ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum".split())


def drop_neutral(graph: Graph) -> Graph:
    """Return ``graph`` without such nodes; subgraphs are left as they are.

    A reduction that drops the axes becomes a Squeeze. A sum with zero makes 0 of -0, which ONNX
    Runtime, dropping the sum itself, does not either. Where one computes an output, the node that
    it reads computes that instead, if there is one.
    """
    instead: dict[Value, Value] = {}
    renamed: dict[Value, Value] = {}  # by what the node computed
    nodes: list[Node] = []
    for node in graph.nodes:
        node = replace_inputs(node, instead) if instead else node
        x, y = _find_same(node), node.outputs[0]
        if x is None:
            nodes.append(node)
        elif x.rank != y.rank:
            nodes.append(replace(node, op="Squeeze", attrs={}))
        elif y not in graph.outputs:
            instead[y] = x
        elif _is_inner(x, graph) and x not in renamed:
            renamed[x] = y
        else:
            nodes.append(node)
    if len(nodes) == len(graph.nodes) and all(map(operator.is_, nodes, graph.nodes)):
        return graph
    done = replace(graph, nodes=tuple(_rename_outputs(node, renamed) for node in nodes))
    return replace_values(done, renamed) if renamed else done


def _is_inner(value: Value, graph: Graph) -> bool:
    """Whether a node computes a value that is no output."""
    return value not in graph.outputs and any(value in node.outputs for node in graph.nodes)


def _rename_outputs(node: Node, renamed: Mapping[Value, Value]) -> Node:
    if renamed.keys().isdisjoint(node.outputs):
        return node
    return replace(node, outputs=tuple(renamed.get(v, v) for v in node.outputs))


def _find_same(node: Node) -> Value | None:
    """The operand whose elements a node returns."""
    if node.domain:
        return None
    if node.op in REDUCTIONS:
        return _find_reduced(node)
    return _find_term(node) if node.op in NEUTRAL else None


def _find_reduced(node: Node) -> Value | None:
    """The operand of a reduction over axes of one element."""
    x, axes = node.inputs[0], find_reduced_axes(node)
    if x is None or axes is None or x.tensor is not None:
        return None
    return x if all(x.ranked_shape[axis] == 1 for axis in axes) else None


def _find_term(node: Node) -> Value | None:
    """The operand of a sum or product whose other operands change nothing."""
    a, b = node.inputs
    pairs = ((a, b), (b, a)) if node.op in COMMUTATIVE else ((a, b),)
    for x, held in pairs:
        if x is None or held is None or held.tensor is None or held.tensor.size > MOST:
            continue
        if x.shape is None or x.tensor is not None or not _keeps_shape(x.shape, held.static_shape):
            continue
        if (held.array() == NEUTRAL[node.op]).all():
            return x
    return None


def _keeps_shape(shape: Shape, other: Shape) -> bool:
    """Whether what ``shape`` and ``other`` broadcast to is ``shape``."""
    behind = shape[len(shape) - len(other) :]
    return len(other) <= len(shape) and all(
        b == 1 or (a == b and isinstance(a, int)) for a, b in zip(behind, other, strict=True)
    )
