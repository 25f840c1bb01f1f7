"""What OpenVINO gets wrong beyond single nodes, in a lowered graph."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from serde.ir import arrays
from serde.ir.graph import Graph, Node, Shape, Tensor, Value
from serde.ir.replace_uses import replace_inputs
from serde.spec.traits import ARITHMETIC, ELEMENTWISE

from ..used_names import used_names
from .quantized_bytes import PRODUCTS, retype_bytes
from .scans import carry_captured_values

BINARY = ARITHMETIC | {"Max", "Min", "Pow", "PRelu"}
JOINED = BINARY | ELEMENTWISE


def prepare(graph: Graph) -> Graph:
    """Return a lowered graph as OpenVINO computes it rightly."""
    return carry_captured_values(retype_bytes(widen_columns(graph)))


def widen_columns(graph: Graph) -> Graph:
    """Return a graph in which constants behind products of a dynamic size have all columns.

    OpenVINO joins the product with what follows, takes a constant of one column for one that has
    a number for each, and fails to load it. Of products of one column it does so with constants of
    one row.
    """
    names, nodes, is_same = used_names(graph), [], True
    joined: set[Value] = set()  # products with constant weights, and what is made of their elements
    for node in graph.nodes:
        computed = [v for v in node.inputs if v is not None and v.tensor is None]
        is_joined = node.op in JOINED and len(computed) == 1 and computed[0] in joined
        if is_joined or (node.op in PRODUCTS and has_weights(node)):
            joined.update(node.outputs)
        x = computed[0] if is_joined and node.op in BINARY and not computed[0].is_static else None
        shape = x.ranked_shape if x is not None and x.shape else ()
        for c in node.inputs if shape else ():
            if c is not None and (axis := find_narrow_axis(c, shape)):
                repeated = widen(c, axis, shape[axis], names.fresh(c.name))
                node, is_same = replace_inputs(node, {c: repeated}), False
        nodes.append(node)
    return graph if is_same else replace(graph, nodes=tuple(nodes))


def has_weights(node: Node) -> bool:
    """Whether a product is one with a constant."""
    w = node.inputs[1]
    return w is not None and w.tensor is not None


def find_narrow_axis(c: Value, shape: Shape) -> int:
    """The axis, from the end, along which a constant of several elements has to be repeated; 0 for
    none.
    """
    if c.tensor is None or c.tensor.size < 2 or c.rank < 2 or c.ranked_shape[-1] != 1:
        return 0
    axis = -2 if shape[-1] == 1 else -1
    is_narrow = c.ranked_shape[axis] == 1 and isinstance(shape[axis], int) and shape[axis] != 1
    return axis if is_narrow else 0


def widen(v: Value, axis: int, count: Any, name: str) -> Value:
    """A constant of one element along an axis, with so many of it."""
    tensor, shape = v.tensor, list(v.static_shape)
    assert tensor is not None
    shape[axis] = count
    arrays.charge_elements(prod(shape))
    repeated = Tensor(tensor.dtype, tuple(shape), lambda: tensor.load().repeat(count, axis=axis))
    return Value(name, v.dtype, tuple(shape), repeated)
