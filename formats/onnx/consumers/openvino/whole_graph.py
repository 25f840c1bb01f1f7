"""What OpenVINO gets wrong beyond single nodes, in a lowered graph."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from serde.ir import arrays
from serde.ir.graph import Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_inputs

from ..used_names import used_names
from .quantized_bytes import retype_bytes
from .scans import carry_captured_values

PRODUCTS = ("Gemm", "MatMul")
BINARY = frozenset("Add Div Max Min Mul Pow PRelu Sub".split())
JOINED = BINARY | frozenset(
    "Abs Clip Elu Erf Exp Gelu HardSigmoid HardSwish LeakyRelu Mish Neg Relu Round Selu Sigmoid "
    "Softplus Sqrt Tanh".split()
)


def prepare(graph: Graph) -> Graph:
    """Return a lowered graph as OpenVINO computes it rightly."""
    return carry_captured_values(retype_bytes(widen_columns(graph)))


def widen_columns(graph: Graph) -> Graph:
    """Return a graph in which constants behind products of a dynamic size have all columns.

    OpenVINO joins the product with what follows, takes a constant of one column for one that has
    a number for each, and fails to load it.
    """
    names, nodes, is_same = used_names(graph), [], True
    joined: set[Value] = set()  # products with constant weights, and what is made of their elements
    for node in graph.nodes:
        held = [v for v in node.inputs if v is not None and v.tensor is None]
        is_joined = node.op in JOINED and len(held) == 1 and held[0] in joined
        if is_joined or (node.op in PRODUCTS and has_weights(node)):
            joined.update(node.outputs)
        x = held[0] if is_joined and node.op in BINARY and not held[0].is_static else None
        columns = x.ranked_shape[-1] if x is not None and x.shape else None
        for c in node.inputs if isinstance(columns, int) and columns > 1 else ():
            if c is not None and is_column(c):
                wide = widen(c, columns, names.fresh(c.name))
                node, is_same = replace_inputs(node, {c: wide}), False
        nodes.append(node)
    return graph if is_same else replace(graph, nodes=tuple(nodes))


def has_weights(node: Node) -> bool:
    """Whether a product is one with a constant."""
    w = node.inputs[1]
    return w is not None and w.tensor is not None


def is_column(v: Value) -> bool:
    """Whether a constant has several elements, and one of them in each row."""
    return v.tensor is not None and v.rank > 1 and v.ranked_shape[-1] == 1 < v.tensor.size


def widen(v: Value, columns: int, name: str) -> Value:
    """A constant with its column so many times."""
    tensor, shape = v.tensor, (*v.static_shape[:-1], columns)
    assert tensor is not None
    arrays.charge_elements(prod(shape))
    wide = Tensor(tensor.dtype, shape, lambda: tensor.load().repeat(columns, axis=-1))
    return Value(name, v.dtype, shape, wide)
