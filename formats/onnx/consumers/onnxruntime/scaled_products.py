"""Products of integers whose sums become float32 as they are made: ``MatMulIntegerToFloat``.

The operator is ONNX Runtime's own (``com.microsoft``). It multiplies each sum by a scale of its
column and adds a bias, in float32, before the sum leaves the registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from serde.ir.constants import make_constant, make_lazy_constant
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.ir.map_nodes import map_bodies
from serde.rewrite.patterns import Neighbours, join_sources

from ...contrib.table import DOMAIN
from ..used_names import used_names
from .bias_rows import make_bias_rows
from .row_blocks import is_row

OP, VERSION = "MatMulIntegerToFloat", 1


def join_scaled_products(graph: Graph) -> Graph:
    """Return ``graph``, and its subgraphs, with one node for each product that becomes float32.

    That is a ``MatMulInteger`` by a constant matrix, a ``Cast``, and what follows of a product with
    a scale and a sum with a bias; numbers stay the same.
    """
    one = make_constant(used_names(graph).fresh("one"), Tensor.of(np.ones((), np.float32)))
    done = _join_each(graph, one)
    if all(node.domain != DOMAIN for node in done.all_nodes()):
        return done
    return replace(done, imports={**done.imports, DOMAIN: VERSION})


def _join_each(graph: Graph, one: Value) -> Graph:
    nodes = [map_bodies(node, lambda body: _join_each(body, one)) for node in graph.nodes]
    graph = replace(graph, nodes=tuple(nodes))
    near = Neighbours(graph)
    joined: dict[Node, list[Node]] = {}
    inside: set[Node] = set()
    for node in graph.nodes:
        cast = near.sole_reader(node, "Cast") if _is_product(node) else None
        if cast is None or cast.outputs[0].dtype is not DType.FLOAT32:
            continue
        used, product = _join_bias_rows(node, cast, near, one) or _join_plain(node, cast, near, one)
        joined[used[-1]] = product
        inside.update(used)
    if not joined:
        return graph
    nodes = [
        new for n in graph.nodes for new in joined.get(n, () if n in inside else (n,))
    ]  # fmt: skip
    return replace(graph, nodes=tuple(nodes))


def _join_plain(
    product: Node, cast: Node, near: Neighbours, one: Value
) -> tuple[list[Node], list[Node]]:
    """What a product becomes with its scale and its bias, in this order: nodes before and after."""
    scale = _read_row(cast, near, "Mul")
    used = [product, cast, *scale[:1]]
    bias = _read_row(used[-1], near, "Add", of_all=True)
    used += bias[:1]
    return used, [_join(used, product.inputs, one, *(scale[1:] or (one,)), *bias[1:])]


def _join_bias_rows(
    product: Node, cast: Node, near: Neighbours, one: Value
) -> tuple[list[Node], list[Node]] | None:
    """The same for a bias, then a scale; None where the bias does not become a part of the sums."""
    bias = _read_row(cast, near, "Add", of_all=True)
    scale = _read_row(bias[0], near, "Mul") if bias else ()
    rows = make_bias_rows(product, bias[1]) if bias and scale else None
    x = product.inputs[0]
    if not bias or not scale or rows is None or x is None:
        return None
    name = product.outputs[0].name
    columns, weights = (
        make_constant(f"{name}/{part}", tensor)
        for part, tensor in zip(rows._fields, rows, strict=True)
    )
    shape = (*x.ranked_shape[:-1], weights.static_shape[0])
    joined = Value(f"{name}/Concat", x.dtype, shape)
    concat = Node(
        "Concat", (x, columns), (joined,), {"axis": -1}, "", product.name, product.sources
    )
    used = [product, cast, bias[0], scale[0]]
    return used, [concat, _join(used, (joined, weights, *product.inputs[2:]), one, scale[1])]


def _join(
    nodes: list[Node], operands: Sequence[Value | None], one: Value, scale: Value,
    bias: Value | None = None,
) -> Node:  # fmt: skip
    """One node for a product of ``operands``, and those that scale it and add a bias."""
    y = nodes[-1].outputs
    x, weights, x_zero, weight_zero = (*operands, None, None)[:4]
    vectors = (_as_vector(scale, y[0].name), bias and _as_vector(bias, y[0].name))
    inputs = (x, weights, one, vectors[0], x_zero, weight_zero, vectors[1])
    sources = join_sources(*nodes)
    return Node(OP, inputs, y, {}, DOMAIN, nodes[0].name, sources)


def _as_vector(row: Value, name: str) -> Value:
    """A constant with one axis, or with none."""
    tensor = row.tensor
    assert tensor is not None
    if row.rank < 2:
        return row
    return make_lazy_constant(f"{name}/{row.name}", row, (tensor.size,), tensor.load)


def _is_product(node: Node) -> bool:
    """Whether a node is a product of integers by a constant matrix."""
    constants = [v for v in node.inputs[1:] if v is not None]
    is_constant = bool(constants) and all(v.tensor is not None for v in constants)
    return node.op == "MatMulInteger" and not node.domain and is_constant and constants[0].rank == 2


def _read_row(
    node: Node, near: Neighbours, op: str, *, of_all: bool = False
) -> tuple[()] | tuple[Node, Value]:
    """The node that applies a constant for each column to what ``node`` computes, and that.

    The constant may be one number, unless it has to be ``of_all`` columns.
    """
    reader, x = near.sole_reader(node, op), node.outputs[0]
    if reader is None or not x.shape or reader.outputs[0].shape != x.shape:
        return ()
    row = next((v for v in reader.inputs if v is not x), None)
    if row is None or row.tensor is None:
        return ()
    sizes = {x.shape[-1]} if of_all else {1, x.shape[-1]}
    return (reader, row) if row.tensor.size in sizes and is_row(row, x) else ()
