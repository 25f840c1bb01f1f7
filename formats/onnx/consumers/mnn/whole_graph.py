"""What MNN gets wrong beyond single nodes, in a lowered graph."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Graph, Tensor, Value
from serde.ir.replace_uses import replace_inputs
from serde.spec.traits import BROADCASTS

from ..used_names import used_names
from .outputs import copy_shared_outputs


def prepare(graph: Graph) -> Graph:
    """Return a lowered graph as MNN computes it rightly."""
    return copy_shared_outputs(flatten_first_operands(graph))


def flatten_first_operands(graph: Graph) -> Graph:
    """Return a graph in which numbers that are first operands have one axis.

    MNN reads one of the shape (1, 1, 1, 1) as an image of several channels.
    """
    flat: dict[Value, Value] = {}
    names, nodes = used_names(graph), []
    for node in graph.nodes:
        first, second = (*node.inputs, None, None)[:2]
        if node.op in BROADCASTS and first is not None and is_wide_number(first, second):
            if first not in flat:
                number = Tensor.of(first.array().reshape(1))
                flat[first] = Value(names.fresh(first.name), first.dtype, (1,), number)
            node = replace_inputs(node, {first: flat[first]})
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes)) if flat else graph


def is_wide_number(v: Value, other: Value | None) -> bool:
    """Whether a constant has one element and several axes, which another operand has, too."""
    if v.tensor is None or v.tensor.size != 1 or other is None or other.shape is None:
        return False
    return 1 < v.rank <= other.rank
