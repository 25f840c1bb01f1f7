"""Products with two constants, one after the other, as a product with one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.rewrite.patterns import Neighbours

Array = np.ndarray[Any, Any]
# What decides integers by its last bits, and what hands numbers to it.
ROUNDING = frozenset({"Ceil", "Floor", "QuantizeLinear", "Round"})
ELEMENTWISE = frozenset(
    "Abs Add Clip Div Max Min Mul Neg Relu Reshape Sign Sub Transpose Where".split()
)


def merge_factors(graph: Graph) -> Graph:
    """Return ``graph`` with each ``x * a * b`` of float constants as ``x * (a * b)``.

    One rounding is left of two, so results differ by their last bits. Products that are rounded to
    integers afterwards stay, and those whose merged constant would be larger than both, or is not
    a normal number. Subgraphs are left as they are.
    """
    near = Neighbours(graph)
    rounded = _find_rounded(graph, near)
    merged: dict[Node, Node] = {}
    dropped: set[Node] = set()
    for node in graph.nodes:
        x, factor = _find_factor(node)
        inner = near.sole_maker(node, x, "Mul") if factor is not None else None
        if inner is None or factor is None:
            continue
        x, first = _find_factor(merged.get(inner, inner))
        if first is None or node in rounded:
            continue
        product = _multiply(first, factor)
        if product is not None:
            held = Value(f"{node.outputs[0].name}/factor", first.dtype, product.shape, product)
            sources = (*merged.get(inner, inner).sources, *node.sources)
            merged[node] = replace(node, inputs=(x, held), sources=sources)
            dropped.add(inner)
    if not merged:
        return graph
    nodes = tuple(merged.get(node, node) for node in graph.nodes if node not in dropped)
    return replace(graph, nodes=nodes)


def _find_factor(node: Node) -> tuple[Value | None, Value | None]:
    """The operand and the constant of a Mul of floats."""
    if node.op == "Mul" and not node.domain:
        for x, held in (node.inputs, node.inputs[::-1]):
            if held is None or held.tensor is None:
                continue
            if held.dtype in (DType.FLOAT32, DType.FLOAT64):
                return x, held
    return None, None


def _find_rounded(graph: Graph, near: Neighbours) -> set[Node]:
    """The nodes whose results elementwise operators take to one that rounds them."""
    nodes: set[Node] = set()
    for node in reversed(graph.nodes):
        readers = (reader for v in node.outputs for reader in near.readers.get(v, ()))
        if any(
            _rounds(reader) or (reader.op in ELEMENTWISE and reader in nodes) for reader in readers
        ):
            nodes.add(node)
    return nodes


def _rounds(node: Node) -> bool:
    if node.op == "Cast":
        return node.outputs[0].dtype not in (DType.FLOAT32, DType.FLOAT64)
    return node.op in ROUNDING


def _multiply(a: Value, b: Value) -> Tensor | None:
    """The product of two constants, if it is no larger than they are and every number is normal."""
    shape = np.broadcast_shapes(a.static_shape, b.static_shape)
    if int(np.prod(shape)) > max(int(np.prod(v.static_shape)) for v in (a, b)):
        return None
    wide = a.array().astype(np.float64) * b.array().astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.asarray(wide, a.type.numpy)
    least = np.finfo(a.type.numpy).tiny
    if not (np.isfinite(product) & (np.abs(product) >= least)).all():
        return None
    return Tensor.of(product)
